"""What each command may load. A library that nobody uses in a call costs that call as much as one that is used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import rule_cases

HEAVY = ("alembic", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "rich", "scipy", "asyncio", "multiprocessing")
DATABASE = ("sqlalchemy", "sqlite3", "psycopg")
PROGRAM = """
import json, sys
before = set(sys.modules)
from receipts.cli import main
code = main()
sys.stdout.flush()
# What only stands in for a module until somebody asks it something has no spec.
loaded = sorted(name for name in set(sys.modules) - before if getattr(sys.modules[name], "__spec__", None))
sys.stderr.write("\\n" + json.dumps({"code": code, "loaded": loaded}))
"""


def loaded(arguments: Sequence[str], store: Path | None) -> set[str]:
    """Top-level names of all modules that a call loads, and the full names of those of the program itself."""
    named = ["--store", str(store)] if store is not None else []
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *named, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["code"] in (0, 1, 3), done.stderr
    names = set(told["loaded"])
    return {name.partition(".")[0] for name in names} | {name for name in names if name.startswith("receipts")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two receipts, and a store that holds them."""
    folder = tmp_path_factory.mktemp("imports")
    for name, micro_batch in (("a", 2), ("b", 4)):
        tree = rule_cases.base()
        rule_cases.put(tree, "run.launch", f"launch-{name}")
        rule_cases.put(tree, "batch.micro_batch", micro_batch)
        (folder / f"{name}.json").write_text(json.dumps(tree), encoding="utf-8")
    loaded(["submit", str(folder / "a.json"), str(folder / "b.json")], folder / "store.sqlite")
    return folder


def test_version_loads_nothing_but_itself(place: Path) -> None:
    names = loaded(["--version"], None)
    assert {name for name in names if name.startswith("receipts")} == {"receipts", "receipts.cli"}
    assert names & {"click", "pydantic", "json", "re", "inspect", *HEAVY, *DATABASE} == set()


def _commands() -> list[str]:
    from receipts.cli.group import COMMANDS

    return list(COMMANDS)


@pytest.mark.parametrize("command", ["", *_commands()])
def test_help_loads_no_receipt_no_rule_and_no_library_but_click(command: str, place: Path) -> None:
    names = loaded([*([command] if command else []), "--help"], place / "store.sqlite")
    assert names & {"pydantic", "tomllib", "importlib.metadata", *HEAVY, *DATABASE} == set()
    assert names & {"receipts.receipt", "receipts.rule", "receipts.lane", "receipts.metrics", "receipts.store"} == set()


def test_comparing_two_files_loads_no_database(place: Path) -> None:
    names = loaded(["compare", str(place / "a.json"), str(place / "b.json")], place / "store.sqlite")
    assert "receipts.compare" in names
    assert names & {*HEAVY, *DATABASE, "receipts.store", "receipts.claims"} == set()


def test_checking_a_file_loads_no_database_unless_a_store_is_named(place: Path) -> None:
    names = loaded(["check", str(place / "a.json")], None)
    assert names & {*HEAVY, *DATABASE, "receipts.store", "receipts.claims"} == set()


@pytest.mark.parametrize("arguments", [["submit", "a.json"], ["list"], ["show", "a.json"], ["pin"]])
def test_using_a_store_loads_no_migrations_and_no_columns(arguments: list[str], place: Path) -> None:
    words = [str(place / word) if word.endswith(".json") else word for word in arguments]
    names = loaded(words, place / "store.sqlite")
    assert names & {*HEAVY, "psycopg", "receipts.importers", "receipts.report", "receipts.claims"} == set()


def test_a_sqlite_store_loads_no_other_dialect(place: Path) -> None:
    code = (
        "import sys; from receipts.store import open_store; open_store(sys.argv[1]).close();"
        "sys.exit(any(name.startswith('sqlalchemy.dialects.postgresql') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(place / "store.sqlite")], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("arguments", [["lanes"], ["lanes", "cpu-torch"], ["rules"], ["axes"], ["init", "cpu-torch"]])
def test_asking_what_is_known_loads_no_database(arguments: list[str], place: Path) -> None:
    assert loaded(arguments, place / "store.sqlite") & {*HEAVY, *DATABASE, "receipts.store"} == set()


def test_a_table_that_is_piped_loads_no_rich(place: Path) -> None:
    assert "rich" not in loaded(["list"], place / "store.sqlite")


def test_what_a_section_declares_is_not_text_that_every_start_compiles() -> None:
    from receipts.receipt.document import Receipt
    from receipts.receipt.leaf import Section

    sections = [section for section in Section.__subclasses__() if section.__module__.startswith("receipts.")]
    assert Receipt in sections
    late = {name for section in sections for name in section.__annotations__.values() if isinstance(name, str)}
    assert late == set()


def test_a_module_on_demand_is_loaded_when_something_is_asked_of_it_and_then_is_the_real_one() -> None:
    code = (
        "import sys; from receipts.cli import _on_demand; _on_demand('importlib.metadata');"
        "from importlib import metadata; assert 'email' not in sys.modules;"
        "assert metadata.version('click'); assert 'email' in sys.modules;"
        "import importlib.metadata as real; assert real is not metadata; assert real.version is metadata.version;"
        "_on_demand('asyncio', 'iscoroutine'); import asyncio; asks = asyncio.iscoroutine;"
        "assert 'asyncio.events' not in sys.modules; assert asks(7) is False; assert 'asyncio.events' in sys.modules;"
        "import asyncio as real; assert real is not asyncio; assert asyncio.Lock is real.Lock"
    )
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], check=False)
    assert done.returncode == 0
