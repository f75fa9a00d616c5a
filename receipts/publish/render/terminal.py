"""A page for a terminal or a pipe: the answer first, tables within the width, folded sections in one line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from receipts.publish.page import STATES, Cell, Column, Entry, Mark, Page, Section, Table, text
from receipts.publish.render import layout
from receipts.publish.text import held

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

    def page(self, page: Page, *, opened: bool = False) -> Iterator[str]:
        """All lines of a page; ``opened`` opens its folds."""
        if page.headline:
            yield from self._colored(page.headline, 0, 2)
        yield from self._facts(page.facts)
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
            yield from self._entry(entry)
        for inner in section.sections:
            yield from self._section(inner)

    def _entry(self, entry: Entry) -> Iterator[str]:
        yield from self._colored((*entry.title, *(("  ", *entry.line) if entry.line else ())), 2, 4)
        for name, cell in entry.facts:
            yield from self.wrapped(f"{name} {text(cell)}".strip(), 4, 6)

    def table(self, table: Table) -> Iterator[str]:
        """A table in its columns; one record a row where not even those of rank 0 fit."""
        if not table.rows:
            if table.empty:
                yield from self.wrapped(table.empty, 2)
            return
        rows = [[clean(text(cell)) for cell in row.cells] for row in table.rows]
        where = layout.fit(table.columns, rows, self.room)
        if where is None:
            yield from self._records(table.columns, rows)
        else:
            yield from self._columns(table.columns, rows, where)
            if where.dropped:
                yield from self.wrapped(f"(for a wider terminal: {' · '.join(where.dropped)})", 2)
        for sentence in table.after:
            yield from self.wrapped(sentence, 2, 4)

    def _columns(
        self, columns: Sequence[Column], rows: Sequence[list[str]], where: layout.TableLayout
    ) -> Iterator[str]:
        heads = [layout.header(column) for column in columns]
        if any(heads[at] for at in where.shown):
            for line in layout.lines(heads, where, columns):
                yield self._line(line, head=True)
            if self.colored:
                yield "  " + self.paint("─" * (sum(where.sizes) + layout.GAP * (len(where.sizes) - 1)), "dim")
        for row in rows:
            for line in layout.lines(row, where, columns):
                yield self._line(line)

    def _line(self, pieces: Sequence[tuple[str, str]], *, head: bool = False) -> str:
        shown = [
            self.paint(padded, "head") if head else padded.replace(words, self.paint(words, words), 1)
            for padded, words in pieces
        ]
        return ("  " + (" " * layout.GAP).join(shown)).rstrip()

    def _records(self, columns: Sequence[Column], rows: Sequence[list[str]]) -> Iterator[str]:
        for row in rows:
            first, *rest = zip(columns, row, strict=True)
            yield from self.wrapped(first[1], 2, 4)
            for column, cell in rest:
                if cell:
                    # Where a row has one fact, its name says nothing that the first of them did not.
                    name = f"{layout.header(column)}: " if len(rest) > 1 and layout.header(column) else ""
                    yield from self.wrapped(f"{name}{cell}", 4, 6)

    def _facts(self, facts: Iterable[tuple[str, Cell]]) -> Iterator[str]:
        rows = [(name, clean(text(cell))) for name, cell in facts]
        size = max((len(name) for name, _ in rows), default=0)
        for name, fact in rows:
            if size + 4 > self.width // 2:
                yield from self.wrapped(name, 2, 2)
                yield from self.wrapped(fact, 4, 4)
            else:
                yield from self.wrapped(f"{name.ljust(size)}  {fact}", 0, size + 2)

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
