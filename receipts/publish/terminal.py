"""A page for a terminal or a pipe: the answer first, tables within the width, folded sections in one line.

A table that is too wide loses columns, then is wrapped, then is cut; no id is broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from receipts.base.untrusted_text import short
from receipts.publish.page import ALWAYS, STATES, Cell, Column, Mark, Page, Section, Table, text
from receipts.publish.text import held

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


def column_header(column: Column) -> str:
    """A column's name with its unit."""
    return f"{column.name} {column.unit}".strip()


def fit_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> TableLayout | None:
    """The columns that a width has room for; None if even those that are never dropped do not fit.

    A width of None is unlimited: a pipe, whose reader wants every column. Free text is shortened and sentences are
    wrapped before a column is dropped.
    """
    shown = list(range(len(columns)))
    natural = [max([len(column_header(item)), *(len(row[at]) for row in rows)]) for at, item in enumerate(columns)]
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
    dropped = tuple(column_header(item) for at, item in enumerate(columns) if at not in sizes)
    return TableLayout(tuple(shown), tuple(sizes[at] for at in shown), dropped)


def _least(column: Column, cells: Sequence[str], natural: int) -> int:
    """The narrowest that a column may be: numbers stay whole, sentences keep their longest word."""
    if column.cut:
        return min(natural, max(NARROWEST_CUT, len(column_header(column))))
    if column.numeric or column.whole:
        return natural
    words = [word for cell in (column_header(column), *cells) for word in cell.split()]
    longest = max(map(len, words), default=0)
    return max(longest, min(natural, NARROWEST_TEXT))


def table_lines(
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


_ANSI = {"yes": "32", "no": "31", "open": "33", "shown": "36", "head": "1", "dim": "2"}


def clean(text: str) -> str:
    """Text from a receipt, made harmless for a terminal: control characters and direction marks are shown escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a page is printed on. ``width`` is the room for sentences, ``room`` that for tables: None is unlimited."""

    width: int = 100
    room: int | None = None
    colored: bool = False

    def paint(self, text: str, style: str) -> str:
        """Text in the color of a state or of its place, or of what it says as a status; elsewhere as it is."""
        color = _ANSI.get(STATES.get(style, style))
        return f"\x1b[{color}m{text}\x1b[0m" if color and self.colored and text else text

    def text(self, shown: Page | Table | str | Sequence[Page] | None, *, opened: bool = False) -> str:
        """A page, a table, text or several pages as the lines that are printed, each with its end."""
        if isinstance(shown, str):
            return "".join(f"{clean(part)}\n" for part in shown.split("\n"))
        if isinstance(shown, Table):
            return "".join(f"{line}\n" for line in self.table(shown))
        if isinstance(shown, Page):
            return "".join(f"{line}\n" for line in self.page(shown, opened=opened))
        return "\n".join(self.text(page, opened=opened) for page in shown or ())

    def page(self, page: Page, *, opened: bool = False) -> Iterator[str]:
        """All lines of a page; ``opened`` opens its folds."""
        if page.headline:
            yield from self._colored(page.headline, 0, 2)
        rows = [(name, clean(text(cell))) for name, cell in page.facts]
        size = max((len(name) for name, _ in rows), default=0)
        for name, fact in rows:
            if size + 4 > self.width // 2:
                yield from self.wrapped(name, 2, 2)
                yield from self.wrapped(fact, 4, 4)
            else:
                yield from self.wrapped(f"{name.ljust(size)}  {fact}", 0, size + 2)
        if page.badges:
            yield from self.wrapped(" · ".join(f"{item.value} {item.label}" for item in page.badges), 0, 2)
        for sentence in page.lead:
            yield from self.wrapped(sentence, 2)
        folds = []
        for section in page.sections:
            if section.fold and not opened:
                folds.append(section.fold)
            else:
                yield from self._section(section)
        for command, why in page.next:
            yield ""
            yield self.paint(clean(why), "head")
            yield f"  {clean(command)}"  # on one line, to be copied
        if folds or page.foot:
            yield ""
        if folds:
            yield from self.wrapped(f"-v shows more: {' · '.join(folds)}", 0, 2)
        for name, cell in page.foot:
            yield from self._colored((f"{name}: " if name else "", *cell), 0, 2)

    def _section(self, section: Section) -> Iterator[str]:
        yield ""
        if section.title:
            yield self.paint(clean(section.title), "head")
        for sentence in section.sentences:
            yield from self.wrapped(sentence, 2)
        for name, cells in section.points:
            # A topic of several sentences is named once, above them.
            several = bool(name) and len(cells) > 1
            if several:
                yield self.paint(f"  {clean(name)}:", "head")
            for cell in cells:
                yield from self.wrapped(
                    f"{name}: {text(cell)}" if name and not several else text(cell), 2 + 2 * several, 4 + 2 * several
                )
        for table in section.tables:
            yield from self.table(table)
        for figure in section.figures:
            if figure.text is not None:
                yield from ("", *(f"  {line}".rstrip() for line in figure.text(self.width - 2)))
            if figure.table is not None:
                yield from self.table(figure.table)
        for entry in section.entries:
            yield from self._colored((*entry.title, *(("  ", *entry.line) if entry.line else ())), 2, 4)
            for name, cell in entry.facts:
                yield from self.wrapped(f"{name} {text(cell)}".strip(), 4, 6)
        for inner in section.sections:
            yield from self._section(inner)

    def table(self, table: Table) -> Iterator[str]:
        """A table in its columns; one record a row where not even those of rank 0 fit."""
        if not table.rows:
            if table.empty:
                yield from self.wrapped(table.empty, 2)
            return
        rows = [[clean(text(cell)) for cell in row.cells] for row in table.rows]
        where = fit_table(table.columns, rows, self.room)
        if where is None:
            yield from self._records(table.columns, rows)
        else:
            yield from self._columns(table.columns, rows, where)
            if where.dropped:
                yield from self.wrapped(f"(for a wider terminal: {' · '.join(where.dropped)})", 2)
        for sentence in table.after:
            yield from self.wrapped(sentence, 2, 4)

    def _columns(self, columns: Sequence[Column], rows: Sequence[list[str]], where: TableLayout) -> Iterator[str]:
        heads = [column_header(column) for column in columns]
        if any(heads[at] for at in where.shown):
            for line in table_lines(heads, where, columns):
                yield self._line(line, head=True)
            if self.colored:
                yield "  " + self.paint("─" * (sum(where.sizes) + GAP * (len(where.sizes) - 1)), "dim")
        for row in rows:
            for line in table_lines(row, where, columns):
                yield self._line(line)

    def _line(self, pieces: Sequence[tuple[str, str]], *, head: bool = False) -> str:
        shown = [
            self.paint(padded, "head") if head else padded.replace(words, self.paint(words, words), 1)
            for padded, words in pieces
        ]
        return ("  " + (" " * GAP).join(shown)).rstrip()

    def _records(self, columns: Sequence[Column], rows: Sequence[list[str]]) -> Iterator[str]:
        for row in rows:
            first, *rest = zip(columns, row, strict=True)
            yield from self.wrapped(first[1], 2, 4)
            for column, cell in rest:
                if cell:
                    # Where a row has one fact, its name says nothing that the first of them did not.
                    name = f"{column_header(column)}: " if len(rest) > 1 and column_header(column) else ""
                    yield from self.wrapped(f"{name}{cell}", 4, 6)

    def _colored(self, cell: Cell, indent: int, hanging: int) -> Iterator[str]:
        """A cell wrapped, its marks in their colors; a mark at the start of a line is one word."""
        marks = [part for part in cell if isinstance(part, Mark)]
        for line in self.wrapped(text(cell), indent, hanging):
            painted = line
            for mark in marks:
                painted = painted.replace(mark.text, self.paint(mark.text, mark.state), 1)
            yield painted

    def wrapped(self, sentence: str, indent: int = 2, hanging: int | None = None) -> Iterator[str]:
        """A sentence folded to the width, indented."""
        for line in textwrap.wrap(
            held(clean(sentence)),
            self.width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent if hanging is None else hanging),
            break_long_words=False,
            break_on_hyphens=False,
        ):
            yield line.replace("\u00a0", " ")
