"""Makes the values of one comparison's page from its receipts: both sides, memory, step times, rules that are cited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.judging.facts import Facts
from receipts.judging.judge import VERSION, judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison, ReceiptVerdict
from receipts.publish.report import appendix
from receipts.publish.report.pair_data import PairData, Side
from receipts.publish.report.pictures import step_times
from receipts.publish.report.pictures.step_times import ComparedSteps
from receipts.publish.report.ref import ref_of
from receipts.publish.report.sections import rules
from receipts.publish.report.sections.decisions import decided_of
from receipts.questions.answers import answers
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Decision

SCHEMA = "1.0"


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
    from receipts.metrics.chips import account, pressure, words

    a, b = ([account(item) for item in side] for side in (left, right))
    memory = words.compared(a, b, pressure(a, b, spread=facts.chip_spread))
    seen = [item for item in facts.witnesses if item.id in verdict.witnesses]
    judged = {item.id: _judged(item, rulebook, facts) for item in (*left, *right, *seen)}
    described = (appendix.read_again(item, rulebook, judged[item.id], facts) for item in (*left, *right, *seen))
    names = {item.id: ref_of(item) for item in (*left, *right)}
    known = [decided_of(item, names.get(item.receipt)) for item in decided]
    return PairData(
        schema_version=SCHEMA,
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
        cited=rules.catalogue(rulebook.rules, (item.code for item in verdict.findings)),
        timed=None if verdict.status == "rejected" else _timed(left, right, verdict, rulebook),
    )


def _judged(parsed: Parsed, rulebook: Rulebook, facts: Facts) -> ReceiptVerdict:
    return judge_receipt(parsed, rulebook.lanes.of(parsed.receipt.run.lane), rulebook.rules, facts)


def _timed(
    left: Sequence[Parsed], right: Sequence[Parsed], verdict: Comparison, rulebook: Rulebook
) -> ComparedSteps | None:
    """Step times of both sides; None where one of them kept no steps."""
    held = []
    for letter, group in (("A", left), ("B", right)):
        launches = ((ref_of(item), rulebook.launch(item)) for item in group)
        held.append(list(step_times.timed("A" if letter == "A" else "B", launches))[: step_times.LAUNCHES])
    if not all(held):
        return None
    moved = tuple(member.path for item in verdict.difference.changed for member in item.members)
    more = sum(max(0, len(group) - step_times.LAUNCHES) for group in (left, right))
    ends = (ref_of(left[0]), ref_of(right[0]))
    return ComparedSteps(*ends, moved[:2], tuple(one for side in held for one in side), more)


def _side(
    letter: str, group: Sequence[Parsed], label: str, verdict: ReceiptVerdict, rulebook: Rulebook, facts: Facts
) -> Side:
    head = group[0]
    lane = rulebook.lanes.of(head.receipt.run.lane)
    refs = tuple(ref_of(item) for item in group)
    rows = answers(head, lane, verdict, facts, rulebook.rules).states()
    return Side(letter, label, refs, f"{lane.name}@{lane.version}", verdict.status, verdict.path, rows)
