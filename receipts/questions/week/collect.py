"""From a store to the values of a report: its lanes, their courses, its other sections, and what all is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts.base.errors import NotFound, near
from receipts.base.plugins import services
from receipts.judging.judge import VERSION
from receipts.judging.rulebook import Rulebook
from receipts.questions.ceiling import MAX_GROUPS, Ceilings, ceilings
from receipts.questions.week.data import Cut, Described, LaneWeek, WeekCounts, noise, refs_in
from receipts.questions.week.documents import ReceiptFigures, described
from receipts.questions.week.events import (
    Claims,
    DecisionRow,
    Fallen,
    claims,
    decisions,
    fallen,
    judge_all,
    regressions,
)
from receipts.questions.week.failures import Failures, RepeatedFailure, RuleOffenses, failures, offenses, repeats
from receipts.questions.week.frontier import (
    Frontiers,
    LaneCourse,
    change,
    chosen,
    frontiers,
    lane_course,
    peak,
    result,
    stated,
)
from receipts.questions.week.interval import TimeRange, Week
from receipts.questions.week.links import Links, eligible
from receipts.questions.week.memory import Headroom, headroom
from receipts.questions.week.pairs import Pairs, ended, pairs, refusals, waiting
from receipts.questions.week.reader import FAILED, Item, ReportReader, order
from receipts.questions.week.survival import Retests, Survival, survival

if TYPE_CHECKING:
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.questions.week.data import JudgedPair
    from receipts.store import Entry, Store
    from receipts.store.decisions import Incident


class Looked(NamedTuple):
    """A receipt that the report looked at; `verdict` is None where it no longer stands and was judged no more."""

    entry: Entry
    verdict: ReceiptVerdict | None
    in_interval: bool


class Basis(NamedTuple):
    """Receipts in the order in which they ran, and the comparisons of each lane, those too that a page leaves out."""

    looked: Sequence[Looked]
    compared: Mapping[str, Sequence[JudgedPair]]


class Totals(NamedTuple):
    """How many comparisons were accepted, refused and left undecided."""

    accepted: int
    refused: int
    undecided: int


@dataclass(frozen=True, slots=True)
class WeekData:
    """A whole report. `week` names an ISO week, or the interval where none was asked for.

    `last_week` names the newest week with a receipt, where this one has none.
    `judged` receipts were judged anew for it; of the others the stored verdict under these rules holds. `added` is what
    plugins gathered for sections of theirs, by the name of the module; `courses` are those of the
    lanes, None for one that nothing leads.
    """

    schema_version: str
    week: str
    since: datetime
    until: datetime
    as_of: datetime
    store: str
    rules: str
    judge: str
    only_lanes: tuple[str, ...]
    counts: WeekCounts
    compared: int
    adjusted: int
    lanes: tuple[LaneWeek, ...]
    headroom: Cut[Headroom]
    receipts: tuple[Described, ...]
    judged: int
    last_week: str | None
    sections: Gathered
    added: Mapping[str, Any]
    courses: Mapping[str, LaneCourse | None]

    @property
    def totals(self) -> Totals:
        """How its comparisons ended."""
        return Totals(
            accepted=sum(lane.accepted.total for lane in self.lanes),
            refused=sum(lane.refused.total for lane in self.lanes),
            undecided=sum(lane.inconclusive.total for lane in self.lanes),
        )


@dataclass(frozen=True, slots=True)
class Gathered:
    """Sections by what they tell. `ceilings` are those of each lane."""

    survival: Survival
    decisions: Cut[DecisionRow]
    claims: Claims
    regressions: tuple[Incident, ...]
    offenses: tuple[RuleOffenses, ...]
    failures: Failures
    repeats: Cut[RepeatedFailure]
    fallen: Cut[Fallen]
    ceilings: Mapping[str, Ceilings]


def gather(
    reader: ReportReader,
    span: tuple[datetime, datetime],
    only: Sequence[str],
    lanes: Sequence[LaneWeek],
    items: Sequence[Item],
) -> Gathered:
    """The sections of a stretch, from its start to its end, the latter left out.

    ``items`` are receipts of the stretch, judged.
    """
    store, rulebook = reader.store, reader.rulebook
    since, until = span
    events = store.published.events_between(since, until)
    judged = judge_all(store, rulebook, events, until, only)
    return Gathered(
        survival=survival(reader, lanes, judged, Retests(reader, until)),
        decisions=decisions(store, events.decisions, only),
        claims=claims(judged),
        regressions=regressions(store, until, only),
        offenses=offenses(items),
        failures=failures(items),
        repeats=repeats(store, (item.entry for item in items if item.entry.outcome in FAILED), until),
        fallen=fallen(store, events, only),
        ceilings={lane.name: ceilings(store, lane.name, until=until, most=MAX_GROUPS) for lane in lanes},
    )


SCHEMA = "2.0"  # of report.json: the first number rises where a key is gone or means something else
MAX_RESULTS = 24
MAX_PAIRS = 12
MAX_ACCEPTED = 24
MAX_CHIPS = 12
AT_ONCE = 500


def collect(
    store: Store, rulebook: Rulebook, week: Week | TimeRange, as_of: datetime, lanes: Sequence[str] = ()
) -> WeekData:
    """The values of a report, as `collect_with_basis` gathers them."""
    return collect_with_basis(store, rulebook, week, as_of, lanes)[0]


def collect_with_basis(
    store: Store, rulebook: Rulebook, week: Week | TimeRange, as_of: datetime, lanes: Sequence[str] = ()
) -> tuple[WeekData, Basis]:
    """Gather an interval as it stood at its end, or at ``as_of`` before that: what ran later is not looked at.

    A receipt counts in the interval in which it finished, else started, in UTC. What the store says of a receipt, such
    as that it is superseded or pinned, is taken as of now. Raises NotFound for a lane that neither the rulebook nor the
    store has.
    """
    with store.one_state():
        reader = ReportReader(store, rulebook, min(as_of, week.until - timedelta(microseconds=1)), lanes, week.since)
        check_lanes(lanes, rulebook, reader)
        rows = reader.rows
        items = reader.items(row for row in rows if row.stands)
        best = frontiers(reader)
        links = Links(reader, [item for item in items if eligible(item.entry)])
        paired = pairs(links, {one.now.item.entry.id for held in best.by_lane.values() for one in held if one.moved})
        names = sorted({*(row.lane for row in rows), *best.by_lane, *best.undecided, *best.left_out})
        weeks = tuple(_lane(name, reader, rows, items, best, links, paired) for name in names)
        newest = None if rows else reader.stored.newest(reader.scope)
        end = min(as_of + timedelta(microseconds=1), week.until)
        gathered = gather(reader, (week.since, end), lanes, weeks, items)
        data = WeekData(
            schema_version=SCHEMA,
            week=str(week),
            since=week.since,
            until=week.until,
            as_of=as_of,
            store=store.id,
            rules=rulebook.rules.digest,
            judge=VERSION,
            only_lanes=tuple(lanes),
            counts=_counts(rows, items),
            compared=paired.compared,
            adjusted=paired.adjusted,
            lanes=weeks,
            headroom=headroom(reader, items, MAX_CHIPS),
            receipts=(),
            judged=0,
            last_week=None if newest is None else str(Week.of(newest)),
            sections=gathered,
            added={
                module.__name__: module.gathered(reader, weeks)
                for module in services("weekly")
                if hasattr(module, "gathered")
            },
            courses={one.name: lane_course(reader, one.name, one.leaders, one.ranked, end) for one in weeks},
        )
        return _with_receipts(data, reader), Basis(tuple(_looked(reader)), paired.by_lane)


def _looked(reader: ReportReader) -> Iterator[Looked]:
    """Rows of the interval, those too that no longer stand, and what was read beside them, as they ran."""
    judged = {item.entry.id: item for item in reader.looked_at}
    of_interval = {row.id for row in reader.rows}
    fallen = (row for row in reader.rows if row.id not in judged)
    for row in sorted((*(item.entry for item in judged.values()), *fallen), key=order):
        item = judged.get(row.id)
        yield Looked(row, item.verdict if item is not None else None, row.id in of_interval)


def check_lanes(lanes: Sequence[str], rulebook: Rulebook, reader: ReportReader) -> None:
    """Raise NotFound for lanes that are neither declared nor in the store."""
    known = set(rulebook.lanes.names())
    if not known.issuperset(lanes):
        known.update(reader.stored.lanes())
    wrong = [f"there is no lane {name!r}{near(name, known)}" for name in lanes if name not in known]
    if wrong:
        raise NotFound("\n".join([*wrong, f"known: {', '.join(sorted(known))}; see: receipts lanes"]))


def _counts(rows: Sequence[Entry], items: Sequence[Item]) -> WeekCounts:
    status = [item.verdict.status for item in items]
    return WeekCounts(
        submitted=len(rows),
        valid=status.count("valid"),
        open=status.count("open"),
        invalid=status.count("invalid"),
        superseded=len(rows) - len(items),
    )


def _lane(
    name: str,
    reader: ReportReader,
    every: Sequence[Entry],
    judged_items: Sequence[Item],
    frontier: Frontiers,
    links: Links,
    compared: Pairs,
) -> LaneWeek:
    lane = reader.lane(name)
    rows = [row for row in every if row.lane == name]
    items = [item for item in judged_items if item.entry.lane == name]
    held = {one.now.item.entry.id: one for one in frontier.by_lane.get(name, ())}
    judged = compared.by_lane.get(name, [])
    best = chosen([one.now.item for one in held.values()], MAX_RESULTS, reader.since)
    faster = {one.peak.item.entry.id: one.peak for one in held.values() if one.peak}
    peaks = chosen([one.item for one in faster.values()], MAX_RESULTS, reader.since)
    reported = chosen(stated(items), MAX_RESULTS, reader.since)
    return LaneWeek(
        name=name,
        title=lane.title,
        version=lane.version,
        counts=_counts(rows, items),
        frontier=best.map(
            lambda item: result(item, reader.since, held[item.entry.id].now, change(held[item.entry.id], links))
        ),
        peaks=peaks.map(lambda item: peak(faster[item.entry.id], reader)),
        undecided=frontier.undecided.get(name, 0),
        left_out=tuple(sorted(frontier.left_out.get(name, {}).items())),
        targets=tuple(target.name for target in lane.targets),
        stated=reported.map(lambda item: result(item, reader.since)),
        accepted=ended(judged, "accepted", MAX_ACCEPTED),
        inconclusive=ended(judged, "inconclusive", MAX_PAIRS),
        waiting=waiting(judged),
        refused=ended(judged, "rejected", MAX_PAIRS),
        refusals=refusals(judged, reader.rulebook.rules),
        configurations=compared.ran.get(name, 0),
        uncompared=compared.left_out.get(name, 0),
        noise=noise(compared.configurations.get(name, ()), lane),
    )


def _with_receipts(data: WeekData, reader: ReportReader) -> WeekData:
    """The same with its appendix: every receipt that a number of it rests on, in the order in which they ran.

    A decision or a claim may name what ran later, or elsewhere.
    """
    wanted = sorted({ref.id for ref in refs_in(data)})
    rows = [row for at in range(0, len(wanted), AT_ONCE) for row in reader.stored.entries(wanted[at : at + AT_ONCE])]
    items = reader.items(sorted(rows, key=order))
    receipts = []
    for item in items:
        row = item.entry
        figures = ReceiptFigures(row.tokens_per_second_per_chip, row.step_seconds, row.peak_bytes)
        shown = described(item.parsed, item.lane, item.verdict, figures)
        superseded = None if row.stands else row.superseded_by or ""
        receipts.append(replace(shown, receipt=item.ref, superseded_by=superseded))
    return replace(data, receipts=tuple(receipts), judged=reader.judged)
