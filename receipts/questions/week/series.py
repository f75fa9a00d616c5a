"""What a report draws: the frontier of each lane over weeks, every launch of its leading shape, and who took it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from receipts.questions.week.interval import Week
from receipts.questions.week.ref import Ref
from receipts.stats.noise import Level, level_by_session

if TYPE_CHECKING:
    from receipts.questions.week.data import BestResult
    from receipts.questions.week.reader import ReportReader
    from receipts.store.query.reports import CourseLaunch


MAX_WEEKS: Final = 26
MAX_COURSE_LAUNCHES: Final = 5_000  # of one shape, the newest


@dataclass(frozen=True, slots=True)
class FrontierRecord:
    """A configuration that took the frontier, by its newest receipt of that week, which `ran` then: its level in tokens
    a second a chip by then, and `low` to `high` its 95 % interval.
    """

    receipt: Ref
    week: str
    rate: float
    ran: datetime
    low: float | None
    high: float | None


def _week(row: CourseLaunch, since: datetime) -> str:
    """The week in which a launch ran; those before the weeks shown are one."""
    return str(Week.of(row.ran)) if row.ran >= since else ""


def _taken(rows: Sequence[CourseLaunch], since: datetime, reader: ReportReader) -> list[FrontierRecord]:
    """What led when each week was over, where another had led before. Only those that would lead are judged."""
    held: dict[int, list[CourseLaunch]] = {}
    levels: dict[int, Level] = {}
    records: list[FrontierRecord] = []
    leader: int | None = None
    for _, group in groupby(rows, key=lambda row: _week(row, since)):
        for row in group:
            held.setdefault(row.number, []).append(row)
            levels.pop(row.number, None)
        for place in held.keys() - levels.keys():
            levels[place] = level_by_session([(row.rate, row.started, row.session) for row in held[place]])
        proven = [place for place, one in levels.items() if one.is_settled]
        for place in sorted(proven, key=lambda place: (-levels[place].floor, place)):
            if place == leader:
                break
            item = reader.item(reader.entry(held[place][-1].id))
            if item.rate_status != "valid":
                continue
            leader, level, last = place, levels[place], held[place][-1]
            when = str(Week.of(last.ran))
            records.append(FrontierRecord(item.ref, when, level.value, last.ran, level.low, level.high))
            break
    return records


MAX_MARKS: Final = 1000  # of the newest launches of a lane, among which those of its leading shape are looked for


@dataclass(frozen=True, slots=True)
class LaunchMark:
    """A launch in a picture: when it ran, its rate in tokens a second a chip, and how that was judged.

    An invalid MFU is none of it, as it keeps no launch from the frontier.
    """

    ran: datetime
    rate: float
    status: str


@dataclass(frozen=True, slots=True)
class LaneCourse:
    """The frontier of a lane: that of the shape that leads it, with every launch of it, and who took it when.

    ``shape`` is in words; ``leader`` leads it now, and ``taken`` is empty where nothing of it is proven.
    """

    lane: str
    shape: str
    leader: BestResult
    marks: tuple[LaunchMark, ...]
    taken: tuple[FrontierRecord, ...]


def lane_course(
    reader: ReportReader, lane: str, leaders: Sequence[BestResult], ranked: Iterable[BestResult], end: datetime
) -> LaneCourse | None:
    """The course of the shape of the first leader over the weeks before ``end``; None for a lane that nothing leads.

    ``ranked`` are all results of the lane, beside which its shape is called.
    """
    from receipts.store import Filters, condition
    from receipts.store.query.reports import SHAPE

    if not leaders:
        return None
    leader = leaders[0]
    (row,) = reader.stored.entries([leader.receipt.id])
    since = Week.of(end - timedelta(microseconds=1)).since - timedelta(weeks=MAX_WEEKS - 1)
    texts = (f"lane={lane}", "kind=training", "outcome=ok", f"started>={since.isoformat()}")
    until = condition(f"started<{end.isoformat()}")
    near = reader.store.find(Filters((*map(condition, texts), until), limit=MAX_MARKS))
    alike = [one for one in near if all(getattr(one, name) == getattr(row, name) for name in SHAPE)]
    marks = [
        LaunchMark(one.finished or one.started, one.tokens_per_second_per_chip, one.rate_status)
        for one in sorted(alike, key=lambda one: one.started)
        if one.tokens_per_second_per_chip
    ]
    taken: list[FrontierRecord] = []
    if leader.standing == "proven":
        shape: dict[str, Any] = {name: getattr(row, name) for name in SHAPE}
        every = reader.stored.course(shape, end - timedelta(microseconds=1), MAX_COURSE_LAUNCHES)
        taken = _taken([one for one in every if one.id not in reader.left_out], since, reader)
    return LaneCourse(lane, leader.series(ranked), leader, tuple(marks), tuple(taken))
