"""Planned looks: the error over all looks, the power, and how many launches they save."""

from __future__ import annotations

import random

import pytest

from receipts.plugins.study.experiment import Contrast, Experiment
from receipts.plugins.study.progress import answer_of
from receipts.plugins.study.sequential import at_level, plan_looks

EFFECT = 0.00995
CONTRAST = Contrast("x", "a", "b")


def ended(experiment: Experiment, a: list[float], b: list[float]) -> tuple[str, int]:
    for count in range(2, experiment.looks.most + 1):
        answer = answer_of(experiment, experiment.looks, CONTRAST, {"a": a[:count], "b": b[:count]}, "lower").answer
        if answer != "run on":
            return answer, count
    return "cannot be decided", experiment.looks.most


@pytest.mark.parametrize(("df", "median"), [(24.0, 3), (None, 4)])
def test_looking_early_keeps_the_error_and_saves_launches(df: float | None, median: int) -> None:
    sigma, rng = 0.004, random.Random(1)
    looks = plan_looks(EFFECT, sigma, df)
    assert looks.median <= median <= looks.fixed <= 5
    assert looks.most <= looks.fixed + 1
    experiment = Experiment("s", "lane", "step_seconds", EFFECT, sigma, df, "", 0.05, looks, (), (CONTRAST,))
    false = seen = 0
    for _ in range(400):
        a, b = ([rng.gauss(0.0, sigma) for _ in range(looks.most)] for _ in "ab")
        false += ended(experiment, a, b)[0] in ("faster", "slower")
        seen += ended(experiment, a, [value - EFFECT for value in b])[0] == "faster"
    assert false <= 30  # 5 % of 400, and three standard deviations
    assert seen >= 340


def test_no_plan_is_longer_than_allowed() -> None:
    for sigma in (0.001, 0.006):
        looks = plan_looks(EFFECT, sigma, None)
        assert looks.most <= max(looks.fixed + 1, 1.1 * looks.fixed)
        assert looks.at(looks.launches[0] - 1) is None
        assert looks.at(1000) == len(looks.launches)


def test_holm_leaves_more_to_what_is_still_open() -> None:
    strict = plan_looks(EFFECT, 0.004, None, alpha=0.05 / 3)
    lax = at_level(strict, 0.05)
    assert lax.launches == strict.launches
    assert all(one < other for one, other in zip(lax.confidences, strict.confidences, strict=True))


def test_what_will_not_be_decided_is_no_equivalence() -> None:
    looks = plan_looks(EFFECT, 0.004, None)
    experiment = Experiment("s", "lane", "step_seconds", EFFECT, 0.004, None, "", 0.05, looks, (), (CONTRAST,))
    a = [0.0, 0.03, -0.03, 0.02, -0.02, 0.01, -0.01][: looks.most]
    assert ended(experiment, a, [value + 0.001 for value in a])[0] == "cannot be decided"


@pytest.mark.parametrize(("spread_a", "spread_b"), [(2.0, 2.0), (1.0, 4.0)])
def test_a_plan_whose_sigma_the_launches_contradict_goes_on_with_their_own(spread_a: float, spread_b: float) -> None:
    """With the stored σ alone .40 of them succeeded without an effect at twice the noise, .58 with one side at four."""
    sigma, rng = 0.004, random.Random(3)
    looks = plan_looks(EFFECT, sigma, 24.0)
    experiment = Experiment("s", "lane", "step_seconds", EFFECT, sigma, 24.0, "", 0.05, looks, (), (CONTRAST,))
    false = 0
    for _ in range(300):
        a, b = ([rng.gauss(0.0, sigma * times) for _ in range(looks.most)] for times in (spread_a, spread_b))
        false += ended(experiment, a, b)[0] in ("faster", "slower")
    assert false <= 0.27 * 300
    noisy = {"a": [-0.03, 0.03, -0.02, 0.02][: looks.most], "b": [0.02, -0.03, 0.04, -0.02][: looks.most]}
    assert "vary more than the plan assumed" in answer_of(experiment, looks, CONTRAST, noisy, "lower").why


def test_a_look_that_was_not_planned_says_so() -> None:
    looks = plan_looks(EFFECT, 0.006, None)
    experiment = Experiment("s", "lane", "step_seconds", EFFECT, 0.006, None, "", 0.05, looks, (), (CONTRAST,))
    between = next(count for count in range(looks.launches[0], looks.most) if count not in looks.launches)
    rng = random.Random(2)
    logs = {name: [rng.gauss(0.0, 0.006) for _ in range(looks.most)] for name in "ab"}

    def why(count: int) -> str:
        some = {name: values[:count] for name, values in logs.items()}
        return answer_of(experiment, looks, CONTRAST, some, "lower").why

    assert f"an unplanned look at {between} launches a side" in why(between)
    assert "unplanned" not in why(looks.launches[0])
