"""The values of one comparison's page; ``report.json`` holds them, and `pair_page` shows them."""

from __future__ import annotations

from dataclasses import dataclass

from receipts.judging.verdict import Comparison
from receipts.publish.report.data import Described
from receipts.publish.report.pictures.step_times import ComparedSteps
from receipts.publish.report.ref import Ref
from receipts.publish.report.sections.decisions import DecisionRow
from receipts.publish.report.sections.rules import Cited
from receipts.questions.answers import AnsweredQuestion


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
    cited: tuple[Cited, ...]
    timed: ComparedSteps | None
