"""One lane of the weekly report in words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.judging.topic import Topic
from receipts.publish.report.data import Judged, LaneWeek, Result
from receipts.publish.report.drawn import LaneDrawn
from receipts.publish.report.page import (
    Cell,
    Code,
    Column,
    Figure,
    Part,
    Row,
    Section,
    Table,
    folded,
    joined,
    link,
    links,
    more,
    numbered,
    rule,
    without,
)
from receipts.publish.report.pictures import over_sequence, over_weeks, step_times
from receipts.publish.report.sections import ceilings, regime
from receipts.publish.report.text import change, gib, model, number, percent, plain, span

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.pictures.over_sequence import Repeated

_SHAPE = (
    *(Column("family"), Column("model"), Column("sequence", "tokens", True), Column("chips", numeric=True)),
    Column("layout"),
)
_NUMBERS = (
    Column("rate", "tokens/s/chip", True),
    Column("MFU", "%", True),
    Column("peak per chip", "GiB", True),
    Column("work", "tokens a step a chip", True),
)
UNMOVED: Cell = ("nothing that is stated",)


def lane_section(lane: LaneWeek, reached: ceilings.Ceilings, drawn: LaneDrawn, rules: RuleSet) -> Section:
    """The frontier of a lane, what it sustained, and its comparisons."""
    head = f"{lane.title} (version {lane.version})."
    kept, nothing = folded((
        _frontier(lane, reached, drawn),
        *((_stated(lane, reached, drawn),) if lane.stated else ()),
        ceilings.section(_id(lane, "ceilings"), lane.name, reached),
        _accepted(lane, drawn),
        _refused(lane, rules.about(Topic.AXES)),
        _inconclusive(lane, drawn, rules.about(Topic.UNKNOWN)),
    ))  # fmt: skip
    return Section(place(lane.name), f"Lane {plain(lane.name)}", (head, *without(nothing)), sections=tuple(kept))


def place(name: str, part: str = "") -> str:
    """Where a lane stands on the page, or a part of it: a lane's name may be anything that somebody wrote."""
    made = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    if made != name:
        made = f"{made[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"lane-{made}-{part}" if part else f"lane-{made}"


def _id(lane: LaneWeek, part: str) -> str:
    return place(lane.name, part)


def _frontier(lane: LaneWeek, reached: ceilings.Ceilings, drawn: LaneDrawn) -> Section:
    columns = (*_SHAPE, *_NUMBERS, Column("since the week began", "%, unadjusted"), Column("receipt"))
    beside = {item.receipt: item for item in drawn.repeated}
    rows = tuple(Row(_result(item), _head(item, beside.get(item.receipt.id))) for item in lane.frontier)
    says = (
        "The best accepted result of each shape, whenever it ran: valid, its steps kept, its path witnessed. A "
        "shape is read from the axes of the model, the accelerator, the sequence and the chips, and not from names."
    )
    table = Table(f"Frontier of {plain(lane.name)}", columns, rows, more(lane.frontier_more, "shapes"))
    empty = "No accepted result yet: none with its steps kept, its path witnessed and no error."
    figures = (
        *(_over_sequence(lane, reached, drawn) if rows else ()),
        over_weeks.figure(_id(lane, "weeks"), lane.name, drawn.courses, drawn.week),
    )
    return Section(
        _id(lane, "frontier"),
        "Frontier",
        (says if rows else empty,),
        (table,) if rows else (),
        figures=tuple(item for item in figures if item is not None),
    )


def _over_sequence(lane: LaneWeek, reached: ceilings.Ceilings, drawn: LaneDrawn) -> tuple[Figure, ...]:
    """The picture of accepted and stated results together: it stands where the first of their tables does."""
    made = over_sequence.figure(_id(lane, "sequence"), lane, drawn.repeated, reached)
    return (made,) if made is not None else ()


def _result(item: Result) -> tuple[Cell, ...]:
    named = (*link(item.receipt), "" if item.in_week else " (from an earlier week)")
    return (*_shape(item), *_numbers(item), _since(item), named)


def _head(item: Result, beside: Repeated | None = None) -> tuple[tuple[str, str], ...]:
    """The five answers, and what its numbers stand on."""
    made = [*item.answers, ("regime", regime.said(item.work))]
    if item.mfu_basis is not None:
        made.append(("MFU basis", item.mfu_basis))
    if beside is not None:
        made.append(("launches alike", _alike(beside)))
    return tuple(made)


def _alike(beside: Repeated) -> str:
    """How many launches of its configuration are valid, and where their mean lies."""
    if beside.launches < 2:
        return "this one alone: repeat it"
    if beside.low is None:
        return f"{beside.launches}: no interval"
    mean = f"{number(beside.low)} to {number(beside.high)} tokens/s/chip"
    return f"{beside.launches}, their mean {mean} (95 %); the best of them stands here"


def _since(item: Result) -> Cell:
    """What the week did to the best of its shape: the change with its interval, or why there is none."""
    made = item.change
    if made is None or made.was is None:
        return ("new",) if made is not None and made.state == "new" else ("~",)
    if made.state == "same":
        return ("none",)
    shown = (*numbered(change(made.ratio), made.was), f" ({span(made.low, made.high)})")
    if made.comparable is None:
        return (*shown, ", the same configuration")
    moved = f", {', '.join(map(plain, made.moved))}" if made.moved else ""
    return (*shown, moved if made.comparable == "yes" else f", no comparison{moved and f': {moved[2:]}'}")


def _shape(item: Result) -> tuple[Cell, ...]:
    machine = f" × {item.accelerator}" if item.accelerator else ""
    return (
        (item.family or "not stated",),
        (model(item.model, item.axes),),
        (number(item.sequence_length),),
        (f"{number(item.chips)}{machine}",),
        (plain(item.layout) or "~",),
    )


def _numbers(item: Result) -> tuple[Cell, ...]:
    ref = item.receipt
    return (
        numbered(number(item.tokens_per_second_per_chip), ref),
        numbered(percent(item.mfu), ref),
        numbered(gib(item.peak_bytes), ref),
        numbered(regime.tokens(item.work), ref),
    )


def _stated(lane: LaneWeek, reached: ceilings.Ceilings, drawn: LaneDrawn) -> Section:
    columns = (*_SHAPE, *_NUMBERS, Column("provenance"), Column("open"), Column("receipt"))
    rows = tuple(
        Row(
            (
                *_shape(item),
                *_numbers(item),
                (f"{item.provenance}, {_source(item.rate_source)}",),
                joined((rule(code),) for code in item.open_questions) or ("~",),
                link(item.receipt),
            ),
            _head(item),
        )
        for item in lane.stated
    )
    says = (
        "The best figure of each shape that ran in the week and that no error spoils. What the rules under open ask "
        "for is not evidenced, so none of them is on the frontier. A number that an error spoils is left out (~)."
    )
    table = Table(f"{plain(lane.name)}: stated, not witnessed", columns, rows, more(lane.stated_more, "shapes"))
    figures = () if lane.frontier else _over_sequence(lane, reached, drawn)
    return Section(_id(lane, "stated"), "Stated, not witnessed", (says,), (table,), figures=figures)


def _source(source: str) -> str:
    words = {"steps": "from its steps", "derived": "derived from what was stated", "stated": "as stated"}
    return words.get(source, source)


def _sides(item: Judged) -> tuple[Cell, Cell]:
    return links(item.a), links(item.b)


def _moved(item: Judged) -> Cell:
    parts: list[Part] = []
    for moved in item.moved[:4]:
        parts += [", "] if parts else []
        parts += [Code(moved.path), f" {moved.a} → {moved.b}"]
    left = len(item.moved) - 4
    return tuple(parts) if left <= 0 else (*parts, f" and {left} more")


def _metric(item: Judged) -> str:
    return metrics.get(item.metric).title


def _accepted(lane: LaneWeek, drawn: LaneDrawn) -> Section:
    columns = (
        Column("A"),
        Column("B"),
        Column("changed"),
        Column("metric"),
        Column("change", "%", True),
        Column("95 % interval, unadjusted", "%", True),
        Column("effect"),
        Column("launches", numeric=True),
    )
    rows = tuple(
        Row((
            *_sides(item),
            _moved(item),
            (_metric(item),),
            _change(item),
            (span(item.low, item.high),),
            (item.effect,),
            (f"{len(item.a)} and {len(item.b)}",),
        ))
        for item in lane.accepted
    )  # fmt: skip
    table = Table(
        f"{plain(lane.name)}: accepted comparisons, B against A",
        columns,
        rows,
        more(lane.accepted_more, "accepted comparisons, in comparisons.parquet"),
    )
    if not rows:
        return Section(_id(lane, "accepted"), "Accepted comparisons", nothing="accepted comparisons")
    figures = _step_times(lane, lane.accepted, drawn)
    return Section(_id(lane, "accepted"), "Accepted comparisons", (), (table,), figures=figures)


def _step_times(lane: LaneWeek, shown: Sequence[Judged], drawn: LaneDrawn) -> tuple[Figure, ...]:
    """Pictures of those comparisons that are shown here."""
    ends = {(item.a[0].id, item.b[0].id) for item in shown}
    every = zip(step_times.figures(_id(lane, "steps"), drawn.compared), drawn.compared, strict=True)
    return tuple(figure for figure, item in every if (item.a.id, item.b.id) in ends)


def _change(item: Judged) -> Cell:
    return (f"{change(item.ratio)}{'*' if item.stated and item.ratio is not None else ''}",)


def _inconclusive(lane: LaneWeek, drawn: LaneDrawn, of_unknown: Sequence[str]) -> Section:
    if not lane.inconclusive:
        return Section(
            _id(lane, "inconclusive"),
            "Inconclusive comparisons",
            nothing="inconclusive comparisons",
        )
    columns = (
        Column("A"),
        Column("B"),
        Column("changed"),
        Column("metric"),
        Column("change", "%", True),
        Column("95 % interval, unadjusted", "%", True),
        Column("answers"),
        Column("what would settle it"),
        Column("command"),
    )
    settle = [_settles(item, of_unknown) for item in lane.inconclusive]
    # What all of them wait for is said once: a notebook's rows lack the same facts one and all.
    common = [cell for cell in settle[0] if all(cell in other for other in settle)] if len(settle) > 1 else []
    rows = tuple(
        Row((
            *_sides(item),
            _moved(item) or UNMOVED,
            (_metric(item),),
            _change(item),
            (span(item.low, item.high),),
            (f"comparable {item.comparable} · path {item.path} · effect {item.effect}",),
            joined((cell for cell in own if cell not in common), "; ") or ("nothing more",),
            (Code(plain(item.next)) if item.next else "~",),
        ))
        for item, own in zip(lane.inconclusive, settle, strict=True)
    )  # fmt: skip
    after = more(lane.inconclusive_more, "inconclusive comparisons, in comparisons.parquet")
    if any(item.stated for item in lane.inconclusive):
        after = ("* from numbers as stated: no effect follows from them.", *after)
    table = Table(f"{plain(lane.name)}: inconclusive comparisons, B against A", columns, rows, after)
    points: tuple[tuple[str, tuple[Cell, ...]], ...] = (("all wait for", tuple(common)),) if common else ()
    figures = _step_times(lane, lane.inconclusive, drawn)
    return Section(
        _id(lane, "inconclusive"), "Inconclusive comparisons", (), (table,), figures=figures, points=points
    )  # fmt: skip


def _settles(item: Judged, of_unknown: Sequence[str]) -> list[Cell]:
    """What an open comparison waits for, each in a phrase; the rules on unknown axes say it in one."""
    parts: list[Cell] = []
    if item.unknown:
        shown = ", ".join(plain(name) for name in item.unknown[:4])
        left = len(item.unknown) - 4
        parts.append((*map(rule, of_unknown[:1]), f": state {shown}{f' and {left} more' if left > 0 else ''}"))
    parts += [(rule(reason.code), f": {reason.do}") for reason in item.reasons if reason.code not in of_unknown]
    if item.why and (not parts or item.path == "witnessed"):
        parts.append((item.why,))
    return list(dict.fromkeys(parts)) or [("~",)]


def _refused(lane: LaneWeek, of_axes: Sequence[str]) -> Section:
    if not lane.refused:
        return Section(_id(lane, "refused"), "Refused comparisons", nothing="refused comparisons")
    columns = (Column("A"), Column("B"), Column("why"), Column("what moved"))
    rows = tuple(Row((*_sides(item), _why(item, of_axes), _moved(item) or UNMOVED)) for item in lane.refused)
    says = "What may not be compared, and why. No change is printed: it would be believed."
    table = Table(
        f"{plain(lane.name)}: refused comparisons",
        columns,
        rows,
        more(lane.refused_more, "refused comparisons, in comparisons.parquet"),
    )
    return Section(_id(lane, "refused"), "Refused comparisons", (says,), (table,))


def _why(item: Judged, of_axes: Sequence[str]) -> Cell:
    parts: list[Cell] = []
    if len(item.counted) > 1:
        axes = ", ".join(map(plain, item.counted))
        parts.append((*map(rule, of_axes[:1]), f" {len(item.counted)} axes moved: {axes}"))
    for reason in item.reasons:
        if reason.code in of_axes and parts:
            continue
        side = f" on {reason.side}" if reason.side else ""
        parts.append((rule(reason.code, reason.name), f"{side}: {reason.found}"))
    return joined(parts, "; ") or (item.why or "~",)
