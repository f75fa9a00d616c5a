"""Change points: steps, drifts and hosts in series of launches, with the errors that are allowed."""

from __future__ import annotations

import math
import random

import pytest

from receipts.plugins.track.change_points import changes, host_effects

SIGMA = 0.003


def noise(count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, SIGMA) for _ in range(count)]


def test_shuffled_launches_show_no_change() -> None:
    assert sum(bool(changes(noise(10, seed))) for seed in range(150)) <= 4


def test_a_step_of_two_percent_is_placed_within_one_launch() -> None:
    placed = 0
    for seed in range(60):
        logs = noise(20, seed)
        steps = changes(logs[:10] + [value + 0.02 for value in logs[10:]])
        placed += any(item.kind == "step" and abs(item.at - 10) <= 1 for item in steps)
    assert placed >= 54


def test_a_drift_is_no_step_and_a_staircase_is_no_drift() -> None:
    logs = noise(24, 3)
    assert [item.kind for item in changes([value + 0.002 * at for at, value in enumerate(logs)])] == ["drift"]
    stairs = changes([value + 0.03 * (at // 8) for at, value in enumerate(logs)])
    assert [(item.kind, item.at) for item in stairs] == [("step", 8), ("step", 16)]


def test_a_level_that_comes_back_has_two_steps() -> None:
    logs = noise(26, 5)
    bump = [value + (0.02 if 12 <= at < 18 else 0.0) for at, value in enumerate(logs)]
    assert [item.at for item in changes(bump)] == [12, 18]


def test_one_stray_launch_neither_is_a_change_nor_hides_one() -> None:
    logs = noise(20, 8)
    logs[4] += 0.5
    assert changes(logs) == ()
    assert [item.at for item in changes(logs[:12] + [value + 0.03 for value in logs[12:]])] == [12]


def test_the_interval_holds_the_step() -> None:
    inside = 0
    for seed in range(60):
        logs = noise(16, 500 + seed)
        (change,) = changes(logs[:8] + [value + math.log(1.03) for value in logs[8:]])
        inside += change.low <= 1.03 <= change.high
    assert inside >= 57


@pytest.mark.parametrize("logs", [[], [0.0], [0.0] * 20, [0.0, 1.0, 0.0]])
def test_too_few_or_equal_launches_have_no_change(logs: list[float]) -> None:
    assert changes(logs) == ()


def test_hosts_are_told_apart_where_launches_alternate_and_nowhere_else() -> None:
    hosts = ["a", "b"] * 8
    logs = [value + (0.03 if host == "b" else 0.0) for value, host in zip(noise(16, 1), hosts, strict=True)]
    effects = host_effects(logs, hosts)
    assert effects["b"] - effects["a"] == pytest.approx(0.03, abs=0.005)
    assert host_effects(logs, ["a"] * 8 + ["b"] * 8) == {}
    assert host_effects(logs, [None] * 16) == {}
