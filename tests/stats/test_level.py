"""The level of a configuration: a mean of launches with a random effect for each session."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from scipy import stats

from receipts.stats.noise import level, level_by_session


def _of(*sessions: list[float]) -> list[list[float]]:
    return [[math.exp(log) for log in logs] for logs in sessions]


def test_one_session_has_students_interval_on_logs() -> None:
    logs = [1.0, 1.01, 0.985, 1.003]
    held = level(_of(logs))
    low, high = stats.t.interval(0.95, 3, loc=sum(logs) / 4, scale=stats.sem(logs))
    assert [math.log(value) for value in (held.value, held.low or 0, held.high or 0)] == pytest.approx(
        [sum(logs) / 4, low, high]
    )
    assert (held.launches, held.sessions) == (4, 1)


def test_equal_sessions_count_as_so_many_values_and_not_as_so_many_launches() -> None:
    sessions = [[0.00, 0.01, -0.01], [0.05, 0.06, 0.04], [-0.02, -0.03, -0.01]]
    means = [sum(logs) / 3 for logs in sessions]
    held = level(_of(*sessions))
    low, high = stats.t.interval(0.95, 2, loc=sum(means) / 3, scale=stats.sem(means))
    assert (math.log(held.low or 0), math.log(held.high or 0)) == pytest.approx((low, high))


def test_ten_nights_of_one_launch_are_ten_values() -> None:
    logs = [0.01 * index for index in range(10)]
    held = level(_of(*([log] for log in logs)))
    low, high = stats.t.interval(0.95, 9, loc=sum(logs) / 10, scale=stats.sem(logs))
    assert (math.log(held.low or 0), math.log(held.high or 0)) == pytest.approx((low, high))


def test_a_single_launch_has_no_interval_and_two_far_apart_settle_nothing() -> None:
    assert level([[5.0]])[1:] == (None, None, 1, 1)
    assert not level([[5.0]]).is_settled
    assert not level([[10_000.0, 14_500.0]]).is_settled
    assert level([[10_000.0, 10_020.0]]).is_settled
    assert level([[7.0, 7.0, 7.0]])[:3] == pytest.approx((7.0, 7.0, 7.0))


def test_the_level_does_not_grow_with_the_number_of_launches() -> None:
    chance = random.Random(3)
    few, many = ([[math.exp(chance.gauss(9.7, 0.1)) for _ in range(count)]] for count in (5, 300))
    assert level(many).value == pytest.approx(math.exp(9.7), rel=0.02)
    assert max(many[0]) > 1.2 * level(many).value
    assert level(few).low is not None


@pytest.mark.parametrize("sizes", [(5,), (3, 3), (4, 4, 4), (1,) * 8, (2, 5, 3, 8)])
def test_the_interval_covers_the_truth_whatever_the_days_do(sizes: tuple[int, ...]) -> None:
    chance = random.Random(sum(sizes))
    covered = 0
    for _ in range(800):
        days = [chance.gauss(0.0, 0.005) if len(sizes) > 1 else 0.0 for _ in sizes]
        held = level(
            _of(*([day + chance.gauss(0.0, 0.005) for _ in range(n)] for day, n in zip(days, sizes, strict=True)))
        )
        covered += (held.low or 0) <= 1.0 <= (held.high or 0)
    assert 0.92 <= covered / 800 <= 0.98


def test_launches_are_in_one_session_by_their_times_or_by_its_name() -> None:
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    hours = [0, 3, 40, 43]
    apart = level_by_session([(1.0 + hour / 100, start + timedelta(hours=hour), None) for hour in hours])
    named = level_by_session([(1.0 + hour / 100, start + timedelta(hours=hour), "night") for hour in hours])
    assert (apart.sessions, named.sessions) == (2, 1)
