"""What a page is made of, so that HTML and Markdown say one and the same: sections of sentences, tables and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from receipts.publish.report.ref import Ref
from receipts.publish.report.text import plain


@dataclass(frozen=True, slots=True)
class Link:
    """A number or a name that leads to its receipt in the appendix."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is to be read sign by sign: an id, a path; or a command to copy."""

    text: str
    command: bool = False


State = Literal["yes", "no", "open"]


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer to a question: yes, no, or nobody knows yet, and the fact behind it. A sign tells it beside a color."""

    state: State
    text: str = ""

    @property
    def sign(self) -> str:
        """What tells it without color."""
        return {"yes": "\u2713", "no": "\u2717", "open": "?"}[self.state]


Part = str | Link | Code | Mark
Cell = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Badge:
    """A number that a reader sees first, and what it counts."""

    value: str
    label: str
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column; numbers stand to the right, with their unit in the header."""

    name: str
    unit: str = ""
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row: a cell for each column."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; `after` are sentences below it."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    after: tuple[str, ...] = ()

    def without_empty(self) -> Table:
        """The same without columns in which no row has anything."""
        kept = [at for at in range(len(self.columns)) if any(row.cells[at] not in ((), ("~",)) for row in self.rows)]
        rows = tuple(Row(tuple(row.cells[at] for at in kept)) for row in self.rows)
        return Table(self.caption, tuple(self.columns[at] for at in kept), rows, self.after)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture beside the table that it is drawn from, which stands for it where there are no pictures.

    `draw` makes the SVG element, its ids beginning with the text it is given; None where there is too little to draw,
    and then the page says `without`. `table` is None where the section has that table already.
    """

    id: str
    caption: Cell
    draw: Callable[[str], str | None]
    table: Table | None = None
    without: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list, with an anchor that others lead to: a line, and facts that are folded behind it."""

    anchor: str
    title: str
    line: Cell
    facts: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A section: what it says in points, sentences, tables, figures, entries, then sections below it.

    `points` are sentences under a word each. `nothing` names what it would have told of, where there is none of it.
    """

    id: str
    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    entries: tuple[Entry, ...] = ()
    sections: tuple[Section, ...] = ()
    figures: tuple[Figure, ...] = ()
    points: tuple[tuple[str, tuple[Cell, ...]], ...] = ()
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page. `facts` and `badges` head it, then comes its first section; `foot` names what it was made from."""

    title: str
    facts: tuple[tuple[str, Cell], ...]
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    badges: tuple[Badge, ...] = ()
    foot: tuple[tuple[str, Cell], ...] = ()


def folded(sections: Iterable[Section]) -> tuple[list[Section], list[str]]:
    """Sections without those that have nothing to tell, and what these would have told of."""
    kept: list[Section] = []
    empty: list[str] = []
    for item in sections:
        if item.nothing:
            empty.append(item.nothing)
        else:
            kept.append(item)
    return kept, empty


def without(names: Sequence[str]) -> tuple[str, ...]:
    """The sentence on what there was none of; none where there was some of everything."""
    if not names:
        return ()
    *first, last = names
    return (f"There are no {', no '.join(first)}{' and no ' if first else ''}{last}.",)


def link(ref: Ref) -> Cell:
    """A receipt by its name and the start of its id."""
    said = plain(ref.name).strip()
    name = () if said in ("", ref.short) else (f" {said}",)
    return (Link(ref.short, ref.anchor), *name)


def links(refs: Iterable[Ref], most: int = 3, more: int = 0) -> Cell:
    """Receipts by the starts of their ids, the first of them by its name as well."""
    found = list(refs)
    parts: list[Part] = []
    for index, ref in enumerate(found[:most]):
        parts += [", "] if index else []
        parts += link(ref) if index == 0 else (Link(ref.short, ref.anchor),)
    left = max(0, len(found) - most) + more
    return (*parts, f" and {left} more") if left else tuple(parts)


def numbered(text: str, ref: Ref) -> Cell:
    """A number that leads to its receipt; `~` leads nowhere."""
    return (text,) if text == "~" else (Link(text, ref.anchor),)


def rule(code: str, name: str = "") -> Link:
    """A rule's code that leads to its page in the appendix."""
    return Link(f"{code} {name.replace('_', ' ')}".strip(), f"rule-{code}")


def joined(items: Iterable[Cell], between: str = ", ") -> Cell:
    """Cells as one, with something between them."""
    parts: list[Part] = []
    for item in items:
        parts += [between] if parts else []
        parts += item
    return tuple(parts)


def more(count: int, what: str) -> tuple[str, ...]:
    """The sentence on what was left out; none where nothing was."""
    return (f"And {count:,} more {what}.",) if count else ()
