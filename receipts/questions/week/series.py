"""What a report draws: courses of shapes over weeks, steps of compared launches, memory by chip.

Launches stay apart: the spread between medians is what a comparison rests on, and pooled steps would hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.base.text import UNKNOWN
from receipts.metrics.chips import Chip
from receipts.metrics.registry import Taint
from receipts.questions.week.interval import Week
from receipts.questions.week.ref import Ref
from receipts.stats.noise import Level, level_by_session

if TYPE_CHECKING:
    from receipts.metrics import Launch
    from receipts.questions.week.data import BestResult, JudgedPair
    from receipts.questions.week.memory import Headroom
    from receipts.questions.week.reader import ReportReader
    from receipts.store.query.reports import CourseLaunch


MAX_WEEKS: Final = 26
MAX_SHAPES: Final = 4  # shapes
MAX_COURSE_LAUNCHES: Final = 5_000  # of one shape, the newest


@dataclass(frozen=True, slots=True)
class FrontierRecord:
    """A configuration that took the frontier, by its newest receipt of that week, which `ran` then: its level in tokens
    a second a chip by then, `low` to `high` its 95 % interval, and its MFU.

    `before` says that it did so before the weeks that are shown, and that it held when they began.
    """

    receipt: Ref
    week: str
    rate: float
    mfu: float | None
    before: bool
    ran: datetime
    low: float | None
    high: float | None


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
    since = last.since - timedelta(weeks=MAX_WEEKS - 1)
    chosen = sorted(results, key=lambda item: not item.in_week)[:MAX_SHAPES]
    rows = {row.id: row for row in reader.stored.entries([item.receipt.id for item in chosen])} if chosen else {}
    lines = []
    for item in chosen:
        shape: dict[str, Any] = {name: getattr(rows[item.receipt.id], name) for name in SHAPE}
        every = reader.stored.course(shape, end - timedelta(microseconds=1), MAX_COURSE_LAUNCHES)
        kept = [row for row in every if row.id not in reader.left_out]
        if taken := _taken(kept, since, reader):
            tokens = f"{item.sequence_length:,}" if item.sequence_length is not None else UNKNOWN
            name = f"{item.series(chosen)} · {tokens} tokens"
            lines.append(ShapeCourse(name, taken=tuple(taken), best=tuple(_best_of_weeks(kept, since))))
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
            levels[place] = _level_of(held[place])
        proven = [place for place, one in levels.items() if one.is_settled]
        for place in sorted(proven, key=lambda place: (-levels[place].floor, place)):
            if place == leader:
                break
            item = reader.item(reader.entry(held[place][-1].id))
            if item.rate_status != "valid":
                continue
            leader, level, last = place, levels[place], held[place][-1]
            rate = level.value
            share = None if item.spoilt(Taint.MFU) or not item.entry.mfu else item.entry.mfu * rate / last.rate
            when = week or str(Week.of(last.ran))
            records.append(FrontierRecord(item.ref, when, rate, share, not week, last.ran, level.low, level.high))
            break
    return records


def _level_of(rows: Iterable[CourseLaunch]) -> Level:
    return level_by_session([(row.rate, row.started, row.session) for row in rows])


def _best_of_weeks(rows: Sequence[CourseLaunch], since: datetime) -> list[tuple[str, float]]:
    """Of each week that is shown the highest mean of one configuration's launches."""
    weeks: dict[tuple[str, int], list[CourseLaunch]] = {}
    for row in rows:
        if week := _week(row, since):
            weeks.setdefault((week, row.number), []).append(row)
    rates: dict[str, float] = {}
    for (week, _), group in weeks.items():
        rates[week] = max(rates.get(week, 0.0), _level_of(group).value)
    return sorted(rates.items())


MAX_MARKS: Final = 1000  # of the newest launches of a lane, among which those of its leading shape are looked for


@dataclass(frozen=True, slots=True)
class LaunchMark:
    """A launch in a picture: when it ran, its rate in tokens a second a chip, and its status as it was stored."""

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
        LaunchMark(one.finished or one.started, one.tokens_per_second_per_chip, one.status)
        for one in sorted(alike, key=lambda one: one.started)
        if one.tokens_per_second_per_chip
    ]
    taken: list[FrontierRecord] = []
    if leader.standing == "proven":
        shape: dict[str, Any] = {name: getattr(row, name) for name in SHAPE}
        every = reader.stored.course(shape, end - timedelta(microseconds=1), MAX_COURSE_LAUNCHES)
        taken = _taken([one for one in every if one.id not in reader.left_out], since, reader)
    return LaneCourse(lane, leader.series(ranked), leader, tuple(marks), tuple(taken))


Side = Literal["A", "B"]


SHARES: Final = tuple(index / 20 for index in range(21))  # the quantiles that a row is drawn from


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """One launch: quantiles of its steps in seconds at `SHARES`, of ``kept`` of ``steps`` steps.

    ``steady`` says that those kept are its steady segment; otherwise they are all that no flag leaves out. ``tokens``
    is what a step takes in, None where it is not known.
    """

    side: Side
    quantiles: tuple[float, ...]
    kept: int
    steps: int
    steady: bool
    tokens: int | None

    @property
    def median(self) -> float:
        """The middle one, in seconds."""
        return self.quantiles[len(SHARES) // 2]


MAX_COMPARED: Final = 2  # comparisons of a lane
MAX_TIMED: Final = 10  # of a side
PER: Final = 1000  # tokens


@dataclass(frozen=True, slots=True)
class Timed(LaunchSteps):
    """Steps of one launch, with its receipt."""

    receipt: Ref

    def per(self, tokens: int | None) -> Timed:
        """The same for so many tokens; for a step without a number."""
        scale = tokens / self.tokens if tokens and self.tokens else 1.0
        return replace(self, quantiles=tuple(value * scale for value in self.quantiles))


@dataclass(frozen=True, slots=True)
class ComparedSteps:
    """A comparison with its launches. `more` launches are left out."""

    a: Ref
    b: Ref
    changed: tuple[str, ...]
    launches: tuple[Timed, ...]
    more: int

    @property
    def per(self) -> int | None:
        """Tokens whose time is drawn, where steps of the two sides differ in what they take in; None for a step."""
        sizes = {one.tokens for one in self.launches}
        return PER if len(sizes) > 1 and None not in sizes and 0 not in sizes else None

    @property
    def measure(self) -> str:
        """What is drawn, in words."""
        return f"time of {self.per:,} tokens" if self.per else "step time"


def compared(reader: ReportReader, judged: Sequence[JudgedPair]) -> tuple[ComparedSteps, ...]:
    """The first of these comparisons whose sides both kept their steps."""
    pairs: list[ComparedSteps] = []
    for item in judged:
        if len(pairs) == MAX_COMPARED:
            break
        if item.ratio is None or item.stated:
            continue
        rows = {row.id: row for row in reader.stored.entries([ref.id for ref in (*item.a, *item.b)])}
        moved = [one.path for one in item.moved]
        steps = steps_of(item.a, item.b, moved, lambda ref, rows=rows: reader.launch(rows[ref.id]))  # type: ignore[misc]
        pairs += [steps] if steps is not None else []
    return tuple(pairs)


def steps_of(
    a: Sequence[Ref], b: Sequence[Ref], changed: Sequence[str], launch: Callable[[Ref], Launch]
) -> ComparedSteps | None:
    """The steps of both sides; None where no launch of one of them kept any."""
    sides: tuple[tuple[Side, Sequence[Ref]], ...] = (("A", a), ("B", b))
    held = [one for side, refs in sides for ref in refs[:MAX_TIMED] if (one := _timed(side, ref, launch(ref)))]
    if {one.side for one in held} != {"A", "B"}:
        return None
    left = sum(max(0, len(refs) - MAX_TIMED) for _, refs in sides)
    return ComparedSteps(a[0], b[0], tuple(changed[:2]), tuple(held), left)


def _timed(side: Side, ref: Ref, launch: Launch) -> Timed | None:
    from receipts.stats.distributions import quantile

    segment = launch.segment
    if segment is None or not segment.kept:
        return None
    ordered = sorted(segment.of(launch.durations))
    spread = tuple(quantile(ordered, share) for share in SHARES)
    steady = segment.status == "steady"
    return Timed(side, spread, len(ordered), len(launch.durations), steady, launch.tokens_per_step, ref)


MAX_CHIPS: Final = 8  # launches


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a launch in the phase in which the tightest of them is; `wanted` is what the lane wants kept.

    `count`, `hosts`, `physical` and `accelerator` say how they stand, as far as the receipt does.
    """

    receipt: Ref
    lane: str
    phase: str
    wanted: float
    chips: tuple[Chip, ...]
    count: int | None
    hosts: int | None
    physical: str | None
    accelerator: str | None

    @property
    def ordered(self) -> list[Chip]:
        """The chips with a value, the tightest first."""
        known = [item for item in self.chips if highest(item)]
        return sorted(known, key=lambda item: (-self.share(item), item.chip))

    def share(self, item: Chip) -> float:
        """What a chip used of its limit, or of what the fullest one used where it states none."""
        return highest(item) / (item.limit or max(map(highest, self.chips)))


def highest(item: Chip) -> int:
    """A chip's live peak in bytes, else the pool's, else what was in use; 0 where it states none."""
    return next((size for size in (item.peak, item.pool, item.used) if size is not None), 0)


def chips(reader: ReportReader, listed: Iterable[Headroom]) -> tuple[Chips, ...]:
    """The chips of the first of these launches."""
    shown = tuple(listed)[:MAX_CHIPS]
    rows = {row.id: row for row in reader.stored.entries([item.receipt.id for item in shown])} if shown else {}
    launches = []
    for item in shown:
        launch = reader.launch(rows[item.receipt.id])
        phase = launch.account.get(item.phase)
        if phase is None:
            continue
        hardware = launch.parsed.receipt.hardware
        launches.append(
            Chips(
                *(item.receipt, item.lane, item.phase, item.wanted, phase.chips),
                count=launch.account.stated,
                hosts=hardware.hosts if hardware else None,
                physical=hardware.physical if hardware else None,
                accelerator=hardware.accelerator if hardware else None,
            )
        )
    return tuple(launches)
