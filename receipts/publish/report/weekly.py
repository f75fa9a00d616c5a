"""The weekly report in words: its sections from its values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from receipts.judging.rulebook import RuleSet
from receipts.metrics.chips.words import ordinals
from receipts.publish.report import appendix, summary
from receipts.publish.report.data import Counts, Failed, Headroom, Incident, WeekData
from receipts.publish.report.lane import lane_section
from receipts.publish.report.page import Cell, Code, Column, Page, Row, Section, Table, folded, link, links, more, rule
from receipts.publish.report.pictures import chips
from receipts.publish.report.sections import checks, claims, decisions, intake, repeats, survival
from receipts.publish.report.sections import rules as cited_rules
from receipts.publish.report.text import NOTE, gib, number, percent, plain
from receipts.publish.report.worded import worded

JUDGES = (
    "Every receipt of the week is judged under the rules named here, where the stored verdict does not hold already, "
    "and compared with its neighbours: a result stands on the frontier only where steps and path are evidenced, and an "
    "effect only where its launches carry one. Where the data carry no number, there is a tilde in its place."
)
PAIRS = (
    "How pairs were chosen: each configuration that ran in the week, of a lane the first 40 (those that moved the "
    "frontier, then sound ones of several launches, then the newest), is compared with configurations of its lane and "
    "kind that the axis index has one axis away and of which a launch ran earlier; at most two are kept. Where there "
    "is none, with the nearest by shape of those that share its context, its model's name, or its label up to the "
    "first digit; and with the nearest pin of its lane."
)


def page(data: WeekData, rules: RuleSet) -> Page:
    """The whole report; ``rules`` are those that it was judged by."""
    told = data.sections
    every = [lane_section(lane, told.ceilings[lane.name], data.drawn.lanes[lane.name], rules) for lane in data.lanes]
    every += [survival.section(told.survival, rules), decisions.section(told.decisions), claims.section(told.claims)]
    every += [_incidents(data), _failures(data), repeats.section(told.repeats, rules), _memory(data)]
    every += [checks.section(data.lanes), intake.section(told.intake, data.lanes)]
    sections, nothing = folded(every)
    sections = [summary.section(data.summary, nothing), *sections]
    codes = tuple(cited_rules.cited(sections))
    sections.append(_method(data))
    sections += [cited_rules.section(told.rules, codes)] if codes else []
    sections += [appendix.section(data.receipts)] if data.receipts else []
    word = "interval" if "/" in data.week else "week"
    made = Page(
        title=f"Frontier report {data.week}",
        facts=(
            (word, (_interval(data, word),)),
            ("as of", (f"{data.as_of:%Y-%m-%d %H:%M:%S} UTC",)),
            ("store", (Code(data.store),)),
            ("rules", (Code(data.rules[:12]), f" judge {data.judge}")),
            ("receipts", (counted(data.counts),)),
            *((("lanes", (", ".join(data.only_lanes),)),) if data.only_lanes else ()),
        ),
        lead=tuple(_lead(data)),
        sections=tuple(sections),
    )
    return worded(made, word)


def _interval(data: WeekData, word: str) -> str:
    if word == "week":
        return f"Monday {data.since:%Y-%m-%d} to Sunday {data.until - timedelta(days=1):%Y-%m-%d}, UTC"
    return f"{data.since:%Y-%m-%d %H:%M} to {data.until:%Y-%m-%d %H:%M}, UTC"


def counted(counts: Counts) -> str:
    """Receipts of the week by status."""
    return (
        f"{counts.submitted:,} submitted · {counts.valid:,} valid · {counts.open:,} open · "
        f"{counts.invalid:,} invalid · {counts.superseded:,} superseded"
    )


def _lead(data: WeekData) -> Iterator[str]:
    if not data.counts.submitted:
        newest = f" The newest receipt ran in {data.last_week}." if data.last_week else " None ran before."
        yield f"No receipt ran in {data.week}.{newest}"


def _method(data: WeekData) -> Section:
    """How the report came about: below what it says, since nobody reads it twice."""
    carried = f"Pairs judged: {data.compared:,}; of these not refused and with an interval: {data.adjusted:,}"
    adjusted = (
        "; their verdicts are adjusted by Holm over all of them, the intervals are not." if data.adjusted else "."
    )
    left = sum(lane.uncompared for lane in data.lanes)
    of = sum(lane.configurations for lane in data.lanes)
    beyond = f" {left:,} of {of:,} configurations were not compared." if left else ""
    pairs = f"{PAIRS} {carried}{adjusted}{beyond}"
    return Section("method", "How it was judged", (JUDGES, *((pairs,) if data.counts.submitted else ())))


def _failures(data: WeekData) -> Section:
    columns = (
        Column("launch"),
        Column("outcome"),
        Column("phase"),
        Column("class"),
        Column("chip", numeric=True),
        Column("requested", "GiB", True),
        Column("limit", "GiB", True),
        Column("shape"),
        Column("what it said"),
    )
    rows = tuple(Row(_failed(item)) for item in data.failures)
    table = Table("Launches that did not end well", columns, rows, more(data.failures_more, "failures"))
    if not rows:
        return Section("failures", "Failures", nothing="failed launches")
    return Section("failures", "Failures", (), (table,))


def _failed(item: Failed) -> tuple[Cell, ...]:
    said = " · ".join(part for part in (item.operator, item.message) if part)
    again: Cell = ("; failed before with this signature: ", *links(item.earlier)) if item.earlier else ()
    return (
        (*link(item.receipt), f" ({item.lane})"),
        (item.outcome,),
        (_words(item.phase),),
        (_words(item.failure_class),),
        ("~" if item.chip is None else str(item.chip),),
        (gib(item.requested_bytes),),
        (gib(item.limit_bytes),),
        (_shape(item),),
        (plain(said, NOTE) if said else "~", *again),
    )


def _words(name: str | None) -> str:
    return name.replace("_", " ") if name else "~"


def _shape(item: Failed) -> str:
    parts = (
        f"{number(item.chips)} × {item.accelerator or '~'}",
        f"sequence {number(item.sequence_length)}",
        f"micro batch {number(item.micro_batch)}",
        f"depth {number(item.depth)}",
    )
    return " · ".join(part for part in parts if not part.endswith(" ~") or part == parts[0])


def _incidents(data: WeekData) -> Section:
    columns = (Column("rule"), Column("found"), Column("expected"), Column("what to do"), Column("launches"))
    rows = tuple(Row(_incident(item)) for item in data.incidents)
    table = Table(
        "Runs that left their path, drifted or never settled", columns, rows, more(data.incidents_more, "incidents")
    )
    if not rows:
        return Section("incidents", "Path incidents", nothing="path incidents")
    return Section("incidents", "Path incidents", (), (table,))


def _incident(item: Incident) -> tuple[Cell, ...]:
    return (
        (rule(item.code, item.name),),
        (Code(item.at), f" {item.found}"),
        (item.expected,),
        (item.do,),
        links(item.receipts, more=item.receipts_more),
    )


def _memory(data: WeekData) -> Section:
    columns = (
        Column("launch"),
        Column("chips", numeric=True),
        Column("lowest peak", "GiB", True),
        Column("highest peak", "GiB", True),
        Column("leads"),
        Column("above the median chip", "%", True),
        Column("peaks first"),
        Column("tightest chip", numeric=True),
        Column("its limit", "GiB", True),
        Column("left", "%", True),
        Column("lane keeps", "%", True),
    )
    rows = tuple(Row(_headroom(item)) for item in data.headroom)
    table = Table("Live peaks by physical chip, tightest first", columns, rows, more(data.headroom_more, "launches"))
    if not rows:
        return Section("memory", "Memory", nothing="memory by chip")
    figures = chips.figures("memory-chips", data.drawn.chips)
    return Section("memory", "Memory", (), (table,), figures=figures)


def _headroom(item: Headroom) -> tuple[Cell, ...]:
    return (
        (*link(item.receipt), f" ({item.lane})"),
        (number(item.chips),),
        (gib(item.lowest_peak_bytes),),
        (gib(item.highest_peak_bytes),),
        (_leads(item),),
        (percent(item.skew),),
        (_first(item),),
        (f"{item.chip} ({item.phase.replace('_', ' ')})",),
        (gib(item.limit_bytes),),
        (percent(item.left),),
        (percent(item.wanted, 0),),
    )


def _leads(item: Headroom) -> str:
    """The chips with the highest peak; nobody leads where all have it."""
    who = "all alike" if len(item.leaders) == item.chips > 1 else ordinals(item.leaders)
    return f"{who} (a chip is missing or stands twice)" if item.faulty else who


def _first(item: Headroom) -> str:
    if item.last_step is None:
        return "~"
    if item.first_step is None:
        return f"all at step {number(item.last_step)}"
    return f"{ordinals(item.first_chips)} at step {number(item.first_step)}, the last at {number(item.last_step)}"
