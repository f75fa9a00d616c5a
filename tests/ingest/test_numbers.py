"""Numbers as logs print them, and as nobody should have to wait for."""

from __future__ import annotations

import pytest

from receipts.ingest.literals import number, size


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.5", 1234.5), ('"0.25"', 0.25), ("1e-3", 1e-3), ("7.", 7.0), (".5", 0.5), ("1.2.3", None), ("12a", None)],
)
def test_a_number_is_what_is_printed(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8.00 MiB", 8 << 20),
        ("26.25G", round(26.25 * (1 << 30))),
        ("640 bytes", 640),
        ("9" * 400 + "G", None),
        ("G", None),
    ],
)
def test_a_size_is_in_bytes_and_finite(text: str, value: int | None) -> None:
    assert size(text) == value


def test_a_long_run_of_digits_is_read_once() -> None:
    # Tried anew from each of its digits it would take minutes.
    assert number("0" * 400_000 + "x") is None
    assert size("0" * 400_000 + "x") is None
