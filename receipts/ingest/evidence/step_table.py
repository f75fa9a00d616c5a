"""Tables of steps that pages show: between bars as in Markdown, in HTML, or of a step and a loss between blanks.

A notebook shows one below a training (`NotebookProgressCallback`), a model card keeps one, and people make them of a
log's lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from receipts.ingest.evidence.numbers import number

STEP: Final = "step"
_NOTES: Final = frozenset({"note", "notes", "comment", "comments", "remark", "remarks"})
_TEXT: Final = re.compile(r"^[\s>#]*Step\s+Training Loss\b")
_CELLS: Final = re.compile(r"^[\s>#]*(\d{1,12})\s+([\d.]{1,24}|nan|No log)(?=\s|$)")
_TAG: Final = re.compile(r"<(th|td|/tr|/table)\b[^>]{0,200}>\s{0,20}([^<]{0,60})", re.IGNORECASE)
_BLANKS: Final = re.compile(r"\\n|\s+")
# Lines of a page without a tag, after which its table is over.
_MAX_BARE: Final = 8
_MAX_CELLS: Final = 100
# What a page puts before the lines that it quotes.
_MARGIN: Final = " \t>#"


class StepRow(NamedTuple):
    """One step of a table: figures by field, and what the column of notes says, in small letters."""

    step: int
    figures: dict[str, float]
    note: str


class StepTable:
    """One table at a time, line by line. ``columns`` are fields by their heads, in small letters and without blanks.

    A head names a step and at least so many (``fewest``) of the columns.
    """

    def __init__(self, columns: Mapping[str, str], fewest: int = 1) -> None:
        self.open = False
        self._columns = columns
        self._fewest = fewest
        self._heads: list[str] = []
        self._row: list[str] | None = None
        self._bare = 0

    def begin(self, text: str) -> list[StepRow]:
        """Open a table where a line is its head; rows that stand on the same line."""
        self._heads, self._row, self._bare = [], None, 0
        if _TEXT.match(text):
            self._heads = [STEP, "trainingloss"]
        elif ">Step<" in text:
            self._row, self.open = [], True
            return self._tags(text)
        elif "|" in text:
            self._heads = [_BLANKS.sub("", cell.lower()) for cell in _split(text)]
        self.open = self._known()
        return []

    def take(self, text: str) -> list[StepRow]:
        """Rows of one more line; `open` says whether the table goes on."""
        if self._row is not None:
            return self._tags(text)
        match = _CELLS.match(text) if self._heads == [STEP, "trainingloss"] else None
        cells = list(match.groups()) if match else _split(text) if "|" in text else []
        if text.lstrip(_MARGIN).startswith("|"):
            # In Markdown a row may have fewer cells than the head, or more, which do not count.
            cells = (cells + [""] * len(self._heads))[: len(self._heads)]
        self.open = len(cells) == len(self._heads)
        return self._cells(cells)

    def _known(self) -> bool:
        return STEP in self._heads and sum(name in self._columns for name in self._heads) >= self._fewest

    def _tags(self, text: str) -> list[StepRow]:
        rows: list[StepRow] = []
        row = self._row = self._row or []
        self._bare = 0 if "<" in text else self._bare + 1
        for tag, word in _TAG.findall(text):
            name, cell = tag.lower(), word.replace("\\n", " ").strip(' ",')
            if name == "/table":
                self.open = False
            elif name == "/tr":
                self.open &= self._known()
                rows += self._cells(row)
                row.clear()
            elif name == "th" and len(self._heads) < _MAX_CELLS:
                self._heads.append(_BLANKS.sub("", cell.lower()))
            elif len(row) < _MAX_CELLS:
                row.append(cell)
        self.open &= self._bare < _MAX_BARE
        return rows

    def _cells(self, cells: list[str]) -> list[StepRow]:
        row = dict(zip(self._heads, cells, strict=False)) if len(cells) == len(self._heads) else {}
        step = number(row.get(STEP, ""))
        if step is None or not 0 <= step < 1e15 or step != int(step):
            return []
        named = ((self._columns[head], cell) for head, cell in row.items() if head in self._columns)
        figures = {field: value for field, cell in named if (value := _figure(field, cell)) is not None}
        note = next((cell.lower() for head, cell in row.items() if head in _NOTES), "")
        return [StepRow(int(step), figures, note)]


def _figure(field: str, cell: str) -> float | None:
    """The figure of a cell, with or without its unit. An MFU above 1 is per cent, whatever its head says."""
    value = number(cell.rstrip(" %s"))
    return value * 0.01 if field == "mfu" and value is not None and (value > 1 or "%" in cell) else value


def _split(text: str) -> list[str]:
    """The cells of a line between bars."""
    return [cell.strip().strip("*`_ ") for cell in text.strip().strip("|").split("|", _MAX_CELLS)][:_MAX_CELLS]
