"""What did not survive: gains that were shown beside the lane's targets, and what became of them there.

A gain of the week that was shown away from every target of its lane is looked for at the targets; a comparison of the
week at a target that is not a gain is looked for beside them. What was tried in neither place waits. The same change is
found elsewhere by a query on the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from receipts import metrics
from receipts.axes import OFF, UNSET, Difference, Member, difference_under
from receipts.axes.configuration import configuration
from receipts.axes.effective import axis_of, flag_text
from receipts.axes.lane import Lane
from receipts.axes.shape import meets, target_of
from receipts.base.errors import NotFound, UsageError
from receipts.judging.verdict import Comparison, Level
from receipts.questions.week.data import Cut, JudgedPair, LaneWeek, Moved, Ref, cut, ref_of
from receipts.questions.week.events import ClaimNow, JudgedClaims
from receipts.questions.week.reader import ReportReader, ran
from receipts.receipt import Parsed
from receipts.store import Condition, Entry, Filters


def is_gain(metric: str, effect: str, ratio: float | None) -> bool:
    """Whether an effect is a gain: proven faster, or indicated in that direction."""
    if effect == "indicated" and ratio is not None:
        return ratio > 1.0 if metrics.get(metric).better == "higher" else ratio < 1.0
    return effect == "faster"


MAX_TRIALS: Final = 24  # launches with the changed value, and as many without it
_COLUMNS: Final = {
    "hardware.chips": "chips",
    "batch.sequence_length": "sequence_length",
    "batch.global_batch": "global_batch",
    "model.depth": "depth",
}
Change = tuple[Member, ...]


@dataclass(frozen=True)
class Tried:
    """A change that was tried: launches of both sides, and what the comparison says; None where B did not end well."""

    a: Entry
    b: Entry
    verdict: Comparison | None

    @property
    def numbers(self) -> tuple[float | None, float | None, float | None]:
        """B over A, and its 95 % interval."""
        item = self.verdict.headline if self.verdict is not None else None
        return (item.ratio, item.effect.low, item.effect.high) if item is not None else (None, None, None)

    @property
    def gain(self) -> bool:
        """Whether B is faster, proven or indicated."""
        verdict = self.verdict
        accepted = verdict is not None and verdict.status != "rejected"
        return verdict is not None and accepted and is_gain(verdict.metric, verdict.effect, self.numbers[0])


def change_of(difference: Difference) -> Change:
    """The leaves that changed, in their order."""
    return tuple(member for change in difference.changed for member in change.members)


class Retests:
    """Looks for launches of a lane that tried a change, until a moment."""

    def __init__(self, reader: ReportReader, until: datetime) -> None:
        self._reader = reader
        self._store = reader.store
        self._until = until
        self._indexed: dict[str, bool] = {}
        self._tried: dict[tuple[object, ...], Tried | None] = {}

    @property
    def looked_for(self) -> int:
        """How many changes were looked for, each once."""
        return len(self._tried)

    def newest(self, change: Change, like: Parsed, lane: Lane, metric: str, *, at_target: bool) -> Tried | None:
        """The newest trial of a change at one of the lane's targets, or the newest elsewhere that was a gain.

        Each is looked for once.
        """
        key = (at_target, lane.name, metric, repr(change))
        if key not in self._tried:
            self._tried[key] = (self._at_target if at_target else self._elsewhere)(change, like, lane, metric)
        return self._tried[key]

    def _at_target(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        """The newest that can be compared, else the newest: one that recompiled says nothing of the change."""
        refused: Tried | None = None
        changed = {_COLUMNS.get(member.path) for member in change}
        for target in lane.targets:
            bounds = [(_COLUMNS[path], wanted) for path, wanted in target.bounds.items() if path in _COLUMNS]
            conditions = [Condition(name, "=", str(wanted)) for name, wanted in bounds if name not in changed]
            rows = self._rows(change, "b", like, lane, conditions)
            rows = (b for b in rows if meets(self._reader.launch(b).parsed, target.bounds))
            for b in self._once(rows, lane):
                tried = self._against(b, change, lane, metric, conditions)
                if tried is not None and (tried.verdict is None or tried.verdict.status != "rejected"):
                    return tried
                refused = refused or tried
        return refused

    def _elsewhere(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        rows = self._rows(change, "b", like, lane, [Condition("outcome", "=", "ok")])
        for b in self._once((b for b in rows if target_of(self._reader.launch(b).parsed, lane) is None), lane):
            tried = self._against(b, change, lane, metric, [])
            if tried is not None and tried.gain:
                return tried
        return None

    def _once(self, rows: Iterable[Entry], lane: Lane) -> Iterator[Entry]:
        """The newest launch of each configuration, as sound and with that outcome: the others were tried with it."""
        seen: set[tuple[bytes, str, str]] = set()
        for row in rows:
            status = self._reader.item(row).rate_status
            key = (configuration(self._store.parsed(row.id), lane).whole, row.outcome, status)
            if key not in seen:
                seen.add(key)
                yield row

    def _against(
        self, b: Entry, change: Change, lane: Lane, metric: str, conditions: Sequence[Condition]
    ) -> Tried | None:
        """One launch against the newest sound one that differs from it in this change alone, else the newest."""
        candidate = self._store.parsed(b.id)
        chosen: tuple[Entry, Parsed] | None = None
        for a in self._partners(candidate, change, lane, conditions):
            base = self._store.parsed(a.id)
            if a.launch == b.launch or change_of(difference_under(lane, base, candidate)) != change:
                continue
            if b.outcome != "ok":
                return Tried(a, b, None)
            sound = self._reader.item(a).rate_status != "invalid"
            chosen = (a, base) if sound else chosen or (a, base)
            if sound:
                break
        if chosen is None:
            return None
        against = self._reader.comparisons
        return Tried(chosen[0], b, against.compare([chosen[1]], [candidate], metric, named=(), beside=()))

    def _partners(
        self, candidate: Parsed, change: Change, lane: Lane, conditions: Sequence[Condition]
    ) -> Iterable[Entry]:
        """Launches that ended well and may differ from one in a change alone: looked up where it is of one axis."""
        axes = {axis_of(member.path) for member in change}
        configured = configuration(candidate, lane)
        if len(axes) != 1 or configured.own or not self._is_indexed(candidate, lane):
            well = [Condition("outcome", "=", "ok"), *conditions]
            return self._rows(change, "a", candidate, lane, well)
        stored, last = self._reader.stored, self._until - timedelta(microseconds=1)
        entries = (
            row
            for number in stored.near(configured, axes.pop(), MAX_TRIALS)
            for row in stored.launches(number, "training", last, MAX_TRIALS)
            if all(str(getattr(row, item.name)) == item.value for item in conditions)
        )
        return sorted(entries, key=lambda row: (row.started, row.seq), reverse=True)

    def _rows(
        self, change: Change, side: str, like: Parsed, lane: Lane, conditions: Sequence[Condition]
    ) -> Iterator[Entry]:
        """Training launches of the lane with one side's values of the change, the newest first."""
        target_conditions = [Condition("lane", "=", lane.name), Condition("kind", "=", "training"), *conditions]
        target_conditions.append(Condition("started", "<", self._until.isoformat()))
        if self._is_indexed(like, lane):
            values = ((member.path, getattr(member, side)) for member in change)
            target_conditions += [
                Condition(path, "=", text) for path, value in values if (text := _typed(value)) is not None
            ]
        try:
            rows = list(self._store.find(Filters(tuple(target_conditions), limit=MAX_TRIALS)))
            yield from (row for row in rows if ran(row) <= self._reader.scope.until)
        except (NotFound, UsageError):
            return  # a leaf that no condition can name

    def _is_indexed(self, like: Parsed, lane: Lane) -> bool:
        """Whether values are looked up: without the axis index every document of the lane would be read."""
        if lane.name not in self._indexed:
            self._indexed[lane.name] = self._store.query.holds_lane(configuration(like, lane))
        return self._indexed[lane.name]


def _typed(value: Any) -> str | None:
    """A value as a condition has it; None for one that a condition would read as a pattern or a list."""
    if value in (UNSET, None):
        return "-"
    if value == OFF or isinstance(value, list | tuple):
        return None
    text = flag_text(value)
    return None if any(sign in text for sign in "*?[") or text == "-" else text


MAX_CHANGES = 12  # changes of one report that are looked for elsewhere
MAX_WAITING_CLAIMS = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of a change: sides, B over A with its 95 % interval, and what it says, else how B ended."""

    a: tuple[Ref, ...]
    b: tuple[Ref, ...]
    shape: str
    ratio: float | None
    low: float | None
    high: float | None
    effect: str
    status: str


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain that was shown beside the targets of its lane, and its trial there, None where there is none.

    `fate` is *vanished* (no gain there, or B did not end well), *held*, *open* (tried, and nobody can say), or *waits*.
    `claim` names the claim that is on it, if one does.
    """

    lane: str
    claim: str | None
    moved: tuple[Moved, ...]
    metric: str
    local: Trial
    target: str
    there: Trial | None
    fate: str
    rules: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Survival:
    """Gains by what became of them. ``untried`` were more than a report looks for elsewhere."""

    vanished: tuple[Gain, ...]
    waiting: tuple[Gain, ...]
    held: tuple[Gain, ...]
    claims: Cut[ClaimNow]
    untried: int

    def fate(self, claim: str) -> str:
        """What became of a claim's gain at its target."""
        gains = (*self.vanished, *self.waiting, *self.held)
        tried = (item.fate for item in gains if item.claim == claim and item.there is not None)
        return next(tried, "not yet")


def survival(reader: ReportReader, lanes: Iterable[LaneWeek], judged: JudgedClaims, retests: Retests) -> Survival:
    """What became of the gains of the week, and of the claims that wait for their target."""
    gains: list[Gain] = []
    untried = 0
    for week in lanes:
        lane = reader.lane(week.name)
        pairs = (*week.accepted, *week.inconclusive, *week.refused) if lane.targets else ()
        for pair in pairs:
            beside = _is_local(reader, pair, lane)
            if beside is None:
                continue
            if max(len(gains), retests.looked_for) >= MAX_CHANGES:
                untried += 1
                continue
            gain = _gain(reader, pair, lane, retests, beside=beside)
            if gain is not None and not any(_same(gain, other) for other in gains):
                # The gain with the first claim that is on its launches.
                ids = {ref.id for ref in gain.local.b}
                named = (item.id for item in judged.claims if ids & set(judged.verdicts[item.id].candidate))
                gains.append(replace(gain, claim=next(named, None)))
    waiting = [item for item in judged.claims if item.waits and item.replaced is None]
    return Survival(
        vanished=tuple(item for item in gains if item.fate == "vanished"),
        waiting=tuple(item for item in gains if item.fate in ("waits", "open")),
        held=tuple(item for item in gains if item.fate == "held"),
        claims=cut(waiting, MAX_WAITING_CLAIMS),
        untried=untried,
    )


def _same(one: Gain, other: Gain) -> bool:
    """Whether two gains tell of one change between the same launches."""
    ids = [
        {ref.id for trial in (item.local, item.there) if trial is not None for ref in trial.b} for item in (one, other)
    ]
    return one.lane == other.lane and one.moved == other.moved and bool(ids[0] & ids[1])


def _is_local(reader: ReportReader, pair: JudgedPair, lane: Lane) -> bool | None:
    """True for a gain beside the targets, False for what is no gain at one, None for all else."""
    there = target_of(reader.launch(reader.entry(pair.b[0].id)).parsed, lane) is not None
    gain = pair.status != "rejected" and is_gain(pair.metric, pair.effect, pair.ratio)
    if gain and not there:
        return True
    known = pair.effect in ("slower", "equivalent", "indicated") or pair.path == "left"
    return False if there and not gain and known and len(pair.counted) == 1 else None


def _gain(reader: ReportReader, pair: JudgedPair, lane: Lane, retests: Retests, *, beside: bool) -> Gain | None:
    """A gain beside the targets with its trial there; or what is no gain there, with a gain beside them."""
    base, candidate = (reader.store.parsed(side[0].id) for side in (pair.a, pair.b))
    changed = change_of(difference_under(lane, base, candidate))
    if not changed:
        return None
    tried = retests.newest(changed, candidate, lane, pair.metric, at_target=beside)
    if tried is None and not beside:
        return None
    shape = _words(*map(candidate.stated.get, _COLUMNS))
    own = Trial(pair.a, pair.b, shape, pair.ratio, pair.low, pair.high, pair.effect, pair.status)
    other = None if tried is None else _trial(reader, tried)
    fate, rules = _fate(tried) if beside else ("vanished", tuple((item.code, item.name) for item in pair.reasons))
    return Gain(
        lane=lane.name,
        claim=None,
        moved=pair.moved,
        metric=pair.metric,
        local=own if beside or other is None else other,
        target=" or ".join(item.name for item in lane.targets),
        there=other if beside else own,
        fate=fate,
        rules=rules,
    )


def _fate(there: Tried | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    if there is None:
        return "waits", ()
    if there.verdict is None:
        return "vanished", ()
    verdict = there.verdict
    heavy = (item for item in verdict.findings if item.level is Level.ERROR and item.waived is None)
    rules = tuple(dict.fromkeys((item.code, item.name) for item in heavy))
    if verdict.path == "left":
        return "vanished", rules
    if verdict.status == "rejected" or verdict.effect in ("ambiguous", "unproven"):
        return "open", rules
    if there.gain:
        return ("held" if verdict.status == "accepted" else "open"), rules
    return "vanished", rules


def _trial(reader: ReportReader, tried: Tried) -> Trial:
    row, verdict = tried.b, tried.verdict
    ids = (verdict.a, verdict.b) if verdict is not None else ((tried.a.id,), (row.id,))
    a, b = (tuple(ref_of(reader.entry(name)) for name in side) for side in ids)
    shape = _words(*(getattr(row, name) for name in _COLUMNS.values()))
    if verdict is None:
        return Trial(a, b, shape, None, None, None, f"ended in {row.outcome}", "rejected")
    return Trial(a, b, shape, *tried.numbers, verdict.effect, verdict.status)


def _words(chips: int | None, length: int | None, batch: int | None, depth: int | None) -> str:
    sizes = ((chips, "chips"), (length, "tokens"), (batch, "sequences a step"), (depth, "deep"))
    return ", ".join(f"{size:,} {what}" for size, what in sizes if size is not None) or "shape not stated"
