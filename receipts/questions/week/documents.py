"""The values of single pages: one comparison, one claim, and the receipts that they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from receipts import metrics
from receipts.axes.lane import Lane
from receipts.axes.lineage import ran_on
from receipts.judging.facts import Facts
from receipts.judging.grade import unspoilt
from receipts.judging.judge import VERSION, judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import ClaimVerdict, Comparison, Level, ReceiptVerdict
from receipts.metrics import Launch
from receipts.metrics.registry import Taint
from receipts.questions.answers import AnsweredQuestion, answers, topology
from receipts.questions.claims.judgment import judge
from receipts.questions.claims.wording import footnote
from receipts.questions.week.data import Described, Ref, ref_of
from receipts.questions.week.events import DecisionRow, decided_of
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Decision, Store


MAX_NOTES = 6


class ReceiptFigures(NamedTuple):
    """What a reader looks a receipt up for: tokens a second a chip, seconds a step, and the highest peak in bytes."""

    rate: float | None = None
    step_seconds: float | None = None
    peak_bytes: float | None = None

    @classmethod
    def of(cls, launch: Launch) -> ReceiptFigures:
        """Those of a launch, read from its document."""
        names = ("tokens_per_second_per_chip", "step_seconds", "peak_bytes")
        return cls(*(launch.read(metrics.get(name)).value for name in names))

    def unspoilt(self, verdict: ReceiptVerdict) -> ReceiptFigures:
        """Without those that an error spoils."""
        rate, memory = (unspoilt(verdict.path, verdict.tainted, kind) for kind in (Taint.RATE, Taint.MEMORY))
        return ReceiptFigures(*(self[:2] if rate else (None, None)), self.peak_bytes if memory else None)


def described(
    parsed: Parsed, lane: Lane, verdict: ReceiptVerdict, figures: ReceiptFigures, facts: Facts | None = None
) -> Described:
    """A receipt as the appendix has it; facts say whether it stands."""
    run = parsed.receipt.run
    superseded = facts.superseded.get(parsed.id) if facts is not None else None
    notes = [(key, value) for key, value in (parsed.receipt.notes or {}).items() if isinstance(value, str)]
    errors = dict.fromkeys(finding.code for finding in verdict.findings if finding.level is Level.ERROR)
    return Described(
        receipt=ref_of(parsed),
        launch=run.launch,
        lane=run.lane,
        kind=run.kind,
        outcome=run.outcome,
        provenance=run.provenance,
        status=verdict.status,
        path=verdict.path,
        topology=topology(parsed),
        lineage=str(ran_on(parsed, lane) or ""),
        **figures.unspoilt(verdict)._asdict(),
        started=run.started_stated or f"{run.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        finished=f"{run.finished.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if run.finished else None,
        context=run.context,
        notes=tuple(notes[:MAX_NOTES]),
        errors=tuple(errors),
        superseded_by=superseded[0] if superseded is not None else None,
    )


def read_again(parsed: Parsed, rulebook: Rulebook, verdict: ReceiptVerdict, facts: Facts | None) -> Described:
    """A receipt with the figures that its document gives."""
    figures = ReceiptFigures.of(rulebook.launch(parsed))
    return described(parsed, rulebook.lanes.of(parsed.receipt.run.lane), verdict, figures, facts)


PAIR_SCHEMA = "2.0"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its launches, the first of which answers for all, and how that is judged."""

    letter: str
    label: str
    receipts: tuple[Ref, ...]
    lane: str
    status: str
    path: str
    answers: tuple[AnsweredQuestion, ...]


@dataclass(frozen=True, slots=True)
class PairData:
    """One comparison. `claims` are those that stand on its receipts, `memory` says what became of each chip.

    `witnesses` are launches beside the two sides that saw a path for one of them.
    """

    schema_version: str
    rules: str
    judge: str
    a: Side
    b: Side
    comparison: Comparison
    witnesses: tuple[Ref, ...]
    memory: tuple[str, ...]
    decisions: tuple[DecisionRow, ...]
    claims: tuple[str, ...]
    receipts: tuple[Described, ...]


def pair(
    left: Sequence[Parsed],
    right: Sequence[Parsed],
    verdict: Comparison,
    rulebook: Rulebook,
    facts: Facts,
    decided: Sequence[Decision] = (),
    claims: Sequence[str] = (),
) -> PairData:
    """The values of the page: a comparison with the receipts that it was made of."""
    from receipts.metrics.chip_pressure import compared, pressure
    from receipts.metrics.chips import account

    a, b = ([account(item) for item in side] for side in (left, right))
    memory = compared(a, b, pressure(a, b, spread=facts.chip_spread))
    seen = [item for item in facts.witnesses if item.id in verdict.witnesses]
    judged = {item.id: _judged_alone(item, rulebook, facts) for item in (*left, *right, *seen)}
    described = (read_again(item, rulebook, judged[item.id], facts) for item in (*left, *right, *seen))
    names = {item.id: ref_of(item) for item in (*left, *right)}
    known = [decided_of(item, names.get(item.receipt)) for item in decided]
    return PairData(
        schema_version=PAIR_SCHEMA,
        rules=rulebook.rules.digest,
        judge=VERSION,
        a=_side("A", left, verdict.label_a, judged[left[0].id], rulebook, facts),
        b=_side("B", right, verdict.label_b, judged[right[0].id], rulebook, facts),
        comparison=verdict,
        witnesses=tuple(map(ref_of, seen)),
        memory=tuple(memory),
        decisions=tuple(known),
        claims=tuple(claims),
        receipts=tuple({item.receipt.id: item for item in described}.values()),
    )


def _judged_alone(parsed: Parsed, rulebook: Rulebook, facts: Facts | None) -> ReceiptVerdict:
    return judge_receipt(parsed, rulebook.lanes.of(parsed.receipt.run.lane), rulebook.rules, facts)


def _side(
    letter: str, group: Sequence[Parsed], label: str, verdict: ReceiptVerdict, rulebook: Rulebook, facts: Facts
) -> Side:
    head = group[0]
    lane = rulebook.lanes.of(head.receipt.run.lane)
    refs = tuple(ref_of(item) for item in group)
    rows = tuple(answers(head, lane, verdict, facts, rulebook.rules))
    return Side(letter, label, refs, f"{lane.name}@{lane.version}", verdict.status, verdict.path, rows)


CLAIM_SCHEMA = "2.0"


@dataclass(frozen=True, slots=True)
class Past:
    """A verdict as it was recorded."""

    at: datetime
    status: str
    rules: str


@dataclass(frozen=True, slots=True)
class ClaimData:
    """One claim as of a moment. `comparison` is None where it compares nothing; `answers` are then its candidate's.

    `superseded` is the successor (None where it was withdrawn), the reason and the actor, where it no longer stands.
    """

    schema_version: str
    as_of: datetime
    verdict: ClaimVerdict
    origin: str
    added: datetime
    superseded: tuple[str | None, str, str | None] | None
    footnote: str
    answers: tuple[AnsweredQuestion, ...]
    comparison: PairData | None
    past: tuple[Past, ...]
    decisions: tuple[DecisionRow, ...]
    documents: tuple[str, ...]
    receipts: tuple[Described, ...]


def claim(store: Store, claim_id: str, rulebook: Rulebook, as_of: datetime) -> ClaimData:
    """The values of the page. Raises NotFound where the store has no such claim."""
    from receipts.judging.claim import claim_from_json
    from receipts.questions.claims.judgment import gather

    until = as_of + timedelta(microseconds=1)
    kept = store.published.claim(claim_id)
    stated = claim_from_json(kept.body, f"claim {kept.id}")
    evidence = gather(stated, rulebook, store)
    verdict = judge(stated, evidence, rulebook)
    sides = (*evidence.baseline, *evidence.candidate)
    ids = [item.id for item in sides]
    decided = [item for item in store.published.decisions(ids) if item.at < until]
    refs = {item.id: ref_of(item) for item in sides}
    facts = evidence.facts
    compared = None
    if verdict.comparison is not None and facts is not None:
        compared = pair(evidence.baseline, evidence.candidate, verdict.comparison, rulebook, facts, decided)
    judged = {item.id: _judged_alone(item, rulebook, facts) for item in sides}
    rows: tuple[AnsweredQuestion, ...] = ()
    if evidence.candidate and compared is None:
        head = evidence.candidate[0]
        lane = rulebook.lanes.of(head.receipt.run.lane)
        rows = tuple(answers(head, lane, judged[head.id], facts, rulebook.rules))
    quoting = (item.document for item in store.published.quotes(*ids, until=until))
    gone = kept.superseded
    return ClaimData(
        schema_version=CLAIM_SCHEMA,
        as_of=as_of,
        verdict=verdict,
        origin=kept.origin,
        added=kept.at,
        superseded=(gone.successor, gone.reason, gone.actor) if gone else None,
        footnote=footnote(verdict, decided),
        answers=rows,
        comparison=compared,
        past=tuple(
            Past(item.at, item.status, item.rules)
            for item in store.published.claim_verdicts(claim_id)
            if item.at < until
        ),
        decisions=tuple(decided_of(item, refs.get(item.receipt)) for item in decided),
        documents=tuple(dict.fromkeys([*stated.quoted_in, *quoting])),
        receipts=tuple(read_again(item, rulebook, judged[item.id], facts) for item in sides),
    )
