"""The page of one comparison as a document: `publish.comparison` with both sides, step times and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.judging.facts import Facts
from receipts.judging.judge import VERSION, judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison, ReceiptVerdict
from receipts.publish import comparison
from receipts.publish.page import Code, Page, Section
from receipts.publish.report import appendix, step_times
from receipts.publish.report.data import Described
from receipts.publish.report.page import links
from receipts.publish.report.step_times import ComparedSteps
from receipts.publish.report.template import page as written
from receipts.publish.text import plain
from receipts.questions.answers import AnsweredQuestion, answers
from receipts.questions.week.events import DecisionRow, decided_of
from receipts.questions.week.ref import Ref, ref_of
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.store import Decision

SCHEMA = "1.0"


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
    timed: ComparedSteps | None


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
        timed=None if verdict.status == "rejected" else _timed(left, right, verdict, rulebook),
    )


def _judged(parsed: Parsed, rulebook: Rulebook, facts: Facts) -> ReceiptVerdict:
    return judge_receipt(parsed, rulebook.lanes.of(parsed.receipt.run.lane), rulebook.rules, facts)


def _timed(
    left: Sequence[Parsed], right: Sequence[Parsed], verdict: Comparison, rulebook: Rulebook
) -> ComparedSteps | None:
    known = {item.id: item for item in (*left, *right)}
    moved = [member.path for item in verdict.difference.changed for member in item.members]
    a, b = ([ref_of(item) for item in side] for side in (left, right))
    return step_times.steps_of(a, b, moved, lambda ref: rulebook.launch(known[ref.id]))


def _side(
    letter: str, group: Sequence[Parsed], label: str, verdict: ReceiptVerdict, rulebook: Rulebook, facts: Facts
) -> Side:
    head = group[0]
    lane = rulebook.lanes.of(head.receipt.run.lane)
    refs = tuple(ref_of(item) for item in group)
    rows = tuple(answers(head, lane, verdict, facts, rulebook.rules))
    return Side(letter, label, refs, f"{lane.name}@{lane.version}", verdict.status, verdict.path, rows)


def page(data: PairData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    verdict = data.comparison
    shown = comparison.page(verdict, rule_set, memory=data.memory)
    given, values = body(data, rule_set)
    sections = written("compare/body.j2", {**values, "own": True}, folders, sections=given).sections
    sections = (*sections, *appendix.rules_section(rule_set, sections), appendix.receipts_section(data.receipts))
    return replace(
        shown,
        title=f"Comparison of {plain(verdict.label_b, 60)} against {plain(verdict.label_a, 60)}",
        facts=(
            ("A", links(data.a.receipts, 1)),
            ("B", links(data.b.receipts, 1)),
            ("lane", (", ".join(plain(name) for name in verdict.lanes),)),
        ),
        sections=sections,
        foot=(("verdict", (verdict.last_line(),)), ("rules", (Code(data.rules[:12]), f" judge {data.judge}"))),
    )


def body(data: PairData, rule_set: RuleSet) -> tuple[list[Section], dict[str, Any]]:
    """The sections of a comparison that code makes, and what the template of the others takes."""
    shown = comparison.page(data.comparison, rule_set, memory=data.memory).sections
    figures = step_times.figures("steps", (data.timed,) if data.timed is not None else ())
    given = [replace(item, figures=figures) if item.id == "effect" else item for item in shown]
    return given, {"shown": given, "pair": data}
