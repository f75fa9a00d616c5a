"""Steps in columns below one head: CSV that a loop writes, and tables that it prints, whose units stand in the head.

``step,loss,step_time_ms,tokens_per_sec``, ``| step | loss | time (ms) |``, ``step   loss   ms   tok/s``. A head names
the step and a time or a rate with its unit, in the words of `pytorch_loop.toml`; what it does not name is left.
"""

from __future__ import annotations

import re
from itertools import product
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import integer
from receipts.ingest.literals import number as parse
from receipts.readers.loops.loop import LoopLog

_SEPARATORS: Final = (",", ", ", ";", "\t", "|", " | ", *(" " * count for count in range(2, 9)))
_STEPS: Final = ("step", "global step", "iter", "iteration")
_MAX_CELLS: Final = 60
_RULE: Final = re.compile(r"[\s|+:=-]{3,}")
_OF_OTHERS: Final = re.compile(r"(?i)\b(?:val|valid|validation|eval|test)")


def _cells(text: str, separator: str) -> list[str]:
    parts = text.strip().strip("|").split(separator or None, _MAX_CELLS)
    return [part.strip().strip('"') for part in parts]


def _separator(text: str) -> str:
    """What stands between the cells of a head; nothing where these are blanks."""
    return next((sign for sign in ("|", "\t", ";", ",") if sign in text.strip()), "")


class ColumnLog(LoopLog):
    """Reads one table after the other; a table ends with the first line that is no row of it."""

    source: ClassVar[str] = "columns"
    anchors: ClassVar[tuple[bytes, ...]] = tuple(
        "".join(word).encode() for word in product(("tep", "iter"), _SEPARATORS, "lt")
    )
    labels = vocabulary.line("pytorch_loop")
    forms = ()
    needs = frozenset()
    any_of = frozenset({"step_seconds", "tokens_per_second", "tokens_per_second_per_chip"})
    mean = spent = False
    window = 0
    memory = unless = None
    remarks: ClassVar[dict[str, str]] = {}
    starts_fresh = True

    def __init__(self) -> None:
        super().__init__()
        self._separator = ""
        self._heads: list[str] = []

    def inside(self) -> bool:
        """Whether a table goes on below."""
        return bool(self._heads)

    def other(self, text: str, number: int) -> None:
        """Take a head, or a row below one."""
        if not self._heads:
            self._begin(text)
            return
        cells = _cells(text, self._separator)
        row = dict(zip(self._heads, cells, strict=False)) if len(cells) == len(self._heads) else {}
        step = next((integer(row[name]) for name in _STEPS if name in row), None)
        if step is not None and step >= 0:
            figures: dict[str, float] = {}
            for name, cell in row.items():
                if (known := self.label(name)) is not None and (value := parse(cell)) is not None:
                    figures.setdefault(known.field, value / known.divisor)
            self.step(step, figures, number)
        elif not _RULE.fullmatch(text):
            self._heads = []
            self._begin(text)

    def _begin(self, text: str) -> None:
        """Open a table where a line is its head."""
        separator = _separator(text)
        plain = re.sub(r" ?[(\[](\w{1,8}|%)[)\]]", r" \1", text.lower()).replace("_", " ")
        if not separator:
            plain = re.sub(r"(?<=\S) (?=\S)", "_", plain) if "  " in plain.strip() else plain
        heads = [head.replace("_", " ") for head in _cells(plain, separator)]
        known = {label.field for head in heads if (label := self.label(head)) is not None}
        evaluated = any(map(_OF_OTHERS.match, heads)) and "loss" not in known
        if (
            any(map(heads.__contains__, _STEPS))
            and known & self.any_of
            and not evaluated
            and len(heads) == len({*heads})
        ):
            self._separator, self._heads = separator, heads


READERS = (ColumnLog,)
