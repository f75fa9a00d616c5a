"""Units have one factor each, and amounts of memory are printed in a unit in which they can be read."""

from __future__ import annotations

import pytest

from receipts.base.units import amount, factor, half_place, plain


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (141e9, "131.32 GiB"),
        (2**30, "1.00 GiB"),
        (0.25 * 2**30, "0.25 GiB"),
        (2_673_869, "2.55 MiB"),  # what a TPU kernel asked of VMEM
        (67_584, "66.00 KiB"),
        (12, "12 B"),
        (0, "0 B"),
        (-(2**31), "-2.00 GiB"),
        (3 * 2**50, "3,145,728.00 GiB"),
    ],
)
def test_an_amount_is_never_all_zeros(value: float, said: str) -> None:
    assert amount(value) == said


def test_an_amount_too_small_for_the_shared_unit_keeps_its_own() -> None:
    assert amount(67_584, like=48 * 2**30) == "66.00 KiB"
    assert amount(-67_584, like=48 * 2**30) == "-66.00 KiB"
    assert amount(0, like=48 * 2**30) == "0.00 GiB"


def test_amounts_side_by_side_share_a_unit() -> None:
    assert amount(2**28, like=48 * 2**30) == "0.25 GiB"
    assert amount(2**20, like=2**24) == "1.00 MiB"


@pytest.mark.parametrize(
    ("unit", "scale"),
    [
        ("", 1.0), ("k", 1e3), ("KiB", 1024.0), ("GB", 1e9), ("B", 1e9), ("bytes", 1.0), ("kB/s", 1e3), ("%", 0.01),
        ("min", 60.0), ("hour", 3600.0), ("minute", 60.0), ("msec", 1e-3), ("gigabytes", 1e9), ("Ktok/s", 1e3),
        ("TFLOP/s", 1e12), ("million params", 1e6), ("tok/s", 1.0), ("Mamba", 1.0), ("m", 1.0),
    ],
)  # fmt: skip
def test_a_unit_has_one_factor(unit: str, scale: float) -> None:
    assert factor(unit) == pytest.approx(scale)


@pytest.mark.parametrize(("text", "half"), [("98", 0.5), ("1.30", 0.005), ("1.5e3", 50.0), ("-2", 0.5)])
def test_a_printed_number_means_half_its_last_digit_either_way(text: str, half: float) -> None:
    assert half_place(text) == pytest.approx(half)


@pytest.mark.parametrize("text", ["1,450", "1 450", "1_450", "1\u202f450", "1\u00a0450"])
def test_separators_of_thousands_are_no_part_of_a_number(text: str) -> None:
    assert plain(text) == "1450"
