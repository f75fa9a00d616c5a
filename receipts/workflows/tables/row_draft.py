"""A receipt while a row of a table is put together: leaves by their paths, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from receipts.base.errors import Problem
from receipts.ingest.leaves import at, put


@dataclass
class RowDraft:
    """The tree of one receipt. A leaf that is stated stays as it is."""

    tree: dict[str, Any] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def has(self, path: str) -> bool:
        """Whether something is stated at a path."""
        return at(self.tree, path) is not None

    def put(self, path: str, value: Any) -> None:
        """State a leaf, unless it is stated already."""
        if not self.has(path):
            put(self.tree, path, value)

    def leave(self, path: str, source: Any) -> None:
        """Report what could not be read, and keep it word by word."""
        text = source if isinstance(source, str) else str(source)
        self.unread.append((path, text))
        notes = self.tree.setdefault("notes", {})
        earlier = notes.get(f"unread.{path}")
        notes[f"unread.{path}"] = (f"{earlier}; {text}" if earlier else text)[:10_000]
