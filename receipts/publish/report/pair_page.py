"""The page of one comparison: both sides with their five answers, what changed, the effects, and every finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from receipts import metrics
from receipts.judging.verdict import Comparison, Finding, Level, MetricResult, Question
from receipts.metrics.reading import MetricReading
from receipts.publish.page import Cell, Code, Column, Page, Row, Section, Table
from receipts.publish.report import appendix
from receipts.publish.report.lane import answered
from receipts.publish.report.page import joined, links, rule
from receipts.publish.report.pair_data import PairData
from receipts.publish.report.pictures import step_times
from receipts.publish.report.pictures.step_times import Compared
from receipts.publish.report.sections import rules
from receipts.publish.report.sections.decisions import Decided
from receipts.publish.report.text import NOTE, UNKNOWN, change, plain, span, value

MOST_NAMED = 12
LEVELS = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


def page(data: PairData) -> Page:
    """The whole page."""
    made = data.comparison
    sections = [*body(data), appendix.section(data.receipts)]
    sections.insert(-1, rules.section(data.cited, rules.cited(sections)))
    return Page(
        title=f"Comparison of {plain(made.label_b, 60)} against {plain(made.label_a, 60)}",
        facts=(
            ("verdict", (made.last_line(),)),
            ("A", links(data.a.receipts, 1)),
            ("B", links(data.b.receipts, 1)),
            ("lane", (", ".join(plain(name) for name in made.lanes),)),
            ("rules", (Code(data.rules[:12]), f" judge {data.judge}")),
        ),
        lead=tuple(lead(made)),
        sections=tuple(sections),
    )


def lead(made: Comparison) -> Iterator[str]:
    """Why it came out so, in a sentence."""
    if made.study:
        yield f"Study {made.study}: its axes count as one."
    if made.owed:
        yield f"{plain(made.owed, NOTE)}."
    headline = next((item for item in made.results if item.metric == made.metric), None)
    if made.status == "rejected":
        yield f"It is refused, since {_refusal(made)}: the difference does not say what it seems to say."
    elif headline is not None and headline.effect.why:
        yield plain(headline.effect.why[:1].upper() + headline.effect.why[1:], NOTE) + "."


def _refusal(made: Comparison) -> str:
    """What refuses a comparison before all else."""
    if len(made.counted) > 1:
        return f"{len(made.counted)} axes moved together ({', '.join(map(plain, made.counted[:MOST_NAMED]))})"
    heavy = [item for item in made.findings if item.level is Level.ERROR and item.waived is None]
    heavy.sort(key=lambda item: item.subject != "pair")
    for item in heavy:
        side = {"a": " on A", "b": " on B"}.get(item.subject, "")
        return f"{item.code} found{side}: {plain(item.found, NOTE)}"
    return "its path was left" if made.path == "left" else "the two are not one experiment"


def body(data: PairData) -> list[Section]:
    """What the page of a claim shows of its comparison as well; why it is refused stands before its numbers."""
    effects = [_effects(data.comparison, data.timed), _findings(data.comparison)]
    if data.comparison.status == "rejected":
        effects.reverse()
    made = [_sides(data), _changed(data.comparison), *effects]
    if data.memory:
        made.append(Section("memory", "Memory by chip", sentences=tuple(plain(said, NOTE) for said in data.memory)))
    made.append(_decided(data.decisions, data.claims))
    return made


def _sides(data: PairData) -> Section:
    columns = (
        *(Column("side"), Column("lane"), Column("judged"), Column("path")),
        *(Column(one.question) for one in data.a.answers),
    )
    rows = tuple(
        Row((
            (f"{side.letter}: ", *links(side.receipts, 6)),
            (plain(side.lane),),
            (side.status,),
            (side.path,),
            *map(answered, side.answers),
        ))
        for side in (data.a, data.b)
    )  # fmt: skip
    several = any(len(side.receipts) > 1 for side in (data.a, data.b))
    says = ("The first launch of a side answers for all: the others differ from it in no axis.",) if several else ()
    table = Table("Both sides with their five answers", columns, rows)
    points = (("witnessed by", (links(data.witnesses, 6),)),) if data.witnesses else ()
    return Section("sides", "The two sides", sentences=says, tables=(table,), points=points)


def _changed(made: Comparison) -> Section:
    columns = (Column("leaf"), Column("A"), Column("B"), Column("axis"), Column("counts?"))
    uncounted, waived = dict(made.uncounted), dict(made.waivers)
    rows: list[Row] = []
    for item in made.difference.changed:
        mark = uncounted.get(item.axis, "counts")
        mark = f"waived: {waived[item.axis]}" if item.axis in waived else mark
        rows += [_leaf(member.path, member.a, member.b, item.axis, mark) for member in item.members]
    rows += [_leaf(item.path, item.a, item.b, "none", "derived: it follows") for item in made.difference.derived]
    rows += [_leaf(item.path, item.a, item.b, "none", "a block: never counted") for item in made.difference.blocks]
    table = Table("What differs between A and B", columns, tuple(rows))
    empty = () if rows else ("No axis changed: the two are repeats of one configuration.",)
    return Section(
        "changed",
        "What changed",
        sentences=(*empty, *_count(made)),
        tables=(table,) if rows else (),
        sections=tuple(_unknown(made)),
    )


def _count(made: Comparison) -> Iterator[str]:
    if len(made.counted) > 1:
        yield f"{len(made.counted)} axes count: {', '.join(map(plain, made.counted))}."
    held = len(made.difference.equal)
    context = len(made.difference.held)
    also = f", and {context:,} that neither states are held by one context" if context else ""
    yield f"{held:,} leaves are equal on both sides{also}."


def _leaf(path: str, a: object, b: object, axis: str, mark: str) -> Row:
    return Row(((Code(plain(path)),), (value(a),), (value(b),), (plain(axis),), (plain(mark, NOTE),)))


def _unknown(made: Comparison) -> Iterator[Section]:
    if not made.difference.unknown:
        return
    words = {"a": "A does not state it", "b": "B does not state it", "both": "neither states it"}
    rows = tuple(
        Row((
            (plain(item.axis),),
            (words[item.missing],),
            joined((Code(plain(member.path)),) for member in item.members[:MOST_NAMED]),
        ))
        for item in made.difference.unknown
    )  # fmt: skip
    table = Table("Axes that nobody can call equal", (Column("axis"), Column("missing"), Column("leaves")), rows)
    yield Section("unknown", "Unknown", sentences=("State these, and run the comparison again.",), tables=(table,))


def _effects(made: Comparison, timed: Compared | None) -> Section:
    columns = (
        Column("metric"),
        Column("A", numeric=True),
        Column("B", numeric=True),
        Column("change", "%", True),
        Column("95 % interval, unadjusted", "%", True),
        Column("effect"),
        Column("launches", numeric=True),
        Column("read from"),
    )
    rejected = made.status == "rejected"
    rows = tuple(Row(_effect(item, rejected=rejected)) for item in made.results)
    after = ["Each metric stands alone: no interval is adjusted for the others."]
    if any("stated" in (item.a.source, item.b.source) for item in made.results):
        after.append("* as stated: no effect follows from it.")
    says = ("It is refused, so that no change is printed: it would be believed.",) if rejected else ()
    table = Table("B against A, metric by metric", columns, rows, tuple(after))
    figures = step_times.figures("steps", (timed,) if timed is not None else ())
    return Section(
        "effects",
        "Effects",
        sentences=says if rows else ("No metric is on both sides.",),
        tables=(table,) if rows else (),
        figures=figures,
    )


def _effect(item: MetricResult, *, rejected: bool) -> tuple[Cell, ...]:
    metric = metrics.get(item.metric)
    numbers: tuple[Cell, ...] = ((UNKNOWN,), (UNKNOWN,), ("refused",))
    if not rejected:
        numbers = (
            (change(item.ratio),),
            (span(item.effect.low, item.effect.high),),
            (metrics.effect_word(metric, item.effect.kind),),
        )
    return (
        (metric.title,),
        (_reading(item, item.a),),
        (_reading(item, item.b),),
        *numbers,
        (f"{item.a.launches} and {item.b.launches}",),
        (item.a.source if item.a.source == item.b.source else f"{item.a.source} and {item.b.source}",),
    )


def _reading(item: MetricResult, side: MetricReading) -> str:
    if side.value is None:
        return plain(side.text) if side.text else UNKNOWN
    return metrics.shown(metrics.get(item.metric), side.value) + ("*" if side.source in ("stated", "derived") else "")


def _findings(made: Comparison) -> Section:
    columns = (Column("why"), Column("on"), Column("weight"), Column("found"), Column("expected"), Column("what to do"))
    weights = {Level.ERROR: "refuses", Level.OPEN: "leaves open", Level.SHOWN: "is shown"}
    rows = tuple(
        Row((
            (rule(item.code, item.name),),
            (" and ".join(sorted(sides)) or "the pair",),
            (f"waived: {plain(item.waived, NOTE)}" if item.waived is not None else weights[item.level],),
            joined(map(found, (item, *more)), "; "),
            (plain(item.expected, NOTE),),
            (plain(item.do, NOTE),),
        ))
        for sides, (item, *more) in _told(made.findings)
    )  # fmt: skip
    waiting = list(_waiting(made.findings))
    empty = () if rows or waiting else ("No rule found anything.",)
    table = Table("What rules found, the heaviest first", columns, rows)
    return Section("findings", "Why", sentences=(*empty, *waiting), tables=(table,) if rows else ())


def found(item: Finding) -> Cell:
    """Where a finding is and what it says, which may begin with the place."""
    at, says = plain(item.at), plain(item.found, NOTE)
    return (says,) if says.startswith(at) else (Code(at), f" {says}")


def _told(findings: Iterable[Finding]) -> list[tuple[list[str], list[Finding]]]:
    """Each offence once with its sides, on the pair first, its places together; what is unjudged a sentence tells."""
    kept: dict[tuple[object, ...], dict[tuple[str, str], Finding]] = {}
    for item in findings:
        if not item.unjudged:
            offence = (item.subject, item.code, item.level, item.waived, item.expected, item.do)
            kept.setdefault(offence, {}).setdefault((item.at, item.found), item)
    alike: dict[tuple[object, ...], tuple[list[str], list[Finding]]] = {}
    for (subject, *rest), places in kept.items():
        side = {"a": "A", "b": "B"}.get(str(subject))
        sides, _ = alike.setdefault((side is None, *rest, *places), ([], list(places.values())))
        sides += [side] if side else []
    return sorted(alike.values(), key=lambda told: (LEVELS[told[1][0].level], bool(told[0]), told[1][0].code))


def _waiting(findings: Iterable[Finding]) -> Iterator[str]:
    """What rules could not judge, by question, with the facts that are missing."""
    for question in (Question.COMPARABLE, Question.PATH, Question.EFFECT):
        open_ones = [item for item in findings if item.unjudged and item.question is question and item.waived is None]
        if open_ones:
            codes = ", ".join(dict.fromkeys(item.code for item in open_ones))
            places = list(dict.fromkeys(plain(item.at) for item in open_ones))
            more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
            yield f"Not judged, {question.value}: {codes} wait for {', '.join(places[:MOST_NAMED])}{more}."


def _decided(decisions: Sequence[Decided], claims: Sequence[str]) -> Section:
    columns = (Column("receipt"), Column("decision"), Column("reason"), Column("when, UTC"))
    rows = tuple(
        Row((
            links((item.receipt,)) if item.receipt is not None else (Code(item.id[:12]),),
            (item.decision,),
            (plain(item.reason, NOTE),),
            (f"{item.at:%Y-%m-%d %H:%M}",),
        ))
        for item in decisions
    )  # fmt: skip
    stands = (f"Claims that stand on these receipts: {', '.join(map(plain, claims))}.",) if claims else ()
    empty = () if rows else ("Nothing was decided on these receipts.",)
    table = Table("What was decided on these receipts", columns, rows)
    return Section("decisions", "Decisions", sentences=(*empty, *stands), tables=(table,) if rows else ())
