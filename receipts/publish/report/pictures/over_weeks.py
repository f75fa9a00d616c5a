"""The frontier of a lane over weeks: which receipt took it when, shape by shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, groupby, zip_longest
from typing import TYPE_CHECKING, Any, Final

from receipts.metrics.registry import Taint
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import weeks as drawing
from receipts.publish.report.page import joined, link, numbered
from receipts.publish.report.pictures.over_sequence import series
from receipts.publish.report.ref import Ref
from receipts.publish.report.week import Week
from receipts.publish.text import number, percent, plain
from receipts.stats.noise import Level, level_by_session

if TYPE_CHECKING:
    from receipts.publish.report.data import BestResult
    from receipts.publish.report.reader import ReportReader
    from receipts.store.query.reports import CourseLaunch

WEEKS: Final = 26
MOST: Final = 4  # shapes
LAUNCHES: Final = 5_000  # of one shape, the newest
NAMED: Final = 12  # changes that a caption leads to; the table has them all


@dataclass(frozen=True, slots=True)
class FrontierRecord:
    """A configuration that took the frontier, by its newest receipt of that week: its level in tokens a second a chip
    by then, and its MFU.

    `before` says that it did so before the weeks that are shown, and that it held when they began.
    """

    receipt: Ref
    week: str
    rate: float
    mfu: float | None
    before: bool


@dataclass(frozen=True, slots=True)
class ShapeCourse:
    """One shape: what took its frontier in the order of time, and the best configuration of each week by itself.

    What took it is proven, and valid under the present rules; the weeks' best were valid when they came in.
    """

    name: str
    taken: tuple[FrontierRecord, ...]
    best: tuple[tuple[str, float], ...]


def courses(reader: ReportReader, lane: str, results: Iterable[BestResult], end: datetime) -> tuple[ShapeCourse, ...]:
    """The courses of a lane's shapes over the weeks before ``end``, those that moved in the last of them first."""
    from receipts.store.query.reports import SHAPE

    last = Week.of(end - timedelta(microseconds=1))
    since = last.since - timedelta(weeks=WEEKS - 1)
    chosen = sorted(results, key=lambda item: not item.in_week)[:MOST]
    rows = {row.id: row for row in reader.stored.entries([item.receipt.id for item in chosen])} if chosen else {}
    lines = []
    for item in chosen:
        shape: dict[str, Any] = {name: getattr(rows[item.receipt.id], name) for name in SHAPE}
        every = reader.stored.course(shape, end - timedelta(microseconds=1), LAUNCHES)
        kept = [row for row in every if row.id not in reader.left_out]
        if taken := _taken(kept, since, reader):
            name = f"{series(item, chosen)} · {number(item.sequence_length)} tokens"
            lines.append(ShapeCourse(name, taken=tuple(taken), best=tuple(_best(kept, since))))
    return tuple(lines)


def _week(row: CourseLaunch, since: datetime) -> str:
    """The week in which a launch ran; those before the weeks shown are one."""
    return str(Week.of(row.ran)) if row.ran >= since else ""


def _taken(rows: Sequence[CourseLaunch], since: datetime, reader: ReportReader) -> list[FrontierRecord]:
    """What led when each week was over, where another had led before. Only those that would lead are judged."""
    held: dict[int, list[CourseLaunch]] = {}
    levels: dict[int, Level] = {}
    records: list[FrontierRecord] = []
    leader: int | None = None
    for week, group in groupby(rows, key=lambda row: _week(row, since)):
        for row in group:
            held.setdefault(row.number, []).append(row)
            levels.pop(row.number, None)
        for place in held.keys() - levels.keys():
            levels[place] = _level(held[place])
        proven = [place for place, one in levels.items() if one.is_settled]
        for place in sorted(proven, key=lambda place: (-levels[place].floor, place)):
            if place == leader:
                break
            item = reader.item(reader.entry(held[place][-1].id))
            if item.rate_status != "valid":
                continue
            leader, rate = place, levels[place].value
            share = (
                None if item.spoilt(Taint.MFU) or not item.entry.mfu else item.entry.mfu * rate / held[place][-1].rate
            )
            records.append(FrontierRecord(item.ref, week or str(Week.of(held[place][-1].ran)), rate, share, not week))
            break
    return records


def _level(rows: Iterable[CourseLaunch]) -> Level:
    return level_by_session([(row.rate, row.started, row.session) for row in rows])


def _best(rows: Sequence[CourseLaunch], since: datetime) -> list[tuple[str, float]]:
    """Of each week that is shown the highest mean of one configuration's launches."""
    weeks: dict[tuple[str, int], list[CourseLaunch]] = {}
    for row in rows:
        if week := _week(row, since):
            weeks.setdefault((week, row.number), []).append(row)
    rates: dict[str, float] = {}
    for (week, _), group in weeks.items():
        rates[week] = max(rates.get(week, 0.0), _level(group).value)
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
        f"{title}: what led each shape when the week was over, the geometric mean of its launches by then. A number "
        "names the newest receipt of it. A small hollow mark is the best mean of a week's launches by themselves. "
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
