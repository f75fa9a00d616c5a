"""What single lines of a program state, by the patterns in its table."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.arguments import Arguments
from receipts.ingest.evidence.reading import Reading


class Statement(NamedTuple):
    """A leaf, the pattern of a line that states it, and how its value is read; ``value`` where it is always the same.

    The value is the last group of the pattern that is on the line.
    """

    path: str
    line: re.Pattern[str]
    entry: dict[str, Any]
    value: str | None

    def read(self, match: re.Match[str]) -> Any:
        """The value of the leaf; None where there is none of its kind."""
        if self.value is not None:
            return self.value
        return Arguments({"": (match[match.lastindex or 0], 0)}).read("", self.entry)


class Statements:
    """The statements of one framework's table."""

    def __init__(self, framework: str) -> None:
        self._all = [
            Statement(path, re.compile(entry["line"]), {"kind": "count"} | entry, entry.get("value"))
            for path, entries in vocabulary.table(framework)["statements"].items()
            for item in (entries if isinstance(entries, list) else [entries])
            for entry in ({"line": item} if isinstance(item, str) else item,)
        ]

    def take(self, reading: Reading, text: str, line: int) -> bool:
        """State what a line says; whether it says anything."""
        matches = [(item, match) for item in self._all if (match := item.line.search(text))]
        for item, match in matches:
            if (value := item.read(match)) is not None:
                reading.state(item.path, value, match[0].strip(), line)
        return bool(matches)
