"""A configuration that torchtitan prints over many lines, of one rank among others."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.literal import balanced

RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,6})\]")
# What a page or a script puts before the lines that it quotes.
_MARK = re.compile(r"^(?:[>#] ?)+(?=[\s\[{}'\"])")
_FOLDED = re.compile(r"\s*['\"}\]]")
_MAX_LINES: Final = 4000


class ConfigBlock:
    """The lines of one document, until its brackets close."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = self._rank = self._depth = 0

    @property
    def open(self) -> bool:
        """Whether a document has begun and not been taken."""
        return bool(self._lines)

    def begin(self, text: str, start: int, line: int) -> bool:
        """Begin a document at a bracket of a line; False where it is none of the configuration."""
        if "Building " in text and "with {" not in text:
            return False
        self._lines, self._line = [text[start:]], line
        ranks = RANK.findall(text)
        self._rank = int(ranks[-1]) if ranks else -1
        self._depth = balanced(self._lines[0])
        return True

    def take(self, text: str) -> bool:
        """Take the next line of the file; whether the document goes on below it."""
        text = _MARK.sub("", text)
        match = RANK.match(text)
        rank = int(match[1]) if match else -1
        # A page that folds a line has no rank before its rest.
        if rank != self._rank and not (rank < 0 and _FOLDED.match(text)):
            return True
        body = text[match.end() :].lstrip(":") if match else text
        self._lines.append(body)
        self._depth += balanced(body)
        return self._depth > 0 and len(self._lines) < _MAX_LINES

    def end(self) -> tuple[str, int]:
        """The document as far as it came, and its first line; none is open afterwards."""
        lines, self._lines = self._lines, []
        return "\n".join(lines), self._line
