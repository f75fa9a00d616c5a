"""A record that a terminal or a page broke over several lines, put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from receipts.ingest.evidence.record import LineRecord

_MAX_PIECES: Final = 8
_MAX_RECORD: Final = 4_000
# What a page puts before the lines that it quotes.
_MARGIN: Final = " \t>#"


class Pieces:
    """A record that has not reached its end; true while one is held."""

    def __init__(self) -> None:
        self.line = 0
        self._text = ""
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._text)

    def hold(self, text: str, line: int) -> bool:
        """Keep a record that may go on below; False where it has become too long for one."""
        if self._count >= _MAX_PIECES or len(text) > _MAX_RECORD:
            self._count = 0
            return False
        self._text, self.line = text, line
        self._count += 1
        return True

    def take(self) -> tuple[str, int]:
        """What is held, and the line on which it began; nothing is held afterwards."""
        text, self._text, self._count = self._text, "", 0
        return text, self.line

    def join(self, text: str, find: Callable[[str], Sequence[LineRecord]]) -> str | None:
        """The record with its next piece; None where the line is no piece of it.

        A terminal breaks within words and figures, an editor between words: of both ways the one with more figures is
        right. A line that adds no figure and changes none is another's.
        """
        if len(text) > _MAX_RECORD or find(text):
            return None
        before = _figures(self._text, find)
        ways = [self._text + text.rstrip(), f"{self._text.rstrip()} {text.strip(_MARGIN)}"]
        figures = [_figures(way, find) for way in ways]
        best = 0 if len(figures[0]) >= len(figures[1]) else 1
        if len(figures[best]) < len(before) or figures[best] == before:
            return None
        self._text = ""
        return ways[best]


def _figures(text: str, find: Callable[[str], Sequence[LineRecord]]) -> dict[str, str]:
    records = find(text)
    if not records:
        return {}
    return {"": str(records[-1].whole)} | {
        label: text[start:stop] for label, (start, stop) in records[-1].spans.items()
    }
