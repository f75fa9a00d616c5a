"""Tables that profilers print: a head, a line of dashes that shows the columns, rows of numbers and one name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from receipts.base.units import SECONDS
from receipts.ingest.evidence.numbers import number

_DASHES = re.compile(r"-{2,}")
_GAP = re.compile(r"\s{2,}")
_TIME = re.compile(r"\s*(?P<value>[\d.,]+(?:[eE][-+]?\d+)?)\s*(?P<unit>ns|us|µs|ms|s)?\s*")
# Wider than any profiler's table: a longer line of dashes is none.
_WIDEST = 10_000


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Where each column begins and ends, and what its head says."""

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def cells(self, row: str) -> dict[str, str]:
        """The row's cells by the names of their columns; the last one may be longer than its dashes."""
        last = len(self.spans) - 1
        words = row.split(None, last)
        if len(words) == last + 1 and all(number(word) is not None for word in words[:last]):
            # Numbers and one name: they need no alignment, which is lost where a table was pasted.
            return dict(zip(self.names, [*words[:last], words[last].strip()], strict=True))
        by_name: dict[str, str] = {}
        for at, (name, (begin, end)) in enumerate(zip(self.names, self.spans, strict=True)):
            by_name[name] = row[begin : None if at == last else end].strip()
        return by_name


def columns(head: str, dashes: str) -> TableColumns | None:
    """The columns of a table whose head stands over a line of dashes; None where the two do not fit together.

    A head may reach beyond its column: heads are told apart by two blanks and taken in their order.
    """
    if len(dashes) > _WIDEST or set(dashes.strip()) - {"-", " "}:
        return None
    spans = tuple(match.span() for match in _DASHES.finditer(dashes))
    names = tuple(name for name in _GAP.split(head.strip()) if name)
    return TableColumns(names, spans) if names and len(names) == len(spans) else None


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
