"""What a record is: how a line prints it, where it is on a line, and many of them as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

from receipts.ingest.evidence.columns import RecordColumns
from receipts.ingest.evidence.steps import ABSENT

_MAX_PIECES: Final = 8
_MAX_RECORD: Final = 4_000
# What a page puts before the lines that it quotes.
_MARGIN: Final = " \t>#"


@dataclass(frozen=True, slots=True)
class Form:
    """How a record is printed.

    The named groups of ``head`` are whole numbers, of which one is the ``step``. Each of ``cells`` has the groups
    ``label`` and ``word``, and ``unit`` where the unit is a part of the label. ``end`` matches, from the head on, up to
    what every whole record reaches, where a record may be broken over several lines.
    """

    head: re.Pattern[str]
    cells: tuple[re.Pattern[str], ...]
    end: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One record on a line: where it begins and ends, and where the words of its figures are, by label."""

    start: int
    stop: int
    spans: dict[str, tuple[int, int]]
    whole: bool


@dataclass(slots=True)
class RecordRows:
    """Records of one shape. ``text`` is one of their lines: the others differ from it in numbers alone.

    ``counts`` are the whole numbers of their heads; ``figures`` are by field in SI units, `ABSENT` where not printed.
    """

    steps: list[int]
    lines: Sequence[int]
    counts: dict[str, list[int]]
    figures: dict[str, list[float]]
    columns: RecordColumns

    def __iter__(self) -> Iterator[RecordRows]:
        """One record after the other."""
        for at, (step, line) in enumerate(zip(self.steps, self.lines, strict=True)):
            counts = {name: [column[at]] for name, column in self.counts.items()}
            figures = {name: [column[at]] for name, column in self.figures.items() if column[at] != ABSENT}
            yield RecordRows([step], [line], counts, figures, self.columns)

    @property
    def text(self) -> str:
        """A line of this shape."""
        return self.columns.text

    def keep(self, kept: Sequence[bool]) -> None:
        """Leave out some of the records."""
        if all(kept):
            return
        self.steps, self.lines = list(compress(self.steps, kept)), list(compress(self.lines, kept))
        self.counts = {name: list(compress(column, kept)) for name, column in self.counts.items()}
        self.figures = {name: list(compress(column, kept)) for name, column in self.figures.items()}

    def values(self, field: str) -> list[float]:
        """The figures of one field; as many `ABSENT` where the lines do not print it."""
        return self.figures.get(field) or [ABSENT] * len(self.lines)


class Pieces:
    """A record that a terminal or a page broke over several lines, put together again; true while one is held."""

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
