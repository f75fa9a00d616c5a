"""Tables of steps and losses: what a notebook shows below a training, as text or HTML, and what a model card keeps.

Sources: `transformers/utils/notebook.py` (`NotebookProgressCallback`) and `modelcard.py`. A row's loss is the mean
since the row before, ``No log`` where there was none. A table by epochs has no steps.
"""

from __future__ import annotations

import re
from typing import Final

STEP: Final = "step"
LOSS: Final = "training loss"
_TEXT = re.compile(r"^[\s>#]*Step\s+Training Loss\b")
_CELLS = re.compile(r"^[\s>#]*(\d{1,12})\s+([\d.]{1,24}|nan|No log)(?=\s|$)")
_TAG = re.compile(r"<(th|td|/tr|/table)\b[^>]{0,200}>\s{0,20}([^<]{0,60})", re.IGNORECASE)
_RULE = re.compile(r"[\s|:-]+")
_WHOLE = re.compile(r"\d{1,12}")
# Lines of a page without a tag, after which its table is over.
_MAX_BARE: Final = 8
_MAX_COLUMNS: Final = 100
_METRIC = re.compile(r"(?:^|\s)([A-Za-z]\w{2,60})\s+=\s+(\S(?:.{0,60}\S)?)\s*$")
_MAX_METRICS: Final = 80
Row = tuple[int, str]


class StepTable:
    """One table at a time, line by line."""

    def __init__(self) -> None:
        self.open = False
        self._kind = ""
        self._heads: list[str] = []
        self._row: list[str] = []
        self._bare = 0

    def begin(self, text: str) -> list[Row]:
        """Open a table where a line is its head; rows that stand on the same line."""
        if _TEXT.match(text):
            self._open("text", [])
        elif ">Step<" in text:
            self._open("html", [])
            return self._tags(text)
        elif "|" in text and {STEP, LOSS} <= set(heads := _split(text)):
            self._open("pipes", heads)
        return []

    def take(self, text: str) -> list[Row]:
        """Rows of one more line; `open` says whether the table goes on."""
        if self._kind == "html":
            return self._tags(text)
        if self._kind == "text":
            match = _CELLS.match(text)
            self.open = match is not None
            return [(int(match[1]), match[2])] if match else []
        cells = _split(text) if "|" in text else []
        self.open = len(cells) == len(self._heads)
        return self._cells(cells) if self.open and not _RULE.fullmatch(text) else []

    def _open(self, kind: str, heads: list[str]) -> None:
        self.open, self._kind, self._heads, self._row, self._bare = True, kind, heads, [], 0

    def _tags(self, text: str) -> list[Row]:
        rows: list[Row] = []
        self._bare = 0 if "<" in text else self._bare + 1
        for tag, word in _TAG.findall(text):
            name, cell = tag.lower(), word.replace("\\n", " ").strip(' ",')
            if name == "/table":
                self.open = False
            elif name == "/tr":
                self.open &= LOSS in self._heads
                rows += self._cells(self._row)
                self._row = []
            elif len(cells := self._heads if name == "th" else self._row) < _MAX_COLUMNS:
                cells.append(cell.lower())
        self.open &= self._bare < _MAX_BARE
        return rows

    def _cells(self, cells: list[str]) -> list[Row]:
        if len(cells) != len(self._heads) or LOSS not in self._heads:
            return []
        step, loss = cells[self._heads.index(STEP)], cells[self._heads.index(LOSS)]
        return [(int(step), loss)] if _WHOLE.fullmatch(step) else []


class MetricTable:
    """The lines below ``***** train metrics *****``; ``line`` is where they began."""

    def __init__(self) -> None:
        self.open = False
        self.line = 0
        self._values: dict[str, str] = {}

    def begin(self, line: int) -> None:
        """Open a table."""
        self.open, self.line, self._values = True, line, {}

    def take(self, text: str) -> bool:
        """Take one more line; whether it is one of the table."""
        match = _METRIC.search(text)
        if match is None or len(self._values) >= _MAX_METRICS:
            return False
        self._values[match[1].lower()] = match[2]
        return True

    def end(self) -> dict[str, str]:
        """The values by their names; empty where no table was open."""
        values, self._values, self.open = self._values, {}, False
        return values


def _split(text: str) -> list[str]:
    """The cells of a line between bars, in small letters."""
    return [cell.strip().lower() for cell in text.strip().strip("|").split("|")]
