"""Rate and MFU of a lane over sequence length, with the spread of repeated launches, and ceilings marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import sequence
from receipts.publish.report.page import link
from receipts.publish.text import number, plain

if TYPE_CHECKING:
    from receipts.publish.pictures.sequence import Grade
    from receipts.publish.report.data import BestResult, LaneWeek
    from receipts.publish.report.reader import ReportReader
    from receipts.publish.report.sections.ceilings import Ceilings
    from receipts.store import Entry

FEWEST: Final = 3  # launches that have an interval
LONGEST: Final = 64  # signs of a series' name


@dataclass(frozen=True, slots=True)
class RepeatedResult:
    """Launches of one result's configuration: how many are valid and kept steps, and a 95 % interval of their rate.

    The interval is that of the geometric mean, in tokens a second a chip, by Student's t on logs; None for fewer than
    three launches. `micro_batch` and `depth` are the result's own.
    """

    receipt: str
    micro_batch: int | None
    depth: int | None
    launches: int
    low: float | None
    high: float | None


def repeated(reader: ReportReader, results: Sequence[BestResult]) -> tuple[RepeatedResult, ...]:
    """The launches beside each of these results."""
    ids = [item.receipt.id for item in results]
    rows = {row.id: row for row in reader.stored.entries(ids)} if ids else {}
    return tuple(_repeated(rows[name], reader.rates(rows[name])) for name in ids if name in rows)


def _repeated(row: Entry, rates: Sequence[float]) -> RepeatedResult:
    low, high = interval(rates)
    return RepeatedResult(row.id, row.micro_batch, row.depth, len(rates), low, high)


def interval(rates: Sequence[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of the geometric mean of some launches' rates; nothing for fewer than three."""
    from receipts.stats.estimate import RatioEstimate

    if len(rates) < FEWEST:
        return None, None
    logs = [math.log(rate) for rate in rates]
    mean = math.fsum(logs) / len(logs)
    error = math.sqrt(math.fsum((item - mean) ** 2 for item in logs) / (len(logs) - 1) / len(logs))
    half = RatioEstimate(mean, error, len(logs) - 1).half_width(0.95)
    return math.exp(mean - half), math.exp(mean + half)


def figure(anchor: str, lane: LaneWeek, repeated: Iterable[RepeatedResult], reached: Ceilings) -> Figure | None:
    """The picture of a lane; None where there is too little to draw: what is in its tables says it all."""
    beside = {item.receipt: item for item in repeated}
    grades = _grades(reached)
    every = (*lane.frontier, *lane.stated)
    points = [_point(item, series(item, every), True, beside.get(item.receipt.id), grades) for item in lane.frontier]
    points += [_point(item, series(item, every), False, None, grades) for item in lane.stated]
    drawn = [item for item in points if item is not None]
    shown, kept = sequence.shown(drawn)
    if len(shown) < sequence.FEWEST or len({item.length for item in shown}) < sequence.LENGTHS:
        return None
    left = len({item.series for item in drawn}) - len(kept)
    title = f"{plain(lane.name)}: rate and MFU over sequence length"

    caption, table = _caption(title, left, shown), _table(title, lane, beside)
    return Figure(anchor, caption, lambda name: sequence.picture(drawn, name=name, title=title), table)


def _caption(title: str, left: int, shown: Sequence[sequence.SequencePoint]) -> Cell:
    """How the picture is read, of what it shows alone."""
    grades = {item.grade for item in shown}
    parts = (
        (any(item.accepted for item in shown), "Filled: proven."),
        (any(not item.accepted for item in shown), "Hollow: reported, not proven."),
        (
            any(item.low is not None for item in shown),
            "An interval is that of the mean of three or more launches of one configuration (95 %); the mark is the "
            "best of them.",
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


def _point(
    item: BestResult, name: str, accepted: bool, beside: RepeatedResult | None, grades: Mapping[_Shape, Grade]
) -> sequence.SequencePoint | None:
    if item.sequence_length is None:
        return None
    whole = (beside.micro_batch, beside.depth) if beside is not None else (None, None)
    shape = (item.shape, item.chips, item.sequence_length, *whole)
    return sequence.SequencePoint(
        series=name,
        length=item.sequence_length,
        rate=item.tokens_per_second_per_chip,
        mfu=item.mfu,
        accepted=accepted,
        low=beside.low if beside is not None else None,
        high=beside.high if beside is not None else None,
        grade=grades.get(shape),
    )


def series(item: BestResult, beside: Iterable[BestResult]) -> str:
    """What a series is called: what is never folded into one; the start of its digest where words do not tell."""
    named = [plain(part, LONGEST) for part in item.names(beside)] or ["model not stated"]
    machine = f"{number(item.chips)} × {plain(item.accelerator, LONGEST) if item.accelerator else '~'}"
    alike = {other.shape[:16] for other in beside if other.names(beside) == item.names(beside)}
    return " · ".join([*named, machine, *([item.shape[:4]] if len(alike) > 1 else [])])


def _table(title: str, lane: LaneWeek, beside: Mapping[str, RepeatedResult]) -> Table | None:
    """Intervals of the frontier; everything else is in the tables that the section has."""
    header = (
        "receipt | sequence [tokens] | best [tokens/s/chip] | 95 % interval of the mean [tokens/s/chip] | #launches"
    )
    rows = [
        (
            *(link(item.receipt), number(item.sequence_length), number(item.tokens_per_second_per_chip)),
            *(f"{number(result.low)} to {number(result.high)}", number(result.launches)),
        )
        for item in lane.frontier
        if (result := beside.get(item.receipt.id)) is not None and result.low is not None
    ]
    return table_of(title, header, rows) if rows else None
