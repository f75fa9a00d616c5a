"""Windows in words are the steps that they name, or stand for themselves."""

from __future__ import annotations

import pytest

from receipts.metrics.stated import read_window


@pytest.mark.parametrize(
    ("text", "steps", "first", "last", "statistic"),
    [
        ("iters 3-6", None, 3, 6, None),
        ("steps 10 to 100", None, 10, 100, None),
        ("steps 3/4", None, 3, 4, None),
        ("hot (from step 3)", 8, 3, 8, None),
        ("iters 5+", 20, 5, 20, None),
        ("iters 50-100, n=51", None, 50, 100, None),
        ("25 iters, median of iters 3-25", None, 3, 25, "median"),
        ("README: average over steps 3-25", None, 3, 25, "mean"),
    ],
)
def test_a_text_names_its_steps(text: str, steps: int | None, first: int, last: int, statistic: str | None) -> None:
    read = read_window(text, steps)
    assert read is not None
    assert (read.first, read.last, read.statistic, read.beside) == (first, last, statistic, frozenset())


@pytest.mark.parametrize(
    "text",
    [
        "iters 3-14 / 3-30",
        "steps 4-8 (5367.1 on steps 3-8)",
        "hot (from step 3)",
        "step 3/10",
        "steps 8-3",
        "single iteration",
        "5 warm-up, 20 iters",
        "mean and median of iters 3-6",
    ],
)
def test_a_text_that_names_no_one_stretch_stands_for_itself(text: str) -> None:
    assert read_window(text, None) is None


def test_what_else_is_said_keeps_two_windows_apart() -> None:
    everyone, one_rank = read_window("iters 6-10", None), read_window("iters 6-10, rank 0 only", None)
    assert everyone is not None
    assert one_rank is not None
    assert not everyone.same_steps(one_rank)
