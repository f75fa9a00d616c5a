"""A table that comes from outside is refused before it exhausts its reader, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import ReceiptsError
from receipts.plugins.exchange import table

DEEP = "[" * 100_000


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
