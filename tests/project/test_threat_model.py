"""Every promise of the threat model names a test that exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_the_attacks_run_and_see_no_fault() -> None:
    # A process of its own: what each of its forks takes is bounded, and this one is large.
    every = ("routes", "documents", "logs", "evidence")
    call = [sys.executable, "-m", "benchmarks.attack", *every, "--share", "1000"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    *counts, last = done.stdout.splitlines()
    assert last == "0 faults"
    assert [line.partition(":")[0] for line in counts] == ["requests", "documents", "logs", "evidence"]
    assert all("()" not in line for line in counts), "each of them had answers"
