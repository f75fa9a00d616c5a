"""Tables that profilers print: a head, a line of dashes that shows the columns, rows of numbers and one name."""

from __future__ import annotations

import re
from typing import ClassVar

from receipts.base.units import SECONDS
from receipts.ingest.evidence.witnesses.kernels_histogram import Histogram
from receipts.ingest.literals import number
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_DASHES = re.compile(r"-{2,}")
_GAP = re.compile(r"\s{2,}")
_TIME = re.compile(r"\s*(?P<value>[\d.,]+(?:[eE][-+]?\d+)?)\s*(?P<unit>ns|us|µs|ms|s)?\s*")
# Wider than any profiler's table: a longer line of dashes is none.
_WIDEST = 10_000
MAX_ROWS = 1_000_000


def seconds(cell: str, unit: str = "s") -> float | None:
    """A time with its unit (`14.668ms`), or without one in ``unit``; None where the cell is no time."""
    match = _TIME.fullmatch(cell)
    if match is None:
        return None
    value = number(match["value"])
    return None if value is None else value * SECONDS[match["unit"] or unit]


def count(cell: str) -> int | None:
    """A whole number with or without separators; None where the cell is none."""
    value = number(cell)
    return int(value) if value is not None and value.is_integer() and 0 <= value < 1e15 else None


class TableReader(LineReader):
    """Reads tables of kernels below their heads. ``limits`` is what no such table shows, as a remark."""

    limits: ClassVar[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self.histogram = Histogram()
        self._names: list[str] = []
        self._spans: list[tuple[int, int]] | None = None
        self._first = self._rows = 0

    def begin(self, head: str, line: int) -> bool:
        """A head was read; the line of dashes is the next one."""
        # A head may reach beyond its column: heads are distinguished by two blanks and taken in their order.
        self._names, self._spans = [name for name in _GAP.split(head.strip()) if name], None
        self._first = self._first or line
        return True

    def table(self, text: str) -> bool:
        """Take a line below the head; False where the table has ended."""
        if self._spans is None:
            dashes = len(text) <= _WIDEST and not set(text.strip()) - {"-", " "}
            self._spans = [match.span() for match in _DASHES.finditer(text)] if dashes else []
            return 0 < len(self._spans) == len(self._names)
        fits = 0 < len(self._spans) == len(self._names) and text.strip() and not text.startswith("--")
        return bool(fits) and self.taken(self._cells(text, self._spans))

    def _cells(self, row: str, spans: list[tuple[int, int]]) -> dict[str, str]:
        """The row's cells by the names of their columns; the last one may be longer than its dashes."""
        last = len(spans) - 1
        words = row.split(None, last)
        # Numbers and one name need no alignment, which is lost where a table was pasted.
        if len(words) != len(spans) or any(number(word) is None for word in words[:last]):
            words = [row[begin : None if at == last else end] for at, (begin, end) in enumerate(spans)]
        return dict(zip(self._names, map(str.strip, words), strict=True))

    def taken(self, cells: dict[str, str]) -> bool:
        """Take a row, if there is room; False where it is none."""
        self._rows += 1
        return self._rows <= MAX_ROWS and self.row(cells)

    def row(self, cells: dict[str, str]) -> bool:
        """Take the cells of a row by the names of their columns; False where it is none."""
        raise NotImplementedError

    def finish(self) -> Reading | None:
        if self.reading.records:
            self.histogram.write(self.reading, line=self._first)
            kind, what = self.limits
            self.reading.remark("missing" if kind == "missing" else "note", what, self._first)
        return super().finish()
