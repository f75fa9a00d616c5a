"""What did not survive: gains that were shown beside the lane's targets, and what became of them there.

A gain of the week that was shown away from every target of its lane is looked for at the targets; a comparison of the
week at a target that is no gain is looked for beside them. What was tried in neither place waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from receipts.axes import difference_under
from receipts.axes.shape import target_of
from receipts.judging.verdict import Level
from receipts.publish.report.comparisons import is_gain
from receipts.publish.report.cut import Cut, cut
from receipts.publish.report.data import JudgedPair, LaneWeek, Moved, Ref
from receipts.publish.report.ref import ref_of
from receipts.publish.report.sections.claims import ClaimNow, JudgedClaims
from receipts.publish.report.sections.retest import Retests, Tried, change_of

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.publish.report.reader import ReportReader
    from receipts.receipt import Parsed

MOST_TRIED = 12  # changes of one report that are looked for elsewhere
MOST = 20


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
            if max(len(gains), retests.looked_for) >= MOST_TRIED:
                untried += 1
                continue
            gain = _gain(reader, pair, lane, retests, beside=beside)
            if gain is not None and not any(_same(gain, other) for other in gains):
                gains.append(_claimed(gain, judged))
    waiting = [item for item in judged.claims if item.waits and item.replaced is None]
    return Survival(
        vanished=tuple(item for item in gains if item.fate == "vanished"),
        waiting=tuple(item for item in gains if item.fate in ("waits", "open")),
        held=tuple(item for item in gains if item.fate == "held"),
        claims=cut(waiting, MOST),
        untried=untried,
    )


def _same(one: Gain, other: Gain) -> bool:
    """Whether two gains tell of one change between the same launches."""
    ids = [
        {ref.id for trial in (item.local, item.there) if trial is not None for ref in trial.b} for item in (one, other)
    ]
    return one.lane == other.lane and one.moved == other.moved and bool(ids[0] & ids[1])


def _claimed(gain: Gain, judged: JudgedClaims) -> Gain:
    """The gain with the first claim that is on its launches."""
    ids = {ref.id for ref in gain.local.b}
    named = (item.id for item in judged.claims if ids & set(judged.verdicts[item.id].candidate))
    return replace(gain, claim=next(named, None))


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
    tried = (retests.at_target if beside else retests.elsewhere)(changed, candidate, lane, pair.metric)
    if tried is None and not beside:
        return None
    own = Trial(pair.a, pair.b, _shape(candidate), pair.ratio, pair.low, pair.high, pair.effect, pair.status)
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
    low, high = tried.interval
    row, verdict = tried.b, tried.verdict
    ids = (verdict.a, verdict.b) if verdict is not None else ((tried.a.id,), (row.id,))
    a, b = (tuple(ref_of(reader.entry(name)) for name in side) for side in ids)
    shape = _words(row.chips, row.sequence_length, row.global_batch, row.depth)
    if verdict is None:
        return Trial(a, b, shape, None, None, None, f"ended in {row.outcome}", "rejected")
    return Trial(a, b, shape, tried.ratio, low, high, verdict.effect, verdict.status)


def _shape(parsed: Parsed) -> str:
    paths = ("hardware.chips", "batch.sequence_length", "batch.global_batch", "model.depth")
    return _words(*(parsed.stated.get(path) for path in paths))


def _words(chips: int | None, length: int | None, batch: int | None, depth: int | None) -> str:
    sizes = ((chips, "chips"), (length, "tokens"), (batch, "sequences a step"), (depth, "deep"))
    return ", ".join(f"{size:,} {what}" for size, what in sizes if size is not None) or "shape not stated"
