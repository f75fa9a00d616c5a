"""What import-linter cannot see: what migrations and rules import, which are loaded by path."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import receipts
from receipts.base import environment

# Rules judge values: they import the rooms from `judging` and `estimate` down, but none that reads files.
OPEN_TO_RULES = ("judging", "estimate", "metrics", "axes", "receipt", "stats", "base")
CLOSED_TO_RULES = ("base.resources", "base.config", "judging.rulebook")
RINGS_BELOW = ("plugins",)  # its folders are rooms, each of its own


def _imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            module = node.module or ""
            yield from (f"{module}.{name.name}" for name in node.names) if module == "receipts" else (module,)


def _strangers(files: list[Path], allowed: set[str]) -> list[str]:
    known = allowed | sys.stdlib_module_names
    found = ((path, name) for path in files for name in _imports(path))
    return [f"{path.name}: {name}" for path, name in found if name.partition(".")[0] not in known]


def _rules() -> list[Path]:
    return sorted((environment.bundled_folder("validators") / "rules").glob("*.py"))


def test_a_migration_imports_alembic_and_sqlalchemy_only() -> None:
    """But for those that are generated from the tables until they are released."""
    files = sorted(environment.bundled_folder("migrations").rglob("*.py"))
    assert files
    assert _strangers(files, {"alembic", "sqlalchemy"}) == [
        "0001_first.py: receipts.store.schema",
        "0002_extracts.py: receipts.store.schema",
    ]


def test_a_rule_imports_the_engine_and_the_standard_library_only() -> None:
    assert _rules()
    assert _strangers(_rules(), {"receipts"}) == []


def test_a_rule_reaches_for_no_file_no_store_and_no_log() -> None:
    outside = {"os", "pathlib", "shutil", "socket", "sqlite3", "subprocess"}
    closed = {f"receipts.{part}" for part in CLOSED_TO_RULES} | outside
    assert [
        f"{path.name}: {name}"
        for path in _rules()
        for name in _imports(path)
        if any(name == part or name.startswith(f"{part}.") for part in closed)
    ] == []


def test_a_rule_imports_nothing_above_judging_and_estimate() -> None:
    rooms = {(path.name, name.split(".")[1]) for path in _rules() for name in _imports(path) if "receipts." in name}
    assert rooms, "no rule imports the engine: this test would hold of anything"
    assert {(rule, room) for rule, room in rooms if room not in OPEN_TO_RULES} == set()


def test_the_map_at_the_head_of_the_engine_names_every_part() -> None:
    parts = {
        path.stem for path in Path(receipts.__file__).parent.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))
    }
    named = set(re.findall(r"\w+", receipts.__doc__ or ""))
    assert {part for part in parts if not part.startswith("_")} - named == set()


def test_how_it_works_names_the_files_and_rooms_that_are_there() -> None:
    root = Path(receipts.__file__).parents[1]
    page = (root / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:receipts|validators|reports|tests)/[\w./-]*)`", page))
    assert len(named) > 20
    assert {name for name in named if not (root / name).exists()} == set()
    rooms = {path.name for path in (root / "receipts").iterdir() if (path / "__init__.py").exists()}
    drawing = page.partition("```text")[2].partition("```")[0]
    assert rooms - set(re.findall(r"\w+", drawing)) == set()


def test_the_table_of_where_a_change_goes_names_every_room_and_only_what_is_there() -> None:
    root = Path(receipts.__file__).parents[1]
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("## Where a change goes")[2].partition("\n## ")[0]
    places = set(re.findall(r"`((?:receipts|validators|reports|tests)/[\w./-]*)`", table))
    places = {name for name in places if not re.search(r"/(?:NAME|CODE)\b|/CODE_", name)}  # what is to be made
    assert {name for name in places if not (root / name).exists()} == set()
    rooms = {path.parent for path in (root / "receipts").glob("*/__init__.py") if path.parent.name not in RINGS_BELOW}
    rooms |= {path.parent for path in (root / "receipts" / "plugins").glob("*/__init__.py")}
    named = {(root / name).resolve() for name in places}
    assert {room.name for room in rooms if not any(place.is_relative_to(room) for place in named)} == set()


def test_no_circle_of_files_is_imported(checkout: Path) -> None:
    from benchmarks.house import SourceFile, circles, source_files

    files = {"receipts/a.py": "import receipts.b\n", "receipts/b.py": "from receipts.a import x\n"}
    made_up = [SourceFile(checkout / name, text) for name, text in files.items()]
    assert circles(made_up) == 1
    assert circles(source_files()) == 0
