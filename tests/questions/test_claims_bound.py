"""What a claim says of a number, as people write it."""

from __future__ import annotations

import math

import pytest

from receipts.judging import bound
from receipts.judging.bound import NotABound, State


@pytest.mark.parametrize(
    ("text", "low", "high", "of"),
    [
        ("at least 1.10", 1.10, math.inf, "improvement"),
        ("at most 0.9", 0.0, 0.9, "improvement"),
        ("about 1.3 ± 5 %", 1.235, 1.365, "improvement"),
        ("1.3×", 1.25, 1.35, "improvement"),
        ("10 % faster", 1.095, 1.105, "improvement"),
        ("at least 10 % slower", 0.0, 0.9, "improvement"),
        ("+13.3 %", 1.1325, 1.1335, "metric"),
        ("−34 %", 0.655, 0.665, "metric"),
        ("20 % less", 0.795, 0.805, "metric"),
        ("within ±1 %", 1 / 1.01, 1.01, "metric"),
        ("between 1.06 and 1.27", 1.06, 1.27, "improvement"),
        ("at most 115 GiB", 0.0, 115 * 2**30, "value"),
        ("98k tok/s", 97_500.0, 98_500.0, "value"),
        ("10 percent faster", 1.095, 1.105, "improvement"),
    ],
)
def test_a_bound_is_read_from_the_words_that_people_use(text: str, low: float, high: float, of: str) -> None:
    found = bound.read(text)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert (found.of, found.text) == (of, text)


def test_a_percentage_of_a_share_is_a_value() -> None:
    found = bound.read("29.2 %", share=True)
    assert (found.low, found.high, found.of) == (pytest.approx(0.2915), pytest.approx(0.2925), "value")


@pytest.mark.parametrize(
    "text",
    ["fast", "", "13 %", "at least 1.1 ± 5 %", "within 3", "between 1 and 115 GiB", "112 tok/s faster", "0 × faster"],
)
def test_what_is_no_bound_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(NotABound, match=r"\w"):
        bound.read(text)


@pytest.mark.parametrize(
    ("text", "low", "high", "state"),
    [
        ("at least 1.10", 1.10, 1.2, "holds"),
        ("at least 1.10", 1.05, 1.2, "open"),
        ("at least 1.10", 1.0, 1.0999, "fails"),
        ("about 1.3 ± 5 %", 1.24, 1.36, "holds"),
        ("about 1.3 ± 5 %", 1.2, 1.3, "open"),
        ("about 1.3 ± 5 %", 1.38, 1.41, "fails"),
    ],
)
def test_an_interval_inside_holds_outside_fails_and_across_is_open(
    text: str, low: float, high: float, state: State
) -> None:
    assert bound.read(text).judge(low, high) == state


@pytest.mark.parametrize("text", ["+13 ± 2 %", "+1.2k tok/s", "−3 GiB", "+0.3 pp", "0.3 % points", "+5,000"])
def test_a_difference_is_told_as_one(text: str) -> None:
    assert bound.difference(text) is not None


@pytest.mark.parametrize(
    "text", ["+13 % ± 2 %", "-8.1 percent", "29.2 %", "115 GiB", "1.3×", "between 1.1 and 1.2", ""]
)
def test_a_change_in_per_cent_a_value_and_a_factor_are_none(text: str) -> None:
    assert bound.difference(text) is None
