"""One piece of a log, from which each reader takes records and lines in turn."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from receipts.ingest.evidence.columns import RecordColumns, in_order

if TYPE_CHECKING:
    from receipts.ingest.evidence.scan import Scanner

# Records are taken one by one where fewer stand together.
FEW: Final = 4


class Piece:
    """One piece of a log, from which each reader takes records and lines in turn."""

    def __init__(self, scanner: Scanner, piece: bytes, first: int) -> None:
        self._scanner = scanner
        self._piece = piece
        self._first = first
        self._split: list[bytes] = []
        # The last line that the reader has been given, and the lines that it has not and that are no records.
        self._seen = 0
        self._others: deque[int] = deque()
        self._follows = False
        self.taken = 0

    def take(self, index: int, tables: list[RecordColumns], lines: list[int]) -> None:
        """Give one reader its records, all at once where it takes them, and the other lines that it wants, in order."""
        self._seen = 0
        self._others = deque(lines)
        self._follows = self._scanner.follows(index)
        for table in in_order(tables):
            refused = 0
            while (at := table.before(self._seen + 1)) < len(table):
                self._before(index, table.lines[at])
                stop = table.before(self._others[0]) if self._others else len(table)
                if stop - at >= FEW and at >= refused and self._seen < table.lines[at]:
                    if self._scanner.many(index, table.part(at, stop)):
                        self.taken += stop - at
                        self._seen = table.ends[stop - 1]
                        continue
                    refused = stop
                # Other lines of this reader's may stand between the two of one record.
                self._line(index, table.lines[at])
                self._before(index, table.ends[at])
                self._line(index, table.ends[at])
        self._before(index, self._first + len(self._piece))

    def _before(self, index: int, number: int) -> None:
        """Give the lines that are no records and stand before one."""
        while self._others and self._others[0] < number:
            self._line(index, self._others.popleft())

    def _line(self, index: int, number: int) -> None:
        """Give one line, and those after it for which the reader asks."""
        if number <= self._seen:
            return
        if not self._split:
            self._split = self._piece.split(b"\n")[:-1]
        while self._scanner.one(index, self._split[number - self._first], number):
            number += 1
            if number - self._first >= len(self._split):
                number -= 1
                break
        self._seen = number
        if self._scanner.follows(index) != self._follows:
            # From here on it wants lines that were taken out as records, or no lines of others any more.
            self._follows = not self._follows
            self._others = deque(self._scanner.lines_after(index, self._piece, self._first, number))
