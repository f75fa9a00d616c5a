"""The frontier of a lane over weeks: which receipt took it when, shape by shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import count, groupby, zip_longest
from typing import TYPE_CHECKING, Any, Final

from receipts.metrics.reading import Taint
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import weeks as drawing
from receipts.publish.report.page import joined, link, numbered
from receipts.publish.report.pictures.over_sequence import series
from receipts.publish.report.reader import ran
from receipts.publish.report.ref import Ref
from receipts.publish.report.week import Week
from receipts.publish.text import number, percent, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import BestResult
    from receipts.publish.report.reader import Item, ReportReader
    from receipts.store import Entry

WEEKS: Final = 26
MOST: Final = 4  # shapes
NAMED: Final = 12  # changes that a caption leads to; the table has them all


@dataclass(frozen=True, slots=True)
class FrontierRecord:
    """A receipt that took the frontier: when it ran, its rate in tokens a second a chip, and its MFU.

    `before` says that it did so before the weeks that are shown, and that it held when they began.
    """

    receipt: Ref
    week: str
    rate: float
    mfu: float | None
    before: bool


@dataclass(frozen=True, slots=True)
class ShapeCourse:
    """One shape: the receipts that took its frontier in the order of time, and the best rate of each week.

    What took it is valid under the present rules; the weeks' best were valid when they came in.
    """

    name: str
    taken: tuple[FrontierRecord, ...]
    best: tuple[tuple[str, float], ...]


def courses(reader: ReportReader, lane: str, results: Iterable[BestResult], end: datetime) -> tuple[ShapeCourse, ...]:
    """The courses of a lane's shapes over the weeks before ``end``, those that moved in the last of them first."""
    from receipts.store.query.daily_best import days
    from receipts.store.query.reports import SHAPE

    last = Week.of(end - timedelta(microseconds=1))
    since = last.since - timedelta(weeks=WEEKS - 1)
    chosen = sorted(results, key=lambda item: not item.in_week)[:MOST]
    rows = {row.id: row for row in reader.stored.entries([item.receipt.id for item in chosen])} if chosen else {}
    lines = []
    for item in chosen:
        shape: dict[str, Any] = {name: getattr(rows[item.receipt.id], name) for name in SHAPE}
        daily = days(reader.store, shape, since, end - timedelta(microseconds=1))
        by_day, before = ([row for row in rows if row.id not in reader.left_out] for rows in daily)
        taken = _taken(before, by_day, reader.items)
        if taken:
            name = f"{series(item, chosen)} · {number(item.sequence_length)} tokens"
            lines.append(ShapeCourse(name, taken=tuple(taken), best=tuple(_best(by_day))))
    return tuple(lines)


def _week(row: Entry) -> str:
    return str(Week.of(ran(row)))


def _day(row: Entry) -> date:
    return ran(row).date()


def _taken(
    before: Sequence[Entry], rows: Sequence[Entry], judge: Callable[[Iterable[Entry]], list[Item]]
) -> list[FrontierRecord]:
    """Receipts that were better than all before them. Only those that would be are judged."""
    records: list[FrontierRecord] = []
    highest = 0.0
    for group, earlier in ((before, True), *((day, False) for day in _by_day(rows))):
        for row in group:
            rate = row.tokens_per_second_per_chip or 0.0
            if rate <= highest:
                break
            item = judge([row])[0]
            if item.rate_status == "valid":
                highest = rate
                mfu = None if item.spoilt(Taint.MFU) else row.mfu
                records.append(FrontierRecord(item.ref, _week(row), rate, mfu, earlier))
                break
    return records


def _by_day(rows: Sequence[Entry]) -> list[list[Entry]]:
    """Rows of each day, in the order of days; within one the best comes first, as in ``rows``."""
    return [list(day) for _, day in groupby(sorted(rows, key=_day), key=_day)]


def _best(rows: Sequence[Entry]) -> list[tuple[str, float]]:
    rates: dict[str, float] = {}
    for row in rows:
        week = _week(row)
        rates[week] = max(rates.get(week, 0.0), row.tokens_per_second_per_chip or 0.0)
    return sorted(rates.items())


def figure(anchor: str, lane: str, lines: Sequence[ShapeCourse], last: str) -> Figure | None:
    """The picture of a lane up to a week; None where fewer than three weeks have a result."""
    if not lines:
        return None
    shown = _weeks(lines, last)
    title = f"{plain(lane)}: frontier over weeks"
    numbered_ones = _numbered(lines)

    def draw(name: str) -> str | None:
        places = {week: index for index, week in enumerate(shown)}
        series = [
            drawing.FrontierCourse(
                line.name,
                tuple(
                    drawing.FrontierChange(
                        index,
                        0 if taken.before else places[taken.week],
                        taken.rate,
                        taken.mfu,
                        plain(taken.receipt.name),
                    )
                    for index, of, taken in numbered_ones
                    if of is line
                ),
                tuple((places[week], rate) for week, rate in line.best),
            )
            for line in lines
        ]
        return drawing.picture(series, shown, name=name, title=title)

    held = {week for line in lines for week, _ in line.best} | {taken.week for _, _, taken in numbered_ones}
    if len(held) < drawing.FEWEST:
        return None
    return Figure(anchor, _caption(title, numbered_ones), draw, _table(title, numbered_ones))


def _weeks(lines: Sequence[ShapeCourse], last: str) -> list[str]:
    """Every week from the first that has a result to the last of the report."""
    held = [week for line in lines for week, _ in line.best]
    first, end = Week.parse(min([*held, last])), Week.parse(last)
    length = (end.since - first.since).days // 7 + 1
    return [str(Week.of(first.since + timedelta(weeks=index))) for index in range(length)]


def _numbered(lines: Sequence[ShapeCourse]) -> list[tuple[int | None, ShapeCourse, FrontierRecord]]:
    """What took the frontier, shape by shape; a number for what had it when its week was over."""
    rows: list[tuple[int | None, ShapeCourse, FrontierRecord]] = []
    numbers = count(1)
    for line in lines:
        for taken, later in zip_longest(line.taken, line.taken[1:]):
            again = later is not None and (later.week, later.before) == (taken.week, taken.before)
            rows.append((None if again else next(numbers), line, taken))
    return rows


def _caption(title: str, every: Sequence[tuple[int | None, ShapeCourse, FrontierRecord]]) -> Cell:
    caption = (
        f"{title}: the best proven result so far of each shape. A number names the receipt that had the frontier when "
        "its week was over; marks without one had it for a while. A small hollow mark is the best of a week that did "
        "not take it. "
    )
    numbered = [(index, taken) for index, _, taken in every if index is not None]
    named = joined((f"{index} ", *link(taken.receipt)[:1]) for index, taken in numbered[:NAMED])
    left = len(numbered) - NAMED
    return (caption, *named, f" and {left} more in the table." if left > 0 else ".")


def _table(title: str, every: Sequence[tuple[int | None, ShapeCourse, FrontierRecord]]) -> Table:
    rows = (
        (
            "" if index is None else str(index),
            f"{taken.week}{' (held when the weeks shown began)' if taken.before else ''}",
            line.name,
            numbered(number(taken.rate), taken.receipt),
            numbered(percent(taken.mfu), taken.receipt),
            link(taken.receipt),
        )
        for index, line, taken in every
    )
    return table_of(title, "#no. | week | shape | rate [tokens/s/chip] | MFU [%] | receipt", rows)
