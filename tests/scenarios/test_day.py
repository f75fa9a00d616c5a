"""A working day of the people this is built for: each of its pains is caught, and the page says by which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.day import PARTS, Answers, Day
from benchmarks.day_page import NOT_KNOWABLE, PAINS, Row, page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    day, answers = Day(tmp_path_factory.mktemp("day")), Answers()
    for part in PARTS:
        part(day, answers)
    return answers.rows


def test_every_pain_of_the_day_is_caught(rows: list[Row]) -> None:
    passed = [f"{row.tried}: {row.said[:300]}" for row in rows if not row.holds]
    assert not passed


def test_the_page_of_the_day_is_what_the_day_gives(rows: list[Row], checkout: Path) -> None:
    assert (checkout / "docs" / "day.md").read_text(encoding="utf-8") == page(rows)


def test_each_pain_ends_caught_or_with_what_would_show_it(rows: list[Row]) -> None:
    assert len(PAINS) == 12
    assert {name for names in PAINS.values() for name in names} <= {row.tried for row in rows} | set(NOT_KNOWABLE)
