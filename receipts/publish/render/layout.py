"""Text in columns for a terminal: what is dropped, wrapped or cut so that a table fits; no id is broken."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from receipts.publish.page import ALWAYS, Column
from receipts.publish.text import short

GAP = 2
INDENT = 2
NARROWEST_TEXT = 20  # a narrower column of sentences is not read
NARROWEST_CUT = 16
PADDED = 44  # the widest column that is padded where the width is unlimited


class TableLayout(NamedTuple):
    """Which columns of a table are shown and how wide; ``dropped`` are the names of the others."""

    shown: tuple[int, ...]
    sizes: tuple[int, ...]
    dropped: tuple[str, ...]
    whole: bool = False  # no cell is wrapped or cut


def header(column: Column) -> str:
    """A column's name with its unit."""
    return f"{column.name} {column.unit}".strip()


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> TableLayout | None:
    """The columns that a width has room for; None if even those that are never dropped do not fit.

    A width of None is unlimited: a pipe, whose reader wants every column. Free text is shortened and sentences are
    wrapped before a column is dropped.
    """
    shown = list(range(len(columns)))
    natural = [max([len(header(item)), *(len(row[at]) for row in rows)]) for at, item in enumerate(columns)]
    if width is None:
        # One long word does not push the columns of every other row aside: it overflows alone.
        return TableLayout(tuple(shown), tuple(min(PADDED, size) for size in natural), (), whole=True)
    least = [_least(item, [row[at] for row in rows], natural[at]) for at, item in enumerate(columns)]
    while sum(least[at] for at in shown) + GAP * (len(shown) - 1) + INDENT > width:
        last = max(shown, key=lambda at: (columns[at].rank, at))
        if columns[last].rank == ALWAYS:
            return None
        shown.remove(last)
    sizes = {at: natural[at] for at in shown}
    while (over := sum(sizes.values()) + GAP * (len(shown) - 1) + INDENT - width) > 0:
        widest = max((at for at in shown if sizes[at] > least[at]), key=sizes.__getitem__)
        sizes[widest] = max(least[widest], sizes[widest] - over)
    dropped = tuple(header(item) for at, item in enumerate(columns) if at not in sizes)
    return TableLayout(tuple(shown), tuple(sizes[at] for at in shown), dropped)


def _least(column: Column, cells: Sequence[str], natural: int) -> int:
    """The narrowest that a column may be: numbers stay whole, sentences keep their longest word."""
    if column.cut:
        return min(natural, max(NARROWEST_CUT, len(header(column))))
    if column.numeric or column.whole:
        return natural
    words = [word for cell in (header(column), *cells) for word in cell.split()]
    longest = max(map(len, words), default=0)
    return max(longest, min(natural, NARROWEST_TEXT))


def lines(
    cells: Sequence[str], layout: TableLayout, columns: Sequence[Column]
) -> Iterator[tuple[tuple[str, str], ...]]:
    """A row as lines of padded pieces, each with the text that it holds."""
    parts = [
        [cells[at]] if layout.whole else [short(cells[at], size)] if columns[at].cut else _wrapped(cells[at], size)
        for at, size in zip(layout.shown, layout.sizes, strict=True)
    ]
    for number in range(max(map(len, parts), default=0)):
        yield tuple(
            (text.rjust(size) if columns[at].numeric else text.ljust(size), text)
            for at, size, part in zip(layout.shown, layout.sizes, parts, strict=True)
            for text in (part[number] if number < len(part) else "",)
        )


def _wrapped(text: str, size: int) -> list[str]:
    if len(text) <= size:
        return [text]
    return textwrap.wrap(text, size, break_long_words=False, break_on_hyphens=False) or [""]
