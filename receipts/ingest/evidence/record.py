"""What a record is: how a line prints it, where it is on a line, and many of them as columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from receipts.ingest.evidence.columns import RecordColumns
from receipts.ingest.evidence.steps import ABSENT


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
