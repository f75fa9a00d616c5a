"""What a page is: values. The terminal, Markdown and HTML are rendered from them; nothing here renders.

The sentences come from ``reports/words/`` (`receipts.publish.text`). A cell is a run of parts: text, a link, text that
is read sign by sign, or a status with its mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

State = Literal["yes", "no", "open", "shown"]
RUN = "run:"  # how the anchor of a stored receipt begins, which a server has a page of
_HEAD = re.compile(r"([#!]?)(.*?)(…?)(?: ?\[(.*)\])?(?: \^(\d+))?")
_WORDS: Final[Mapping[State, str]] = {
    "yes": "yes accepted valid witnessed supported bridged",
    "no": "no rejected invalid left refuted refused E",
    "open": "open inconclusive unwitnessed unknown unproven stale I",
    "shown": "shown superseded unreceipted remark W",
}
# What the words of statuses and levels say, wherever one is shown.
STATES: Final[Mapping[str, State]] = {word: state for state, words in _WORDS.items() for word in words.split()}
ALWAYS = 0  # the rank of a column that is never dropped: an id, a status, an outcome


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to an anchor of the same page."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is read sign by sign: an id, a path; or a command to copy."""

    text: str
    command: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A status in words, with its state: a sign or a color is beside the words, never alone."""

    state: State
    text: str = ""

    @property
    def sign(self) -> str:
        """What shows the state without color."""
        return {"yes": "✓", "no": "✗", "open": "?", "shown": "·"}[self.state]


Part = str | Link | Code | Mark
Cell = tuple[Part, ...]
Facts = tuple[tuple[str, Cell], ...]
Points = tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Badge:
    """A number that a reader sees first, and what it counts."""

    value: str
    label: str
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Numbers stand on the right, with their unit in the header.

    On a narrow terminal the column with the highest ``rank`` is dropped first, and one of rank 0 never. A column that
    may be ``cut`` holds free text, which is shortened; one that is ``whole`` is dropped before it is wrapped.
    """

    name: str
    unit: str = ""
    numeric: bool = False
    rank: int = ALWAYS
    cut: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row: one cell for each column."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; ``after`` are sentences below it, ``empty`` replaces a table without rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    after: tuple[str, ...] = ()
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture beside the table that it shows, which replaces it where there are no pictures.

    ``draw`` makes the SVG element with ids that begin with its argument, or None if there is too little to draw; the
    page then says ``without``. ``table`` is None if the section has that table already. ``text`` gives the lines of a
    terminal so many columns wide.
    """

    id: str
    caption: Cell
    draw: Callable[[str], str | None]
    table: Table | None = None
    without: str = ""
    text: Callable[[int], Iterable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a list: a title, a line, and facts below it, each with its name (empty for none)."""

    anchor: str
    title: Cell
    facts: Facts = ()
    line: Cell = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: sentences, points under a word each, tables, figures, entries, then sections below it.

    With ``fold`` it is closed at first: the terminal prints ``fold`` (with the count that it names) in one line for all
    folded sections, HTML and Markdown as the summary of what a reader opens.
    """

    id: str
    title: str
    sentences: tuple[str, ...] = ()
    points: Points = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    entries: tuple[Entry, ...] = ()
    sections: tuple[Section, ...] = ()
    fold: str = ""

    @property
    def has_content(self) -> bool:
        """Whether anything is below its title."""
        tables = (table.rows or table.empty or table.after for table in self.tables)
        return any((self.sentences, self.points, self.figures, self.entries, self.sections, *tables))


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: the answer in one line, what it is about, commands to copy, then its sections.

    ``headline`` is the answer; ``next`` are commands that lead on, each after what it gives. ``foot`` holds what is
    read last: ids and digests.
    """

    title: str
    headline: Cell = ()
    badges: tuple[Badge, ...] = ()
    facts: Facts = ()
    lead: tuple[str, ...] = ()
    next: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    foot: Facts = ()


def row(*cells: str | Part | Cell) -> Row:
    """A row of cells; a lone part is a cell of its own."""
    return Row(tuple(item if isinstance(item, tuple) else (item,) for item in cells))


def table_of(
    caption: str,
    header: str,
    rows: Iterable[Iterable[str | Part | Cell]],
    after: tuple[str, ...] = (),
    empty: str = "",
) -> Table:
    """A table by its header, as Markdown writes one (``lane | #launches ^1 | peak [GiB] | label… ^2``), and its cells.

    A name after ``#``, or with a unit, heads numbers; one before ``…`` may be cut, one after ``!`` stays whole; ``^2``
    is the rank.
    """
    columns = []
    for sign, name, cut, unit, rank in (
        match.groups() for item in header.split(" | ") if (match := _HEAD.fullmatch(item))
    ):
        numeric, whole = sign == "#" or bool(unit), sign == "!"
        columns.append(Column(name, unit or "", numeric, rank=int(rank or ALWAYS), cut=bool(cut), whole=whole))
    return Table(caption, tuple(columns), tuple(row(*cells) for cells in rows), after, empty)


def sections_of(*sections: Section) -> tuple[Section, ...]:
    """Those of the sections that have content: a page names them all, whether there is something to show or not."""
    return tuple(section for section in sections if section.has_content)


def named_rows(rows: Iterable[tuple[str, str]], after: tuple[str, ...] = ()) -> Table:
    """A table of two columns without heads: a name, and what it is."""
    return table_of("", " | ", rows, after)


def marked(status: str, text: str = "") -> Mark:
    """A status with its state, under another text if one is given."""
    return Mark(STATES.get(status, "open"), text or status)


def points_of(rows: Iterable[tuple[str, str]]) -> Points:
    """Points of one sentence each, under a word."""
    return tuple((name, ((sentence,),)) for name, sentence in rows)


def lines_of(parts: Iterable[Part]) -> Points:
    """Points of one part each, under no word; none without any."""
    cells = tuple((part,) for part in parts)
    return (("", cells),) if cells else ()


def text(cell: Iterable[Part], signs: bool = False) -> str:
    """A cell as it is read, with the signs of its marks or without."""
    pieces = (f"{part.sign} {part.text}".rstrip() if signs and isinstance(part, Mark) else part for part in cell)
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
