"""Columns that no entry of a mapping names: settings all the same where the mapping says so, else told."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from receipts.workflows.tables.assemble import MAX_KEY, as_text
from receipts.workflows.tables.mapping import Rest
from receipts.workflows.tables.row_draft import RowDraft
from receipts.workflows.tables.table import TableRow

# Behind a number, that of another run of the row: `1 (0)`.
_ANOTHER = re.compile(r"(?<=\d)\s\(\d+\)$")


def spill(draft: RowDraft, row: TableRow, named: Collection[str], rest: Rest | None) -> list[str]:
    """State what no entry names as keys of an open map, where the mapping asks for it; the paths that nothing reads."""
    unnamed = []
    for path, value in _columns(row):
        if _within(path, named):
            continue
        text = _ANOTHER.sub("", " + ".join(map(as_text, value)) if isinstance(value, list) else as_text(value))
        fits = len(path) <= MAX_KEY and len(text) <= MAX_KEY
        if rest is None or not _within(path, rest.from_) or not fits:
            unnamed.append(path)
        else:
            kept = value if isinstance(value, bool | int) else text
            draft.put(f"{rest.to}.{path}", float(value) if isinstance(value, float) else kept)
    return unnamed


def _columns(row: TableRow) -> Iterator[tuple[str, Any]]:
    """Every stated column with its dotted path, the nested ones too."""
    waiting = [(str(name), value) for name, value in reversed(row.cells.items())]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((f"{path}.{name}", entry) for name, entry in reversed(value.items()))
        elif (value := row.at(path)) is not None:
            yield path, value


def _within(path: str, paths: Collection[str]) -> bool:
    """Whether a path is one of these or lies below one."""
    parts = path.split(".")
    return any(".".join(parts[:end]) in paths for end in range(1, len(parts) + 1))
