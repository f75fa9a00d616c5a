"""What people did to claims and receipts in a week.

Claims whose status changed, those that are stale, and the documents that quote these; receipts that were superseded or
retracted; decisions with their reasons (`receipts decide`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.base.errors import NotFound
from receipts.judging.findings import refusals
from receipts.judging.rule import Topic
from receipts.judging.verdict import ClaimVerdict, Level
from receipts.questions.claims.judgment import waits
from receipts.questions.week.data import Cut, Ref, cut, ref_of

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook, RuleSet
    from receipts.questions.comparisons import Floors
    from receipts.store import Decision, Store, StoredClaim
    from receipts.store.decisions import Incident, IntervalEvents


MAX_JUDGED = 200
MAX_CLAIMS = 40
MAX_DOCUMENTS = 8
MAX_REASONS = 3
MAX_RECEIPTS = 6


@dataclass(frozen=True, slots=True)
class Why:
    """A rule that keeps a claim from being supported, and what it found; the code is empty where no rule speaks."""

    code: str
    name: str
    found: str


@dataclass(frozen=True, slots=True)
class ClaimNow:
    """A claim under the present rules.

    `before` is the status when the week began and `recorded` the last that was recorded until its end, None where
    there was none; `status` is what the present rules say, and `otherwise` what they would if its receipts stood.
    `replaced` says what became of it in the week. `waits` tells that a retest at its target is all that is missing.
    """

    id: str
    text: str
    kind: str
    added: bool
    before: str | None
    recorded: str | None
    status: str
    otherwise: str
    replaced: str | None
    waits: bool
    target: str | None
    reasons: tuple[Why, ...]
    receipts: Cut[Ref]
    documents: Cut[str]

    @property
    def changed(self) -> bool:
        """Whether it is another status than when the week began, or the claim was added or replaced in it."""
        began = self.before or self.recorded
        moved = self.status != began or self.recorded != began
        return self.added or self.replaced is not None or moved


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that stand, and those replaced in the week. ``unjudged`` were more than a report judges."""

    judged: int
    unjudged: int
    changed: Cut[ClaimNow]
    stale: Cut[ClaimNow]

    @property
    def quoting(self) -> tuple[str, ...]:
        """Documents that quote a stale one."""
        return tuple(dict.fromkeys(name for item in self.stale for name in item.documents))


@dataclass(frozen=True)
class JudgedClaims:
    """The claims of a store with what the present rules say of them, fetched once for all sections."""

    claims: tuple[ClaimNow, ...]
    verdicts: Mapping[str, ClaimVerdict]
    unjudged: int


def judge_all(
    store: Store, rulebook: Rulebook, events: IntervalEvents, until: datetime, lanes: Sequence[str] = ()
) -> JudgedClaims:
    """Every claim that stands or was replaced in the stretch, judged under the present rules, the newest first."""
    from receipts.judging.claim import claim_from_json
    from receipts.questions.claims.judgment import verdict_on

    replaced = {item.id: item for item in events.replaced}
    kept = [item for item in store.published.claims(standing=False) if item.superseded is None or item.id in replaced]
    kept = [item for item in kept if item.at < until]
    recent = kept[::-1][:MAX_JUDGED]
    floors: Floors = {}
    judged: list[tuple[StoredClaim, tuple[str, ...], ClaimVerdict]] = []
    for item in recent:
        claim = claim_from_json(item.body, f"claim {item.id}")
        verdict = verdict_on(claim, rulebook, store, floors=floors)
        if not lanes or any(name.partition("@")[0] in lanes for name in verdict.lanes):
            judged.append((item, claim.quoted_in, verdict))
    ids = list(dict.fromkeys(name for _, _, verdict in judged for name in (*verdict.baseline, *verdict.candidate)))
    refs = known_receipts(store, ids)
    quoting: dict[str, list[str]] = {}
    for quote in store.published.quotes(*ids, until=until):
        quoting.setdefault(quote.receipt, []).append(quote.document)
    latest = {item.claim: item for item in events.verdicts}
    claims = []
    for item, quoted_in, verdict in judged:
        before, gone, became = events.before.get(item.id), replaced.get(item.id), None
        if gone is not None:
            how = f"superseded by {gone.successor}" if gone.successor else "withdrawn"
            became = f"{how}{f', recorded by {gone.actor}' if gone.actor else ''}: {gone.reason}"
        recorded = latest.get(item.id) or before
        names = list(dict.fromkeys((*verdict.candidate, *verdict.baseline)))
        documents = dict.fromkeys([*quoted_in, *(place for name in names for place in quoting.get(name, ()))])
        claims.append(
            ClaimNow(
                id=item.id,
                text=verdict.text,
                kind=item.kind,
                added=item.id in events.added,
                before=before.status if before else None,
                recorded=recorded.status if recorded else None,
                status=verdict.status,
                otherwise=verdict.otherwise,
                replaced=became,
                waits=waits(verdict, rulebook.rules),
                target=verdict.target,
                reasons=tuple(_reasons(verdict, rulebook.rules)),
                receipts=cut((refs[name] for name in names if name in refs), MAX_RECEIPTS),
                documents=cut(documents, MAX_DOCUMENTS),
            )
        )
    return JudgedClaims(tuple(claims), {verdict.claim: verdict for _, _, verdict in judged}, len(kept) - len(recent))


def known_receipts(store: Store, ids: Iterable[str]) -> dict[str, Ref]:
    """Receipts of these ids that the store holds; one that was purged can be named, and leads nowhere."""
    refs = {}
    for name in ids:
        try:
            refs[name] = ref_of(store.entry(name))
        except NotFound:
            continue
    return refs


def _reasons(verdict: ClaimVerdict, rules: RuleSet) -> Iterator[Why]:
    if verdict.status == "supported":
        return
    staleness = rules.about(Topic.STALENESS)
    heavy = [item for item in verdict.findings if item.level is not Level.SHOWN]
    heavy.sort(key=lambda item: (item.code not in staleness, item.level is not Level.ERROR, item.code))
    reasons = [Why(item.code, item.name, item.found) for item in heavy]
    if verdict.comparison is not None and verdict.comparison.status == "rejected":
        reasons += [Why(item.code, item.name, item.found) for item in refusals(verdict.comparison, rules)]
    if verdict.assessment.state != "holds":
        reasons.append(Why("", "", verdict.assessment.why))
    yield from list(dict.fromkeys(reasons))[:MAX_REASONS]


def claims(judged: JudgedClaims) -> Claims:
    """What a report says of them."""
    stale = (item for item in judged.claims if item.status == "stale" and item.replaced is None)
    return Claims(
        judged=len(judged.claims),
        unjudged=judged.unjudged,
        changed=cut((item for item in judged.claims if item.changed), MAX_CLAIMS),
        stale=cut(stale, MAX_CLAIMS),
    )


def status_before(item: ClaimNow) -> str:
    """Its status when the week began, or that it is new."""
    return "added" if item.added else item.before or item.recorded or "never judged"


def status_now(item: ClaimNow) -> str:
    """Its status under the present rules, or what became of it."""
    if item.replaced is not None:
        return "replaced"
    same = item.recorded is None or item.recorded == item.status
    return item.status if same else f"{item.status} (recorded last: {item.recorded})"


MAX_FALLEN = 20


@dataclass(frozen=True, slots=True)
class Fallen:
    """A receipt that was superseded or retracted in the stretch; `successor` is None where it was retracted."""

    id: str
    receipt: Ref | None
    successor_id: str | None
    successor: Ref | None
    reason: str


def fallen(store: Store, events: IntervalEvents, lanes: Sequence[str] = ()) -> Cut[Fallen]:
    """The receipts of some lanes, or of all, that fell in a stretch, in the order in which they did."""
    ids = [name for item in events.superseded for name in (item.id, item.successor) if name is not None]
    refs = known_receipts(store, ids)
    rows = [
        Fallen(item.id, refs.get(item.id), item.successor, refs.get(item.successor or ""), item.reason)
        for item in events.superseded
        if not lanes or (item.id in refs and store.entry(item.id).lane in lanes)
    ]
    unread = 0 if lanes else events.superseded_count - len(events.superseded)
    return Cut(tuple(rows[:MAX_FALLEN]), max(0, len(rows) - MAX_FALLEN) + unread)


MAX_DECISIONS = 40


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision. `receipt` is None where the receipt is not in the store; `revised` by a later one of the stretch."""

    id: str
    receipt: Ref | None
    lane: str | None
    decision: str
    reason: str
    at: datetime
    revised: bool
    actor: str | None = None


def decided_of(item: Decision, ref: Ref | None, lane: str | None = None, *, revised: bool = False) -> DecisionRow:
    """A decision of the store, as a page shows it."""
    return DecisionRow(item.receipt, ref, lane, item.decision, item.reason, item.at, revised, item.actor)


def decisions(store: Store, taken: Sequence[Decision], lanes: Sequence[str] = ()) -> Cut[DecisionRow]:
    """These decisions, of some lanes or of all, the newest first."""
    seen: set[str] = set()
    decided: list[DecisionRow] = []
    for item in reversed(taken):
        try:
            entry = store.entry(item.receipt)
        except NotFound:
            ref, lane = None, None
        else:
            ref, lane = ref_of(entry), entry.lane
        if lanes and lane not in lanes:
            continue
        decided.append(decided_of(item, ref, lane, revised=item.receipt in seen))
        seen.add(item.receipt)
    return cut(decided, MAX_DECISIONS)


def regressions(store: Store, until: datetime, only: Sequence[str] = ()) -> tuple[Incident, ...]:
    """Incidents of some lanes, or of all, that were opened until a time, to the second, and are not closed."""
    still = (item for item in store.published.incidents() if item.closed is None)
    known = (item for item in still if item.opened.replace(microsecond=0) <= until)
    return tuple(item for item in known if not only or item.body["lane"] in only)
