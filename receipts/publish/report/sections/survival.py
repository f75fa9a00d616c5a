"""What did not survive: gains that were shown beside the lane's targets, and what became of them there.

A gain of the week that was shown away from every target of its lane is looked for at the targets; a comparison of the
week at a target that is no gain is looked for beside them. What was tried in neither place waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from receipts.axes import difference
from receipts.axes.shape import target_of
from receipts.judging.topic import Topic
from receipts.judging.verdict import Level
from receipts.publish.page import Cell, Code, Section, table_of
from receipts.publish.report.comparisons import moved
from receipts.publish.report.data import JudgedPair, LaneWeek, Moved, Ref
from receipts.publish.report.page import folded, joined, links, listed, more, rule
from receipts.publish.report.ref import ref_of
from receipts.publish.report.sections.claims import ClaimNow, JudgedClaims
from receipts.publish.report.sections.retest import Retests, Tried, change_of, is_gain
from receipts.publish.text import NOTE, UNKNOWN, change, plain, span

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.rulebook import RuleSet
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
    claims: tuple[ClaimNow, ...]
    claims_more: int
    untried: int


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
        claims=tuple(waiting[:MOST]),
        claims_more=max(0, len(waiting) - MOST),
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
    changed = change_of(difference(base, candidate, tuple(lane.not_applicable)))
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


def section(data: Survival, rules: RuleSet) -> Section | str:
    """The gains in words: what vanished first."""
    target = rules.about(Topic.TARGET)[:1]
    inner, _ = folded((
        _gains("vanished", "Vanished at the target", data.vanished, target),
        _gains("waiting", "Still to be shown at the target", data.waiting, target),
        _claims(data),
        _gains("held", "Held at the target", data.held, target),
    ))  # fmt: skip
    if not inner and not data.untried:
        return "gains lost or waiting for a target"
    intro = (
        "A gain counts where the lane trains. Gains at other shapes were looked for at the lane's targets, "
        "by the same change of the same values, and what is no gain there was looked for elsewhere. Each trial stands "
        "alone: nothing here is adjusted."
    )
    left = (f"{data.untried} more comparisons were not looked for elsewhere.",) if data.untried else ()
    return Section("survival", "What did not survive", sentences=(intro, *left), sections=tuple(inner))


def _gains(anchor: str, title: str, gains: Sequence[Gain], target: Sequence[str]) -> Section | str:
    header = "lane | change | shown at | gain there [%] | launches | at the target | change at the target [%] | why"
    rows = (_cells(item, target) for item in gains)
    table = table_of(f"{title}: gains by the change that made them", header, rows)
    return listed(f"survival-{anchor}", title, title.lower(), table)


def _cells(item: Gain, target: Sequence[str]) -> tuple[Cell, ...]:
    there = item.there
    return (
        (plain(item.lane),),
        (*moved(item.moved), *((" (claim ", Code(item.claim), ")") if item.claim else ())),
        (item.local.shape,),
        (f"{change(item.local.ratio)} ({span(item.local.low, item.local.high)})",),
        sides(item.local),
        sides(there) if there is not None else (f"not tried at {plain(item.target)}",),
        (f"{change(there.ratio)} ({span(there.low, there.high)})" if there is not None else UNKNOWN,),
        _why(item, target),
    )


def sides(item: Trial) -> Cell:
    """Both sides by their receipts."""
    return ("A ", *links(item.a, 1), " B ", *links(item.b, 1))


def _why(item: Gain, target: Sequence[str]) -> Cell:
    unshown = tuple(map(rule, target))
    if item.there is None:
        return (*unshown, " repeat both sides there")
    rules = joined((rule(code, name),) for code, name in item.rules[:3]) or unshown
    return (f"{item.there.effect}, {item.there.status}: ", *rules)


def _claims(data: Survival) -> Section | str:
    gains = (*data.vanished, *data.waiting, *data.held)
    fates = {item.claim: item.fate for item in gains if item.claim is not None and item.there is not None}
    rows = (
        (
            *(Code(item.id), plain(item.text, NOTE), plain(item.target or UNKNOWN), fates.get(item.id, "not yet")),
            joined((rule(why.code, why.name), f": {plain(why.found, NOTE)}") for why in item.reasons if why.code),
            links(item.receipts, more=item.receipts_more) or UNKNOWN,
        )
        for item in data.claims
    )
    header = "claim | it says | to be shown at | tried there | why | stands on"
    table = table_of("Claims that hold where they were shown", header, rows, more(data.claims_more, "claims"))
    return listed("survival-claims", "Claims that wait for their target", "waiting claims", table)
