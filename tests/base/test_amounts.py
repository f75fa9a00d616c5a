"""Amounts of memory are told in a unit in which they can be read."""

from __future__ import annotations

import pytest

from receipts.base.amounts import amount


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


def test_amounts_side_by_side_share_a_unit() -> None:
    assert amount(67_584, like=48 * 2**30) == "0.00 GiB"
    assert amount(2**20, like=2**24) == "1.00 MiB"
