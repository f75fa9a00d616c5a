"""Rate and MFU of a lane over sequence length, with the spread of repeated launches, and ceilings marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import sequence
from receipts.publish.report.page import link
from receipts.publish.text import number, plain

if TYPE_CHECKING:
    from receipts.publish.pictures.sequence import Grade
    from receipts.publish.report.data import BestResult, LaneWeek
    from receipts.publish.report.sections.ceilings import Ceilings

LONGEST: Final = 64  # signs of a series' name


def figure(anchor: str, lane: LaneWeek, reached: Ceilings) -> Figure | None:
    """The picture of a lane; None where there is too little to draw: what is in its tables says it all."""
    grades = _grades(reached)
    every = (*lane.frontier, *lane.stated)
    points = [_point(item, series(item, every), grades) for item in every]
    drawn = [item for item in points if item is not None]
    shown, kept = sequence.shown(drawn)
    if len(shown) < sequence.FEWEST or len({item.length for item in shown}) < sequence.LENGTHS:
        return None
    left = len({item.series for item in drawn}) - len(kept)
    title = f"{plain(lane.name)}: rate and MFU over sequence length"
    caption, table = _caption(title, left, shown), _table(title, lane)
    return Figure(anchor, caption, lambda name: sequence.picture(drawn, name=name, title=title), table)


def _caption(title: str, left: int, shown: Sequence[sequence.SequencePoint]) -> Cell:
    """How the picture is read, of what it shows alone."""
    grades = {item.grade for item in shown}
    parts = (
        (any(item.accepted for item in shown), "Filled: proven."),
        (
            any(not item.accepted for item in shown),
            "Hollow: one launch, not settled (beyond ±5 %), or reported.",
        ),
        (
            any(item.low is not None for item in shown),
            "A mark with an interval is the geometric mean of the launches of one configuration (95 %).",
        ),
        ("repeated" in grades, "A bar over a mark: a ceiling, repeated by two launches."),
        ("validated" in grades, "Two bars: a ceiling validated by three launches on two days or hosts."),
        (
            any(item.mfu is not None for item in shown),
            "MFU of different bases are not comparable; the table names them.",
        ),
        (left > 0, f"{left} more series are in the table."),
    )
    return (" ".join([f"{title}.", *(text for holds, text in parts if holds)]),)


_Shape = tuple[object, ...]


def _grades(reached: Ceilings) -> Mapping[_Shape, Grade]:
    """Ceilings by their whole shape, the best grade of each."""
    order: tuple[Grade, ...] = ("peak", "repeated", "validated")
    return {
        (str(group.key), group.chips, *item.size): grade
        for grade in order
        for group in reached.reached.frontiers
        for item in group.ceilings
        if item.grade == grade
    }


def _point(item: BestResult, name: str, grades: Mapping[_Shape, Grade]) -> sequence.SequencePoint | None:
    if item.sequence_length is None:
        return None
    shape = (item.shape, item.chips, item.sequence_length, item.micro_batch, item.depth)
    return sequence.SequencePoint(
        series=name,
        length=item.sequence_length,
        rate=item.tokens_per_second_per_chip,
        mfu=item.mfu,
        accepted=item.standing == "proven",
        low=item.low if item.standing == "proven" else None,
        high=item.high if item.standing == "proven" else None,
        grade=grades.get(shape) if item.standing != "reported" else None,
    )


def series(item: BestResult, beside: Iterable[BestResult]) -> str:
    """What a series is called: what is never folded into one; the start of its digest where words do not tell."""
    named = [plain(part, LONGEST) for part in item.names(beside)] or ["model not stated"]
    machine = f"{number(item.chips)} × {plain(item.accelerator, LONGEST) if item.accelerator else '~'}"
    alike = {other.shape[:16] for other in beside if other.names(beside) == item.names(beside)}
    return " · ".join([*named, machine, *([item.shape[:4]] if len(alike) > 1 else [])])


def _table(title: str, lane: LaneWeek) -> Table | None:
    """Intervals of the frontier; everything else is in the tables that the section has."""
    header = (
        "receipt | sequence [tokens] | geometric mean [tokens/s/chip] | 95 % interval [tokens/s/chip] | #launches | "
        "#sessions"
    )
    rows = [
        (
            *(link(item.receipt), number(item.sequence_length), number(item.tokens_per_second_per_chip)),
            *(f"{number(item.low)} to {number(item.high)}", number(item.launches), number(item.sessions)),
        )
        for item in lane.frontier
        if item.low is not None
    ]
    return table_of(title, header, rows) if rows else None
