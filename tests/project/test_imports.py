"""What a command may load. A library that a call does not use costs that call as much as one that it uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rule_cases

PROGRAM = """
import sys
from receipts.cli import main
print(f"\\n{main()}", *sys.modules, file=sys.stderr)
"""


@pytest.fixture
def loaded_by(tmp_path: Path) -> Callable[..., set[str]]:
    """Modules that a command loads, in a folder with receipts a.json and b.json; no store is there at first."""
    for name, micro_batch in (("a", 2), ("b", 4)):
        tree = rule_cases.base()
        rule_cases.put(tree, "run.launch", f"launch-{name}")
        rule_cases.put(tree, "batch.micro_batch", micro_batch)
        (tmp_path / f"{name}.json").write_text(json.dumps(tree), encoding="utf-8")
    environment = {**os.environ, "RECEIPTS_STORE": str(tmp_path / "store.sqlite")}

    def call(*words: str) -> set[str]:
        command = [sys.executable, "-c", PROGRAM, *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        code, *modules = done.stderr.splitlines()[-1].split()
        assert code in {"0", "1", "3"}, done.stderr
        return set(modules)

    return call


@pytest.mark.parametrize("words", ["--help", "compare a.json b.json", "check a.json", "submit a.json b.json", "list"])
def test_no_command_of_every_day_loads_pandas_or_scipy(words: str, loaded_by: Callable[..., set[str]]) -> None:
    assert not {"numpy", "pandas", "pyarrow", "psycopg", "scipy"} & loaded_by(*words.split())


@pytest.mark.parametrize("words", ["--help", "compare a.json b.json", "check a.json"])
def test_what_needs_no_store_loads_no_database(words: str, loaded_by: Callable[..., set[str]]) -> None:
    modules = loaded_by(*words.split())
    assert not {"sqlalchemy", "sqlite3"} & modules
    # The files of evidence lie beside a store, and are read without it.
    files = {"receipts.store.address", "receipts.store.evidence"}
    assert {name for name in modules if name.startswith("receipts.store.")} <= files


def test_no_help_of_a_command_loads_what_judges_or_stores(tmp_path: Path) -> None:
    code = (
        "import contextlib, io, sys; from receipts.cli import main; from receipts.cli.group import commands\n"
        "for name in commands():\n"
        "    with contextlib.redirect_stdout(io.StringIO()):\n"
        "        assert main([name, '--help']) == 0\n"
        "    loaded = {'pydantic', 'sqlalchemy', 'jinja2', 'receipts.judging'} & set(sys.modules)\n"
        "    assert not loaded, (name, loaded)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_help_reads_metadata_of_distributions_only_where_one_names_plugins(loaded_by: Callable[..., set[str]]) -> None:
    assert "importlib.metadata" not in loaded_by("--help")


def test_the_engine_takes_modules_of_the_recorder_and_not_the_recorder(loaded_by: Callable[..., set[str]]) -> None:
    modules = loaded_by("submit", "a.json")
    assert "receipts.emit.launch_values" in modules
    assert "receipts.emit.recorder" not in modules


def test_what_a_section_declares_is_not_text_that_every_start_compiles() -> None:
    from receipts.receipt.document import Receipt
    from receipts.receipt.leaf import Section

    sections = [section for section in Section.__subclasses__() if section.__module__.startswith("receipts.")]
    assert Receipt in sections
    late = {name for section in sections for name in section.__annotations__.values() if isinstance(name, str)}
    assert late == set()
