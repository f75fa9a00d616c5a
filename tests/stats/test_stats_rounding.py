"""Printed numbers, and how far their rounding reaches."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.base.units import read_printed
from receipts.stats.rounding import Interval, half_of


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [
        ("98k", 98_000, 500),
        ("98 ktok/s", 98_000, 500),
        ("1,963", 1963, 0.5),
        ("1 963", 1963, 0.5),
        ("112,152 tok/s", 112_152, 0.5),
        ("29.2 %", 0.292, 0.0005),
        ("+13.3%", 0.133, 0.0005),
        ("90400", 90_400, 0.5),
        ("~90400", 90_400, 50),
        ("about 5.5 s", 5.5, 0.05),
        ("~0", 0, 0.5),
        ("3.03B", 3.03e9, 5e6),
        ("~4.73 billion", 4.73e9, 5e6),
        ("1.5e3", 1500, 50),
        ("1.2e-3 s", 0.0012, 5e-5),
        ("1450 ms", 1.45, 0.0005),
        ("617 TFLOP/s/GPU", 617e12, 0.5e12),
        ("52 GiB", 52 * 2**30, 2**29),
        ("136.27 GB (stage 0)", 136.27e9, 5e6),
        ("0.61 MFU", 0.61, 0.005),
        ("2.0x", 2.0, 0.05),
        ("-3.2", -3.2, 0.05),
        (".5", 0.5, 0.05),
    ],
)
def test_a_printed_number_is_read_with_half_its_last_digit(text: str, value: float, half: float) -> None:
    printed = read_printed(text)
    assert printed is not None
    assert printed.value == pytest.approx(value, rel=1e-12)
    assert printed.half == pytest.approx(half, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n/a",
        "9.4-9.6",
        "9.4 to 9.6",
        ">141",
        "1,5",
        "0,963",
        "12,34",
        "1116/1082/1064",
        "1e400",
        "e3",
        "2026-04-10",
    ],
)
def test_what_is_not_one_number_is_refused(text: str) -> None:
    assert read_printed(text) is None


@pytest.mark.parametrize(
    ("value", "text", "half"),
    [
        (1.45, "1450 ms", 0.0005),
        (0.292, "29.2 %", 0.0005),
        (29.2, "29.2 %", 0.05),
        (617.0, "617 TFLOP/s", 0.5),
        (617e12, "617 TFLOP/s", 0.5e12),
        (52 * 2.0**30, "52 GiB", 2.0**29),
        (60.0, "1 min", 30.0),
        (98_120.0, "98k", 500.0),
        (0.0, "0.0", 0.05),
    ],
)
def test_the_half_digit_follows_the_unit_of_the_value(value: float, text: str, half: float) -> None:
    assert half_of(value, text) == pytest.approx(half, rel=1e-9)


def test_without_a_fitting_text_the_digits_of_the_value_count() -> None:
    assert half_of(2.337) == pytest.approx(0.0005)
    assert half_of(1450.0) == 0.5
    assert half_of(1e-7) == pytest.approx(5e-8)
    assert half_of(90_394.0, "98k") == 0.5
    assert half_of(3.5, "n/a") == pytest.approx(0.05)


def test_tokens_a_second_agree_with_batch_over_step_time_within_the_printed_digits() -> None:
    printed = read_printed("2.337 s")
    assert printed is not None
    computed = 262_144 / Interval.around(printed.value, printed.half)
    assert Interval.around(112_152, 0.5).meets(computed)
    assert not Interval.around(113_000, 0.5).meets(computed)
    wide = 65_536 / Interval.around(1.160, 0.0005)
    assert not Interval.around(56_280, 0.5).meets(wide)


def test_rounding_of_the_arithmetic_itself_is_no_disagreement() -> None:
    assert Interval.exact(0.1 + 0.2).meets(Interval.exact(0.3))
    assert not Interval.exact(0.3001).meets(Interval.exact(0.3))


def test_a_divisor_that_may_be_zero_contradicts_nothing() -> None:
    assert (1.0 / Interval(-1.0, 1.0)).contains(1e9)
    assert (1.0 / Interval(0.0, 1.0)).contains(1e300)
    assert not (1.0 / Interval(0.0, 1.0)).contains(0.5)
    nothing = Interval.exact(0.0) / Interval.exact(0.0)
    assert not math.isnan(nothing.low)


numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(x=numbers, y=numbers, rx=st.floats(0, 10), ry=st.floats(0, 10), s=st.floats(-1, 1), t=st.floats(-1, 1))
def test_an_interval_holds_what_its_members_give(x: float, y: float, rx: float, ry: float, s: float, t: float) -> None:
    one, other = Interval.around(x, rx), Interval.around(y, ry)
    p, q = min(max(x + s * rx, one.low), one.high), min(max(y + t * ry, other.low), other.high)
    assert (one * other).contains(p * q)
    # Sums of opposite signs cancel, so only the order of the ends is held there.
    assert (one + other).low - 1e-6 <= p + q <= (one + other).high + 1e-6
    assert (one - other).low - 1e-6 <= p - q <= (one - other).high + 1e-6
    if q != 0.0 and math.isfinite(p / q):
        assert (one / other).contains(p / q)
