"""The five answers that head a receipt."""

from __future__ import annotations

import pytest

import rule_cases
from receipts.judging.judge import judge_receipt
from receipts.questions.answers import answers


def amortized(**run: str) -> str:
    tree = rule_cases.base()
    tree["run"].update(run)
    parsed, book = rule_cases.parsed(tree), rule_cases.rulebook()
    lane = book.lanes.of(parsed.receipt.run.lane)
    return answers(parsed, lane, judge_receipt(parsed, lane, book.rules), None, book.rules).amortized.answer


def test_a_launch_that_ended_well_and_compiled_before_its_window_is_amortized() -> None:
    assert amortized().startswith("yes: 0 s of compiling; goodput ")


@pytest.mark.parametrize("outcome", ["nan", "crash", "preempted"])
def test_no_rule_asked_whether_a_failed_launch_was_amortized(outcome: str) -> None:
    assert amortized(outcome=outcome) == f"not judged: the launch ended in {outcome}"
