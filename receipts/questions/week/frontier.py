"""The frontier: the best configuration of every shape by what its launches show together, a faster peak beside it,
and the best that is merely stated.

Rows of the store give the candidates, the present rules decide. A shape is a geometry (the axes of the model and the
accelerator), a depth, a sequence length and a number of chips; names and families are shown and not compared. Each is
a result with its numbers, answers, and change since the interval began.

What a report draws of it is its course: over weeks, with every launch of the leading shape, and who took it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts import metrics
from receipts.axes import is_off
from receipts.axes.difference import value_at
from receipts.axes.lineage import ran_on
from receipts.axes.shape import described, substrate_of, target_of
from receipts.judging.verdict import Level, Question
from receipts.metrics.registry import Taint
from receipts.questions.answers import answers, work
from receipts.questions.commands import recipe
from receipts.questions.week.data import BestResult, Cut, FrontierMove, Ref, ref_of
from receipts.questions.week.interval import Week
from receipts.questions.week.links import PROVENANCES
from receipts.questions.week.reader import Item, ReportReader
from receipts.stats.noise import Level as RateLevel
from receipts.stats.noise import level_by_session
from receipts.store.query.reports import SHAPE

if TYPE_CHECKING:
    from receipts.questions.week.links import Links
    from receipts.store import Entry
    from receipts.store.query.reports import CourseLaunch, ReportScope


MAX_CONFIGURATIONS: Final = 8  # of a shape that are looked at, of repeated ones and of single launches each
MAX_JUDGED: Final = 4  # of these, whose launches are judged until one is proven
MAX_LAUNCHES: Final = 50  # of one configuration, the newest
MAX_STATED: Final = 8  # launches of a shape that are stated
Shape = tuple[object, ...]
Standing = Literal["proven", "unsettled", "peak"]
_ORDER: Final[tuple[Standing, ...]] = ("proven", "unsettled", "peak")


@dataclass(frozen=True, eq=False)
class Leader:
    """A configuration in a frontier: the level of its valid launches, the newest of them, and the fastest.

    ``number`` is that of the configuration in the store.
    """

    item: Item
    number: int
    level: RateLevel
    fastest: Entry

    @property
    def standing(self) -> Standing:
        """*Proven* by launches that agree, *unsettled* where they do not yet, a *peak* where one launch reached it."""
        return standing_of(self.level)


@dataclass(frozen=True, eq=False)
class Best:
    """The best of a shape, and the one that was best when the interval began; None where none was.

    ``peak`` is another configuration, one launch of which was faster than what leads; None where there is none.
    """

    now: Leader
    before: Leader | None
    peak: Leader | None = None

    @property
    def moved(self) -> bool:
        """Whether the interval brought it: another launch of the configuration that led is no move."""
        return self.before is None or self.before.number != self.now.number


@dataclass(frozen=True)
class Frontiers:
    """Every lane's best configurations, in the order of their shapes, and how many shapes nobody could decide.

    A shape is open where no launch of its first candidates is valid and there are more. ``left_out`` are launches that
    would be results but for a decision, or for a feature that they lost: how many of a lane, by the reason.
    """

    by_lane: Mapping[str, Sequence[Best]]
    undecided: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]


def standing_of(held: RateLevel) -> Standing:
    """What a level may be called."""
    if held.launches == 1:
        return "peak"
    return "proven" if held.is_settled else "unsettled"


def rank_of(held: RateLevel) -> tuple[int, float, float]:
    """What levels of one shape are ordered by: proven ones first, by what they are at least."""
    return _ORDER.index(standing_of(held)), -held.floor, -held.value


def frontiers(reader: ReportReader) -> Frontiers:
    """The best valid results of each shape until the reader's moment, and until its interval began."""
    now = _Leading(reader, reader.scope)
    held = _Leading(reader, reader.scope.before(reader.since)).by_shape if reader.since is not None else {}
    by_lane: dict[str, list[Best]] = defaultdict(list)
    for shape, (leader, peak) in now.by_shape.items():
        by_lane[leader.item.entry.lane].append(Best(leader, held[shape][0] if shape in held else None, peak))
    for held_by_lane in by_lane.values():
        held_by_lane.sort(key=lambda best: _order(best.now.item.entry))
    return Frontiers(dict(by_lane), now.undecided, now.left_out)


class _Leading:
    """What leads each shape until a moment, with a faster peak beside it."""

    def __init__(self, reader: ReportReader, scope: ReportScope) -> None:
        self._reader = reader
        self.by_shape: dict[Shape, tuple[Leader, Leader | None]] = {}
        self.undecided: Counter[str] = Counter()
        self.left_out: dict[str, Counter[str]] = defaultdict(Counter)
        numbers: dict[Shape, list[int]] = defaultdict(list)
        for one in reader.stored.configurations(scope, reader.rules, MAX_CONFIGURATIONS):
            numbers[one.shape].append(one.number)
        every = sorted(number for held in numbers.values() for number in held)
        rows = reader.stored.results(every, scope, reader.rules, MAX_LAUNCHES) if every else {}
        for shape, candidates in numbers.items():
            self._lead(shape, {number: rows[number] for number in candidates if number in rows})

    def _lead(self, shape: Shape, candidates: Mapping[int, Sequence[Entry]]) -> None:
        lane = str(shape[0])
        groups: dict[int, list[Entry]] = {}
        for number, held in candidates.items():
            # One receipt of each launch, without what was decided to lead no frontier.
            kept = {row.launch: row for row in held if row.id not in self._reader.left_out}
            if dropped := len({row.launch for row in held} - kept.keys()):
                self.left_out[lane]["decided drop"] += dropped
            if kept:
                groups[number] = list(kept.values())
        # Configurations of one shape without a feature that their lane requires and that another of them has.
        reader = self._reader
        lost: dict[int, str] = {}
        for path in reader.lane(lane).required_leaves if len(groups) > 1 else ():
            launches = {number: reader.launch(rows[0]) for number, rows in groups.items()}
            values = {number: value_at(one.parsed, one.settings.effective, path) for number, one in launches.items()}
            if any(value is not None and not is_off(value) for value in values.values()):
                off = (number for number, value in values.items() if value is not None and is_off(value))
                lost |= dict.fromkeys(off, f"without {path}, which the lane requires")
        for number, why in lost.items():
            self.left_out[lane][why] += len(groups.pop(number))
        ordered = sorted(groups, key=lambda number: (rank_of(level_of(groups[number])), number))
        leaders: list[Leader] = []
        for number in ordered[:MAX_JUDGED]:
            if (leader := _leader(self._reader, number, groups[number])) is not None:
                leaders.append(leader)
                if leader.standing == "proven":
                    break
        if leaders:
            best = min(leaders, key=lambda leader: rank_of(leader.level))
            self.by_shape[shape] = best, _peak(self._reader, best, groups)
        elif len(ordered) > MAX_JUDGED:
            self.undecided[lane] += 1


def _leader(reader: ReportReader, number: int, rows: Sequence[Entry]) -> Leader | None:
    """A configuration by those of its launches that are valid under the present rules; None where none is."""
    valid = [item for item in reader.items(rows) if is_valid(item)]
    if not valid:
        return None
    kept = [item.entry for item in valid]
    return Leader(max(valid, key=lambda item: item.entry.seq), number, level_of(kept), max(kept, key=rate))


def _peak(reader: ReportReader, best: Leader, groups: Mapping[int, Sequence[Entry]]) -> Leader | None:
    """Another configuration, of which a valid launch was faster than what leads; the fastest of them."""
    faster = {number: row for number, rows in groups.items() if rate(row := max(rows, key=rate)) > best.level.value}
    faster.pop(best.number, None)
    for number in sorted(faster, key=lambda number: -rate(faster[number]))[:MAX_JUDGED]:
        leader = _leader(reader, number, groups[number])
        if leader is not None and rate(leader.fastest) > best.level.value:
            return leader
    return None


def level_of(rows: Iterable[Entry]) -> RateLevel:
    """The level of some launches of one configuration, in tokens a second a chip."""
    return level_by_session([(rate(row), row.started, row.session) for row in rows])


def stated(items: Iterable[Item]) -> list[Item]:
    """The best stated result of each shape among these: not witnessed, its rate not spoilt by an error."""
    by_id = {item.entry.id: item for item in items}
    results = []
    for candidates in shapes(item.entry for item in by_id.values()).values():
        ordered = sorted(candidates, key=lambda row: (-rate(row), row.seq))
        for item in (by_id[row.id] for row in ordered[:MAX_STATED]):
            rated = item.entry.tokens_per_second_per_chip is not None and item.entry.rate_source != "unsteady"
            if rated and item.may_lead and not is_valid(item) and not item.spoilt(Taint.RATE):
                results.append(item)
                break
    return sorted(results, key=lambda item: _order(item.entry))


def shapes(rows: Iterable[Entry]) -> dict[Shape, list[Entry]]:
    """Rows that may be a result, by shape: standing training launches that ended well and have a rate."""
    by_shape: dict[Shape, list[Entry]] = defaultdict(list)
    for row in rows:
        plain = row.stands and row.kind == "training" and row.outcome == "ok" and row.provenance in PROVENANCES
        if plain and rate(row) > 0:
            by_shape[tuple(getattr(row, name) for name in SHAPE)].append(row)
    return by_shape


def rate(row: Entry) -> float:
    """Tokens a second a chip; where chips are not stated there is none, and the total orders the candidates."""
    return row.tokens_per_second_per_chip or row.tokens_per_second or 0.0


def is_valid(item: Item) -> bool:
    """Whether it is a result that counts: valid, its steps kept, its chips stated, and not left out of the frontier."""
    measured = item.rate_status == "valid" and item.kept_steps and item.entry.tokens_per_second_per_chip is not None
    return measured and item.may_lead


def _order(row: Entry) -> tuple[object, ...]:
    names, sizes = (row.family, row.model, row.accelerator), (row.sequence_length, row.chips, row.depth, row.geometry)
    return (*(name or "~" for name in names), *(size or 0 for size in sizes))


_RATE = "tokens_per_second_per_chip"


def result(
    item: Item, since: datetime | None, leader: Leader | None = None, change: FrontierMove | None = None
) -> BestResult:
    """A launch as a result, read from its document; what ran from ``since`` on is of the interval.

    With ``leader`` it stands for that configuration: rate and MFU are those of all of its launches together.
    """
    row, launch = item.entry, item.launch
    per_chip, mfu, peak = (launch.read(metrics.get(name)) for name in (_RATE, "mfu", "peak_bytes"))
    share = None if item.spoilt(Taint.MFU) else mfu.value
    level = leader.level if leader is not None else None
    if level is not None and share is not None and per_chip.value:
        share *= level.value / per_chip.value
    heavy = [finding for finding in item.verdict.findings if finding.level is not Level.SHOWN]
    evidence = {finding.code for finding in heavy if finding.question in (Question.PATH, Question.EFFECT)}
    open_codes = evidence or {finding.code for finding in heavy}
    known = described(item.parsed.stated)
    return BestResult(
        receipt=item.ref,
        answers=tuple(answers(item.parsed, item.lane, item.verdict, item.facts, item.reader.rulebook.rules)),
        shape=str(launch.settings.shape),
        family=known.family,
        model=known.name,
        axes=known.model,
        layout=known.layout,
        accelerator=row.accelerator,
        sequence_length=row.sequence_length,
        chips=row.chips,
        standing=leader.standing if leader is not None else "reported",
        target=named.name if (named := target_of(item.parsed, item.lane)) is not None else None,
        is_substrate=substrate_of(item.parsed, item.lane) is not None,
        tokens_per_second_per_chip=level.value if level is not None else per_chip.value,
        rate_source=per_chip.source,
        mfu=share,
        mfu_basis=item.launch.basis if share is not None else None,
        peak_bytes=None if item.spoilt(Taint.MEMORY) else peak.value,
        in_week=in_interval(item, since),
        provenance=row.provenance,
        open_questions=tuple(sorted(open_codes)),
        work=work(launch, item.verdict.findings, item.reader.rulebook.rules),
        change=change,
        launches=level.launches if level is not None else None,
        sessions=level.sessions if level is not None else None,
        low=level.low if level is not None else None,
        high=level.high if level is not None else None,
        fastest=ref_of(leader.fastest) if leader is not None and leader.level.launches > 1 else None,
        fastest_rate=rate(leader.fastest) if leader is not None and leader.level.launches > 1 else None,
        micro_batch=row.micro_batch,
        depth=row.depth,
        lineage=str(ran_on(item.parsed, item.lane) or ""),
        repeatable=not recipe(item.parsed).missing,
    )


def peak(leader: Leader, reader: ReportReader) -> BestResult:
    """The fastest launch of a configuration that does not lead its shape: the best of its launches, and no more."""
    item = reader.item(leader.fastest)
    beside = replace(result(item, reader.since, leader), standing="peak", low=None, high=None, fastest=None)
    reached = result(item, reader.since)
    return replace(beside, tokens_per_second_per_chip=rate(leader.fastest), mfu=reached.mfu, fastest_rate=None)


def in_interval(item: Item, since: datetime | None) -> bool:
    """Whether a launch ran in the interval."""
    return since is None or (item.entry.finished or item.entry.started) >= since


def change(best: Best, links: Links) -> FrontierMove:
    """What the interval did to the best of a shape."""
    now, before = best.now, best.before
    if before is None:
        return FrontierMove("new", None, None, None, None, None, None, ())
    was = before.level.value
    if not best.moved:
        return FrontierMove("same", before.item.ref, was, None, None, None, None, ())
    plain = now.level.value / was
    verdict = links.between(before.item, now.item, _RATE)
    if verdict is None:
        return FrontierMove("better", before.item.ref, was, plain, None, None, None, ())
    result = next((item for item in verdict.results if item.metric == _RATE), None)
    bounded = result is not None and result.effect.low is not None and result.effect.high is not None
    return FrontierMove(
        state="equal" if result is not None and result.effect.kind == "equivalent" else "better",
        was=before.item.ref,
        was_rate=was,
        ratio=result.ratio if result is not None and bounded else plain,
        low=result.effect.low if result is not None and bounded else None,
        high=result.effect.high if result is not None and bounded else None,
        comparable=verdict.comparable,
        moved=verdict.counted,
    )


def chosen(items: Sequence[Item], most: int, since: datetime | None) -> Cut[Item]:
    """Launches for a page, those of the interval kept first."""
    keep = {item.entry.id for item in sorted(items, key=lambda item: not in_interval(item, since))[:most]}
    return Cut(tuple(item for item in items if item.entry.id in keep), len(items) - len(keep))


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


def _taken(rows: Sequence[CourseLaunch], since: datetime, reader: ReportReader) -> list[FrontierRecord]:
    """What led when each week was over, where another had led before. Only those that would lead are judged."""
    held: dict[int, list[CourseLaunch]] = {}
    levels: dict[int, RateLevel] = {}
    records: list[FrontierRecord] = []
    leader: int | None = None
    # Week by week; those before the weeks shown are one.
    for _, group in groupby(rows, key=lambda row: Week.of(row.ran) if row.ran >= since else None):
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

    if not leaders:
        return None
    leader = leaders[0]
    (row,) = reader.stored.entries([leader.receipt.id])
    since = Week.of(end - timedelta(microseconds=1)).since - timedelta(weeks=MAX_WEEKS - 1)
    texts = (
        f"lane={lane}",
        "kind=training",
        "outcome=ok",
        f"started>={since.isoformat()}",
        f"started<{end.isoformat()}",
    )
    near = reader.store.find(Filters(tuple(map(condition, texts)), limit=MAX_MARKS))
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
