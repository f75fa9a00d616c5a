"""A spreadsheet runs no text of an exported receipt as a formula, and a program may have the texts as they are."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest

from receipts.plugins.exchange.rows import CsvTable

STARTED = datetime(2026, 3, 2, tzinfo=UTC)
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]


def _cells(value: object, *, raw: bool) -> list[str]:
    stream = io.StringIO()
    writer = CsvTable(stream, raw=raw)
    names = stream.getvalue().strip().split(",")[:-1]
    row: dict[str, Any] = dict.fromkeys(("run_lane" if name == "lane" else name for name in names), value)
    writer.add("receipts", [{**row, "started": STARTED, "finished": None}])
    by_name = next(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))
    return [by_name["lane"], by_name["label"]]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text(text: str) -> None:
    assert _cells(text, raw=False) == [f"'{text}"] * 2
    assert _cells(text, raw=True) == [text] * 2


@pytest.mark.parametrize("value", [-1.5, "H200", "a=b"])
def test_numbers_and_other_texts_stay(value: object) -> None:
    assert _cells(value, raw=False) == [str(value)] * 2
