"""Whether two launches are one that was recorded twice."""

from __future__ import annotations

import math
import random

import rule_cases
from receipts.axes.replicates import rhythm, rise_together
from receipts.receipt import Parsed


def _launch(steps: list[float]) -> Parsed:
    tree = rule_cases.base()
    rule_cases.put(tree, "measurement.step_durations_seconds", [round(step, 6) for step in steps])
    return rule_cases.parsed(tree)


def _steps(seed: int) -> list[float]:
    """A warm-up and a checkpoint every 50 steps that all launches share, and noise of their own."""
    draw = random.Random(seed)
    shared = [1 + 2.5 * math.exp(-at / 1.2) + (3.0 if at % 50 == 49 else 0.0) for at in range(300)]
    return [0.8 * factor * (1 + draw.gauss(0, 0.004)) for factor in shared]


def test_launches_that_warm_up_and_pause_alike_are_two() -> None:
    assert not rise_together(rhythm(_launch(_steps(1))), rhythm(_launch(_steps(2))))


def test_a_copy_with_some_noise_and_a_factor_is_one() -> None:
    draw = random.Random(3)
    copy = [0.9 * step * (1 + draw.gauss(0, 0.001)) for step in _steps(1)]
    assert rise_together(rhythm(_launch(_steps(1))), rhythm(_launch(copy)))
