"""A configuration that torchtitan prints over many lines, of one rank among others."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.literal import Brackets

RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,6})\]")
# What a page or a script puts before the lines that it quotes.
_MARK = re.compile(r"^(?:[>#] ?)+(?=[\s\[{}'\"])")
_FOLDED = re.compile(r"\s*['\"}\]]")


class ConfigBlock(Brackets):
    """The lines of one rank's document."""

    _rank = -1

    def open(self, text: str, start: int, line: int) -> bool:
        """Begin a document at a bracket of a line; False where it is none of the configuration."""
        if "Building " in text and "with {" not in text:
            return False
        ranks = RANK.findall(text)
        self._rank = int(ranks[-1]) if ranks else -1
        self.begin(text[start:], line)
        return True

    def add(self, text: str) -> bool:
        """Take the next line of the file; whether the document goes on below it."""
        text = _MARK.sub("", text)
        match = RANK.match(text)
        rank = int(match[1]) if match else -1
        # A page that folds a line has no rank before its rest.
        if rank != self._rank and not (rank < 0 and _FOLDED.match(text)):
            return True
        return self.more(text[match.end() :].lstrip(":") if match else text)
