"""Every promise of the threat model names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks.attack.documents import mutated_documents
from benchmarks.attack.evidence import mutated_evidence
from benchmarks.attack.logs import mutated_logs
from benchmarks.attack.routes import asked

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_promise_has_a_test_that_exists() -> None:
    tables = re.findall(r"^\| (?:promise |\| at most )\| test \|\n(?:\|.*\n)+", PAGE, re.M)
    rows = [row for table in tables for row in table.strip().splitlines()[2:]]
    assert len(rows) > 80
    for row in rows:
        named = TEST.findall(row)
        assert named, f"no test holds: {row}"
        for file, name in named:
            assert name in _tests(ROOT / file), f"{file} has no {name}"


def _tests(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.slow
def test_the_attacks_run_and_see_no_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    receipt, log = ROOT / "examples" / "cpu" / "nan-1.json", ROOT / "examples" / "ingest" / "jax.log"
    with capfd.disabled():  # each process writes its counts to a file in place of its standard output
        outcomes = (
            asked(tmp_path, 12),
            mutated_documents(tmp_path, [receipt], 3),
            mutated_logs([log], 3),
            mutated_evidence([log], 3),
        )
    for outcome in outcomes:
        assert (outcome.faults, sum(outcome.ends.values())) == ((), outcome.inputs)
