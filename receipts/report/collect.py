"""From a store to the values of a weekly report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from receipts.errors import NotFound
from receipts.judge import VERSION
from receipts.report import frontier, trouble
from receipts.report.data import Counts, Described, LaneWeek, Ref, WeekData
from receipts.report.noise import noise
from receipts.report.pairs import Pairs, cut, pairs
from receipts.report.sections.gathered import gather
from receipts.report.sections.rules import catalogue, cited
from receipts.report.shelf import FAILED, Item, Shelf, order, ran
from receipts.report.week import Week
from receipts.report.weekly import page
from receipts.rulebook import Rulebook
from receipts.verdict import Level

if TYPE_CHECKING:
    from receipts.store import Entry, Store

SCHEMA = "1.0"
MOST_RESULTS = 24
MOST_PAIRS = 12
MOST_ACCEPTED = 60
MOST_ROWS = 40
MOST_CHIPS = 12
MOST_NOTES = 6


def collect(store: Store, rulebook: Rulebook, week: Week, as_of: datetime, lanes: Sequence[str] = ()) -> WeekData:
    """Gather one week as it stood at its end, or at ``as_of`` before that: what ran later is not looked at.

    A receipt counts in the week in which it finished, else started, in UTC. What the store says of a receipt, such as
    that it is superseded, is taken as of now. Raises NotFound for a lane that neither the rulebook nor the store has.
    """
    shelf = Shelf(store, rulebook, min(as_of, week.until - timedelta(microseconds=1)), lanes)
    _check_lanes(lanes, rulebook, shelf.rows)
    rows = [row for row in shelf.rows if week.holds(ran(row))]
    items = shelf.items(row for row in rows if row.stands)
    found = pairs(shelf, [item.entry for item in items], rulebook)
    every = (_lane(name, shelf, rows, items, found) for name in sorted({row.lane for row in shelf.rows}))
    held = {row.lane for row in rows}
    made = tuple(lane for lane in every if lane.name in held or lane.frontier)
    end = min(as_of + timedelta(microseconds=1), week.until)
    failed = [row for row in rows if row.stands and row.outcome in FAILED]
    told = gather(store, rulebook, (week.since, end), lanes, made, items, failed)
    failures, headroom = trouble.failures(shelf, items), trouble.headroom(items)
    incidents = trouble.incidents(items)
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
        compared=found.compared,
        adjusted=found.adjusted,
        lanes=made,
        failures=tuple(failures[:MOST_ROWS]),
        failures_more=max(0, len(failures) - MOST_ROWS),
        headroom=tuple(headroom[:MOST_CHIPS]),
        headroom_more=max(0, len(headroom) - MOST_CHIPS),
        incidents=tuple(incidents[:MOST_ROWS]),
        incidents_more=max(0, len(incidents) - MOST_ROWS),
        receipts=(),
        last_week=str(Week.of(ran(shelf.rows[-1]))) if shelf.rows and not rows else None,
        sections=told,
    )
    rules = catalogue(rulebook.rules, cited(page(data).sections))
    return _with_receipts(replace(data, sections=replace(told, rules=rules)), shelf, store)


def _check_lanes(lanes: Sequence[str], rulebook: Rulebook, rows: Iterable[Entry]) -> None:
    known = {*rulebook.lanes.names(), *(row.lane for row in rows)}
    for name in lanes:
        if name not in known:
            raise NotFound(f"there is no lane {name!r}; known: {', '.join(sorted(known))}; see: receipts lanes")


def _counts(rows: Sequence[Entry], items: Sequence[Item]) -> Counts:
    status = [item.verdict.status for item in items]
    return Counts(
        submitted=len(rows),
        valid=status.count("valid"),
        unwitnessed=status.count("unwitnessed"),
        invalid=status.count("invalid"),
        superseded=len(rows) - len(items),
    )


def _lane(name: str, shelf: Shelf, week: Sequence[Entry], items: Sequence[Item], found: Pairs) -> LaneWeek:
    lane = shelf.lane(name)
    rows = [row for row in shelf.rows if row.lane == name]
    ids = {row.id for row in week}
    best, best_more = frontier.cut(frontier.frontier(shelf, rows, ids), MOST_RESULTS)
    told, told_more = frontier.cut(frontier.stated(shelf, rows, ids), MOST_RESULTS)
    judged = found.by_lane.get(name, [])
    accepted, accepted_more = cut(judged, "accepted", MOST_ACCEPTED)
    inconclusive, inconclusive_more = cut(judged, "inconclusive", MOST_PAIRS)
    refused, refused_more = cut(judged, "rejected", MOST_PAIRS)
    return LaneWeek(
        name=name,
        title=lane.title,
        version=lane.version,
        counts=_counts([row for row in week if row.lane == name], [item for item in items if item.entry.lane == name]),
        frontier=best,
        frontier_more=best_more,
        stated=told,
        stated_more=told_more,
        accepted=accepted,
        accepted_more=accepted_more,
        inconclusive=inconclusive,
        inconclusive_more=inconclusive_more,
        refused=refused,
        refused_more=refused_more,
        noise=noise(found.configurations.get(name, ()), lane),
    )


def _with_receipts(data: WeekData, shelf: Shelf, store: Store) -> WeekData:
    """The same with its appendix: every receipt that a number of it stands on, in the order in which they ran."""
    wanted = {ref.id for ref in _refs(data)}
    rows = [row for row in shelf.rows if row.id in wanted]
    # A decision or a claim may name what ran later, or elsewhere.
    others = wanted - {row.id for row in rows}
    rows += [store.entry(name) for name in sorted(others)]
    return replace(data, receipts=tuple(_described(shelf.item(row)) for row in sorted(rows, key=order)))


def _refs(data: WeekData) -> Iterator[Ref]:
    for lane in data.lanes:
        yield from (item.receipt for item in (*lane.frontier, *lane.stated))
        for pair in (*lane.accepted, *lane.inconclusive, *lane.refused):
            yield from (*pair.a, *pair.b)
    for failed in data.failures:
        yield from (failed.receipt, *failed.earlier)
    yield from (item.receipt for item in data.headroom)
    for incident in data.incidents:
        yield from incident.receipts
    yield from data.sections.refs()


def _described(item: Item) -> Described:
    run, row = item.parsed.receipt.run, item.entry
    errors = dict.fromkeys(found.code for found in item.verdict.findings if found.level is Level.ERROR)
    return Described(
        receipt=item.ref,
        launch=run.launch,
        lane=row.lane,
        kind=row.kind,
        outcome=row.outcome,
        provenance=row.provenance,
        status=item.verdict.status,
        path=item.verdict.path,
        started=run.started_stated or f"{row.started:%Y-%m-%d %H:%M} UTC",
        finished=f"{row.finished:%Y-%m-%d %H:%M} UTC" if row.finished else None,
        context=row.context,
        notes=tuple(_notes(item)),
        errors=tuple(errors),
        superseded_by=None if row.stands else row.superseded_by or "",
    )


def _notes(item: Item) -> Iterator[tuple[str, str]]:
    notes = item.parsed.receipt.notes or {}
    texts = [(key, value) for key, value in notes.items() if isinstance(value, str)]
    yield from texts[:MOST_NOTES]
