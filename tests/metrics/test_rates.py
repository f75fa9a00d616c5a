"""How far a stated number reaches, and what the kept steps make of a rate."""

from __future__ import annotations

from typing import Any

import pytest

import rule_cases
from receipts.metrics import Launch
from receipts.metrics.stated import TOTAL


def _launch(tree: dict[str, Any]) -> Launch:
    return Launch(rule_cases.parsed(tree), rule_cases.rulebook().lanes.of("cpu-torch"))


def _stating(value: float, text: str | None = None) -> Launch:
    tree = rule_cases.base()
    rule_cases.put(tree, TOTAL, value)
    rule_cases.take(tree, f"{TOTAL}_stated")
    if text is not None:
        rule_cases.put(tree, f"{TOTAL}_stated", text)
    return _launch(tree)


@pytest.mark.parametrize(
    ("value", "text", "strict", "loose"),
    [
        (98000.0, "98k", 500, 500),
        (98000.0, "98,000", 0.5, 0.5),
        (98000.0, None, 0.5, 500),
        (112152.0, None, 0.5, 0.5),
        (100000.0, None, 0.5, 5000),  # two digits are always meant
        (5118.1, None, 0.05, 0.05),
    ],
)
def test_a_number_reaches_half_its_last_digit(value: float, text: str | None, strict: float, loose: float) -> None:
    launch = _stating(value, text)
    for found, half in ((launch.numbers.stated(TOTAL), strict), (launch.numbers.stated_loosely(TOTAL), loose)):
        assert found is not None
        assert found.high - value == pytest.approx(half)
        assert value - found.low == pytest.approx(half)


def _four_steps() -> Launch:
    tree = rule_cases.base()
    rule_cases.put(tree, "measurement.step_durations_seconds", [4.0, 1.0, 2.0, 1.0])
    rule_cases.put(tree, "measurement.step_flags", {"compile": [0]})
    rule_cases.put(tree, "measurement.window", {"start": 2, "stop": 4})
    return _launch(tree)


def test_steps_are_read_over_the_window_and_over_all_with_and_without_the_flagged() -> None:
    centers = {item.name: (item.value.low + item.value.high) / 2 for item in _four_steps().numbers.step_statistics}
    assert centers["mean step of the window"] == pytest.approx(1.5)
    assert centers["mean step of all steps"] == pytest.approx(2.0)
    assert centers["mean step of all steps but those flagged"] == pytest.approx(4 / 3)


def test_the_mean_of_rates_is_not_the_rate_of_the_mean() -> None:
    rates = {item.name: item.value.low for item in _four_steps().numbers.rate_statistics}
    assert rates["the mean of rates over the window"] == pytest.approx(4096 * 0.75)


def test_a_single_step_stands_for_all_only_where_the_receipt_says_so() -> None:
    tree = rule_cases.base()
    assert all(item.name != "a single step" for item in _launch(tree).numbers.step_statistics)
    rule_cases.put(tree, "measurement.stated.statistic", "single_step")
    one = next(item for item in _launch(tree).numbers.step_statistics if item.name == "a single step")
    assert one.value.high == 1.31


def test_a_window_that_starts_after_the_last_step_leaves_out_every_step_and_no_more() -> None:
    tree = rule_cases.base()
    rule_cases.put(tree, "measurement.window", {"start": 2**62})
    parsed = rule_cases.parsed(tree)
    launch = Launch(parsed, rule_cases.rulebook().lanes.of("cpu-torch"))
    assert launch.excluded >= frozenset(range(len(launch.durations)))
    assert len(launch.excluded) == len(launch.durations)
