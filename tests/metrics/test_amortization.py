"""Compile amortization and goodput: seconds, shares of the wall time, and steps until compiling is one percent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import rule_cases
from receipts import metrics
from receipts.judging.judge import judge_receipt
from receipts.metrics.readings import amortization, goodput_shown, wall_time
from receipts.questions.answers import answers

SPENT = {"step": 900.0, "compile": 60.0, "checkpoint": 30.0, "data": 10.0}
STEPS = {"seconds": 0.5, "seed": 3}


def _launch(steps: Mapping[str, Any] = STEPS, **leaves: Any) -> metrics.Launch:
    table = {"steps": steps, "drop": ["measurement.goodput"], "set": leaves}
    tree = rule_cases.build(table, "cpu", None)
    return rule_cases.rulebook().launch(rule_cases.parsed(tree))


def _spent(**seconds: float) -> dict[str, float]:
    return {f"measurement.goodput.{name}_seconds": value for name, value in (seconds or SPENT).items()}


def test_compiling_has_seconds_a_share_and_the_steps_until_it_is_one_percent() -> None:
    launch = _launch(**{"compile.compile_seconds": 60.0, **_spent()})
    cost = amortization(launch)
    assert cost is not None
    assert (cost.seconds, cost.share) == (60.0, pytest.approx(0.06))
    assert launch.step_seconds is not None
    assert cost.steps is not None
    at = cost.steps * launch.step_seconds
    assert 60.0 / (60.0 + at) <= 0.01 < 60.0 / (60.0 + at - launch.step_seconds)


def test_goodput_is_the_share_of_steps_and_names_where_the_rest_went() -> None:
    launch = _launch(**_spent())
    assert launch.read(metrics.get("goodput")).value == pytest.approx(0.9)
    assert goodput_shown(launch) == "goodput 90.0 % (compile 6.0 %, checkpoint 3.0 %, data 1.0 %)"


def test_what_compiled_inside_steps_is_compiling_and_not_goodput() -> None:
    # A lazy backend compiles in its first steps, where the loop has no span to say so.
    steps = {"count": 100, "seconds": 0.5, "cv": 0.0, "first": [30.0, 20.5]}
    launch = _launch(steps, **{"compile.compile_seconds": 58.0}, **_spent(step=99.5, compile=5.0, idle=15.5))
    assert wall_time(launch) == pytest.approx({"step": 50.0, "compile": 58.0, "idle": 12.0})
    assert launch.read(metrics.get("goodput")).value == pytest.approx(50.0 / 120.0)


def test_without_steps_compiling_that_no_idle_time_holds_lies_in_steps() -> None:
    leaves = {"compile.compile_seconds": 30.0, **_spent(step=50.0, idle=10.0)}
    launch = _launch({"count": 0}, **leaves)
    assert wall_time(launch) == {"step": 30.0, "compile": 30.0, "idle": 0.0}


def test_steps_alone_are_no_goodput() -> None:
    launch = _launch(**{"measurement.goodput.step_seconds": 900.0})
    assert launch.read(metrics.get("goodput")).value is None
    assert goodput_shown(launch) is None


def test_the_answer_on_amortization_carries_the_figures() -> None:
    launch = _launch(**{"compile.compile_seconds": 60.0, **_spent()})
    book = rule_cases.rulebook()
    verdict = judge_receipt(launch.parsed, launch.lane, book.rules)
    found = answers(launch.parsed, launch.lane, verdict, None, book.rules)
    assert "60 s of compiling, 6.0 % of the wall time, 1 % after " in found.amortized.answer
    assert "goodput 90.0 %" in found.amortized.answer
    row = next(item for item in found if item.question == "compile amortized?")
    assert (row.state, row.brief) == ("yes", "yes in the rate, not in the launch")
