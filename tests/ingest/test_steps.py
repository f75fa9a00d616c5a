"""Columns of steps: what repeats, goes back, comes from several ranks; many lines at once as one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from receipts.ingest import steps as module
from receipts.ingest.steps import ABSENT, FIELDS, Steps, rising


def facts(steps: Steps) -> dict[str, Any]:
    return {
        "order": list(steps),
        "numbers": steps.numbers(),
        "columns": {name: steps.column(name) for name in FIELDS},
        "single": {name: [steps.get(step, name) for step in steps.numbers()] for name in FIELDS},
        "skews": [steps.skew(step) for step in steps],
        "others": (len(steps), steps.restarts, steps.lost),
    }


def test_the_last_record_of_a_step_stands_and_going_back_is_a_restart() -> None:
    steps = Steps()
    for step, loss in ((1, 5.0), (2, 4.0), (3, 3.0), (2, 3.5)):
        steps.put(step, {"loss": loss})
    assert steps.column("loss") == [5.0, 3.5, 3.0]
    assert steps.restarts == 1
    assert list(steps) == [1, 2, 3]


def test_what_a_repeated_step_no_longer_prints_is_absent() -> None:
    steps = Steps()
    steps.put(1, {"loss": 5.0, "grad_norm": 1.0})
    steps.put(1, {"loss": 4.0})
    assert steps.get(1, "grad_norm") is None


def test_a_second_line_of_a_step_adds_what_the_first_one_does_not_print() -> None:
    steps = Steps()
    for step, values in ((1, {"loss": 5.0}), (1, {"step_seconds": 2.0}), (2, {"loss": 4.0}), (1, {"grad_norm": 1.0})):
        steps.put(step, values)
    # Behind another step it is a restart's.
    assert (steps.column("loss"), steps.column("step_seconds")) == ([None, 4.0], [None, None])
    steps.put(2, {"step_seconds": 3.0})
    assert (steps.get(2, "loss"), steps.get(2, "step_seconds")) == (None, 3.0)
    steps.put(2, {"loss": 3.5})
    assert (steps.get(2, "loss"), steps.get(2, "step_seconds")) == (3.5, 3.0)


def test_the_slowest_of_several_ranks_stands_and_the_fastest_gives_the_skew() -> None:
    steps = Steps()
    for rank, seconds in ((0, 1.0), (1, 2.0), (2, 1.5)):
        steps.put(7, {"step_seconds": seconds}, rank)
    assert steps.get(7, "step_seconds") == 2.0
    assert steps.skew(7) == 0.5


def test_one_rank_has_no_skew_and_its_second_record_replaces_the_first() -> None:
    steps = Steps()
    steps.put(7, {"step_seconds": 2.0}, 0)
    steps.put(7, {"step_seconds": 1.0}, 0)
    assert steps.get(7, "step_seconds") == 1.0
    assert steps.skew(7) is None


def test_a_restart_of_all_ranks_is_one_and_forgets_the_times_before_it() -> None:
    steps = Steps()
    for step in (1, 2, 3):
        for rank in (0, 1):
            steps.put(step, {"step_seconds": 9.0 - rank}, rank)
    for step in (2, 3):
        for rank in (0, 1):
            steps.put(step, {"step_seconds": 1.0 + rank}, rank)
    assert steps.restarts == 1
    assert steps.column("step_seconds") == [9.0, 2.0, 2.0]
    assert steps.skew(2) == 0.5


def test_steps_beyond_the_limit_are_counted_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STEPS", 10)
    one, many = Steps(), Steps()
    for step in range(25):
        one.put(step, {"loss": float(step)})
    many.extend(range(7), {"loss": [float(step) for step in range(7)]})
    many.extend(range(7, 25), {"loss": [float(step) for step in range(7, 25)]})
    assert facts(one) == facts(many)
    assert one.lost == 15


@pytest.mark.parametrize("seed", range(60))
def test_many_lines_of_one_printer_are_as_one_after_the_other(seed: int) -> None:
    chance = random.Random(seed)
    one, many = Steps(), Steps()
    step, rank = 0, chance.choice((None, 0, 3))
    for _ in range(20):
        numbers = []
        for _ in range(chance.randrange(1, 9)):
            step = max(0, step + chance.choice((1, 1, 1, 1, 2, 50, 0, -3)))
            numbers.append(step)
        columns = {name: [chance.choice((1.0, 2.0, ABSENT)) for _ in numbers] for name in chance.sample(FIELDS, 3)}
        many.extend(numbers, columns, rank)
        for at, number in enumerate(numbers):
            values = {name: column[at] for name, column in columns.items()}
            one.put(number, {name: value for name, value in values.items() if value != ABSENT}, rank)
    assert facts(one) == facts(many)


@pytest.mark.parametrize("seed", range(60))
def test_many_lines_of_several_ranks_are_as_one_after_the_other(seed: int) -> None:
    chance = random.Random(seed)
    one, many = Steps(), Steps()
    last = dict.fromkeys(range(4), 0)
    for _ in range(20):
        ranks = [chance.randrange(4) for _ in range(chance.randrange(1, 12))]
        numbers = []
        for rank in ranks:
            last[rank] = max(
                0, last[rank] + chance.choice((1, 1, 1, 1, 1, 2, 0 if seed % 2 else 1, -2 if seed % 3 else 1))
            )
            numbers.append(last[rank])
        columns = {name: [chance.choice((1.0, 2.0, 3.0, ABSENT)) for _ in numbers] for name in ("step_seconds", "loss")}
        many.merge(numbers, ranks, columns)
        for at, (number, rank) in enumerate(zip(numbers, ranks, strict=True)):
            values = {name: column[at] for name, column in columns.items()}
            one.put(number, {name: value for name, value in values.items() if value != ABSENT}, rank)
    assert facts(one) == facts(many)


def test_numbers_rise_where_each_is_greater_than_the_one_before_it() -> None:
    assert rising([3, 4, 9], 2)
    assert rising([], 2)
    assert not rising([3, 3], 2)
    assert not rising([2, 3], 2)


def test_a_step_of_any_size_has_its_place() -> None:
    steps = Steps()
    for number in (5, 1 << 70, -3):
        steps.put(number, {"loss": float(number)})
    assert steps.numbers() == [-3, 5, 1 << 70]
    assert steps.column("loss") == [-3.0, 5.0, float(1 << 70)]
