"""Generated pages and schemas are those that their sources give now."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def generate(checkout: Path) -> ModuleType:
    """``docs/generate.py``, loaded from its file."""
    path = checkout / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("docs_generate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture(scope="module")
def pages(generate: ModuleType) -> Mapping[str, str]:
    """Every generated file with the text that it must have."""
    found: Mapping[str, str] = generate.pages()
    return found


def test_no_generated_file_is_stale(generate: ModuleType, pages: Mapping[str, str]) -> None:
    stale = generate.stale(pages)
    assert not stale, f"run `make docs`, stale: {', '.join(stale)}"


def test_a_missing_a_changed_and_a_leftover_file_are_stale(
    generate: ModuleType, pages: Mapping[str, str], tmp_path: Path
) -> None:
    assert generate.stale(pages, tmp_path) == sorted(pages)
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert generate.stale(pages, tmp_path) == []
    (tmp_path / "schema/receipt-1.md").write_text("# Another")
    (tmp_path / "docs/reference/rules/R999.md").write_text("# R999")
    (tmp_path / "schema/examples").mkdir()
    (tmp_path / "schema/examples/mine.json").write_text("{}")
    assert generate.stale(pages, tmp_path) == ["docs/reference/rules/R999.md", "schema/receipt-1.md"]


def test_check_names_what_is_stale_and_writes_nothing(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(generate, "pages", lambda: {"docs/reference/x.md": "x"})
    monkeypatch.setattr(generate, "stale", lambda wanted: list(wanted))
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale: docs/reference/x.md\n"
    assert list(tmp_path.iterdir()) == []
    assert generate.main([]) == 0
    assert (tmp_path / "docs/reference/x.md").read_text() == "x"


def test_every_rule_of_the_index_has_its_reason(pages: Mapping[str, str]) -> None:
    rows = [line for line in pages["docs/reference/rules.md"].splitlines() if line.startswith("| [")]
    assert len(rows) == sum(name.startswith("docs/reference/rules/") for name in pages)
    for row in rows:
        assert row.split(" | ")[-1].strip(" |"), row


def test_every_command_has_examples(pages: Mapping[str, str]) -> None:
    from receipts.cli.group import commands

    helps = dict(part.split("\n", 1) for part in pages["docs/reference/cli.md"].split("\n## ")[1:])
    for name in commands():
        subcommands = [text for title, text in helps.items() if title.startswith(f"receipts {name} ")]
        assert any("Examples:" in text for text in [helps[f"receipts {name}"], *subcommands]), name
