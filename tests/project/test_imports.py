"""What a command may load. A library that a call does not use costs that call as much as one that it uses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rule_cases

PROGRAM = """
import sys
from receipts.cli import main
code = main()
print(code, *sorted({"pandas", "scipy"} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("words", [["--help"], ["compare", "a.json", "b.json"], ["submit", "a.json", "b.json"]])
def test_no_command_of_every_day_loads_pandas_or_scipy(words: list[str], tmp_path: Path) -> None:
    for name, micro_batch in (("a", 2), ("b", 4)):
        tree = rule_cases.base()
        rule_cases.put(tree, "run.launch", f"launch-{name}")
        rule_cases.put(tree, "batch.micro_batch", micro_batch)
        (tmp_path / f"{name}.json").write_text(json.dumps(tree), encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, "--store", str(tmp_path / "store.sqlite"), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch("[013]", done.stderr.splitlines()[-1])


def test_what_a_section_declares_is_not_text_that_every_start_compiles() -> None:
    from receipts.receipt.document import Receipt
    from receipts.receipt.leaf import Section

    sections = [section for section in Section.__subclasses__() if section.__module__.startswith("receipts.")]
    assert Receipt in sections
    late = {name for section in sections for name in section.__annotations__.values() if isinstance(name, str)}
    assert late == set()
