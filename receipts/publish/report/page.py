"""What the pages of reports share: anchors of lanes, links to receipts and rules, tables without idle columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from receipts.base.text import plain
from receipts.publish.page import Cell, Link, Part, Points, Row, Table, text
from receipts.questions.week.ref import Cut, Ref

MIN_ROWS = 3  # of fewer, what repeats is easier to read in its row


def place(name: str, part: str = "") -> str:
    """Where a lane is on the page, or a part of it: a lane's name may be anything that somebody wrote."""
    slug = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    if slug != name:
        slug = f"{slug[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"lane-{slug}-{part}" if part else f"lane-{slug}"


def without(names: Sequence[str]) -> tuple[str, ...]:
    """The sentence on what there was none of; none where there was some of everything."""
    if not names:
        return ()
    *first, last = names
    return (f"There are no {', no '.join(first)}{' and no ' if first else ''}{last}.",)


def link(ref: Ref) -> Cell:
    """A receipt by its name and the start of its id."""
    called = plain(ref.name).strip()
    name = () if called in ("", ref.short) else (f" {called}",)
    return (Link(ref.short, ref.anchor), *name)


def links(refs: Iterable[Ref], most: int = 3) -> Cell:
    """Receipts by the starts of their ids, the first of them by its name as well."""
    listed = list(refs)
    parts: list[Part] = []
    for index, ref in enumerate(listed[:most]):
        parts += [", "] if index else []
        parts += link(ref) if index == 0 else (Link(ref.short, ref.anchor),)
    left = max(0, len(listed) - most) + (refs.more if isinstance(refs, Cut) else 0)
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


def without_empty(table: Table) -> Table:
    """The table without columns in which no row has anything."""
    columns = range(len(table.columns))
    return _only(table, [at for at in columns if any(row.cells[at] not in ((), ("~",)) for row in table.rows)])


def _only(table: Table, kept: Sequence[int]) -> Table:
    """The table with the columns at these places."""
    rows = tuple(Row(tuple(row.cells[at] for at in kept)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[at] for at in kept), rows=rows)


def without_repeated(table: Table) -> tuple[Table, Points]:
    """The table without columns that say the same in each of its rows, and what they say; the first and last stay."""
    repeated = [
        at
        for at in range(1, len(table.columns) - 1)
        if len(table.rows) >= MIN_ROWS and len({row.cells[at] for row in table.rows}) == 1
    ]
    if not repeated:
        return table, ()
    every = ((table.columns[at], table.rows[0].cells[at]) for at in repeated)
    facts = tuple(
        (f"{item.name.rstrip('?')}: ", *cell, f" {item.unit}" if item.unit and text(cell)[-1:].isdigit() else "")
        for item, cell in every
    )
    kept = [at for at in range(len(table.columns)) if at not in repeated]
    return _only(table, kept), (("in every row", facts),)
