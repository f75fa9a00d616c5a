"""A launcher's candidates in the order in which to try them: what worked first, what failed last, else as they came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from receipts.base.errors import InputError, Problem
from receipts.questions.plan import plan_of
from receipts.questions.preflight.answer import ORDER, PreflightAnswer
from receipts.receipt import Document, Parsed
from receipts.receipt.load import parse_json

PLAN: Final = "plan"


class CandidatePlan(NamedTuple):
    """One line of a launcher's file: the object as written there, and the plan in it. Lines count from 1."""

    line: int
    given: dict[str, Any]
    plan: Parsed


class Ranked(NamedTuple):
    """A candidate with what is known of it."""

    candidate: CandidatePlan
    answer: PreflightAnswer

    def as_data(self) -> dict[str, Any]:
        """The candidate as JSON: its line, what is known, and the object itself."""
        answer = self.answer
        data = {"line": self.candidate.line, "status": answer.status, "failure_type": answer.failure_type}
        by = answer.by.id if answer.by is not None else None
        why = {"why": answer.why, "receipt": by, "signature": answer.signature}
        return {**data, **why, "candidate": self.candidate.given}


def candidates(raw: bytes, source: str) -> list[CandidatePlan]:
    """The candidates of a JSONL file: a line is a plan, or an object that holds one under ``plan``.

    Raises InputError with every line's every problem.
    """
    plans: list[CandidatePlan] = []
    wrong: list[Problem] = []
    for number, line in enumerate(raw.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            given = parse_json(Document(line, source))
            inner = given.get(PLAN)
            plans.append(CandidatePlan(number, given, plan_of(inner if isinstance(inner, dict) else given, source)))
        except InputError as error:
            wrong += [problem._replace(at=f"line {number}, {problem.at}") for problem in error.problems]
    if not plans and not wrong:
        wrong = [Problem("$", "it has no candidate", "write a plan a line, as JSON")]
    if wrong:
        raise InputError(source, wrong)
    return plans


def ranked(given: Iterable[CandidatePlan], ask: Callable[[Parsed], PreflightAnswer]) -> list[Ranked]:
    """Worked, likely, unknown, predicted, failed; those of one status keep the launcher's order."""
    answers = [Ranked(item, ask(item.plan)) for item in given]
    return sorted(answers, key=lambda item: ORDER.index(item.answer.status))


def as_lines(ranked: Iterable[Ranked]) -> str:
    """The launcher's own objects, reordered, one a line."""
    return "".join(json.dumps(item.candidate.given, ensure_ascii=False) + "\n" for item in ranked)
