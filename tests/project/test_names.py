"""Names that tell nothing of a value: a result is named for what it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import receipts

NAMELESS: Final = frozenset({"found", "made", "told", "said", "says"})
WORD: Final = re.compile(rf"\b_*(?:{'|'.join(sorted(NAMELESS))})_*\b")  # in most files no text has one
ROOMS: Final = tuple(
    sorted(path.name for path in Path(receipts.__file__).parent.iterdir() if path.is_dir() and path.name[0] != "_")
)


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Functions, parameters and variables with their lines. Fields of a class are data, which documents name too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
            yield from _bound(node)
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def nameless(source: str) -> list[tuple[int, str]]:
    """The lines of a module that bind such a name."""
    if not WORD.search(source):
        return []
    return sorted({item for item in _names(ast.parse(source)) if item[1].strip("_") in NAMELESS})


@pytest.mark.parametrize("room", ROOMS)
def test_no_value_is_called_found_or_made(room: str) -> None:
    files = sorted((Path(receipts.__file__).parent / room).rglob("*.py"))
    assert files
    assert {file.name: lines for file in files if (lines := nameless(file.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "source", ["def f():\n    found = 1", "def _said(): ...", "def f(told): ...", "def f(self):\n    self._made = 1"]
)
def test_such_names_are_seen(source: str) -> None:
    assert nameless(source)


def test_a_field_of_a_document_keeps_its_name() -> None:
    assert not nameless("class Finding:\n    found: str")
