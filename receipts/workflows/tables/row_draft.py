"""A receipt while a row of a table is put together: leaves by their paths, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from receipts.base.errors import Problem
from receipts.ingest.leaves import parts


@dataclass
class RowDraft:
    """The tree of one receipt. A leaf that is stated stays as it is."""

    tree: dict[str, Any] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def has(self, path: str) -> bool:
        """Whether something is stated at a path."""
        node: Any = self.tree
        for part in parts(path):
            if not isinstance(node, dict) or part not in node:
                return False
            node = node[part]
        return True

    def put(self, path: str, value: Any) -> None:
        """State a leaf, unless it is stated already."""
        if self.has(path):
            return
        node = self.tree
        *sections, last = parts(path)
        for part in sections:
            node = node.setdefault(part, {})
        node[last] = value

    def leave(self, path: str, source: Any) -> None:
        """Report what could not be read, and keep it word by word."""
        text = source if isinstance(source, str) else str(source)
        self.unread.append((path, text))
        notes = self.tree.setdefault("notes", {})
        earlier = notes.get(f"unread.{path}")
        notes[f"unread.{path}"] = (f"{earlier}; {text}" if earlier else text)[:10_000]
