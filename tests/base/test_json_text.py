"""JSON that comes from outside raises one kind of error, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import InputError, ReceiptsError, UsageError
from receipts.base.untrusted_text import parse_json
from receipts.plugins.exchange import table
from receipts.plugins.serve import operation
from receipts.plugins.study.experiment import FILE, read_experiment

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [DEEP, "{", b"\xff", "1" * 10_000, ""])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_json(text)


def test_a_plan_or_cursor_that_nests_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(DEEP)
    with pytest.raises(InputError, match="nests too deep"):
        read_experiment(tmp_path)
    with pytest.raises(UsageError, match="no cursor"):
        operation.read_cursor("W1tb" * 25_000)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("long.csv", f"a,b\n1,{'x' * 131_073}\n", "line 2: this is not CSV: field larger than field limit"),
        ("long.tsv", "x" * 131_073, "line 1: this is not CSV: field larger"),
        ("deep.json", DEEP, "this is not JSON"),
        ("deep.jsonl", DEEP, "line 1: this is not JSON"),
        ("wide.csv", "," * 1_000_001, "it has more than 1,000,000 cells"),
        ("wide.json", f"[{'[],' * 500_000}[]]", "it has more than 1,000,000 cells"),
    ],
)
def test_a_table_that_would_exhaust_its_reader_is_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ReceiptsError, match=problem):
        table.read_table(file)
