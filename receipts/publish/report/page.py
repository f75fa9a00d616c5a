"""What the pages of reports share: anchors, links, tables without idle columns, and the appendix.

The appendix has every receipt that a page rests on, and every rule that it cites with its *Why*. Each has an anchor, so
that every number leads to its receipt and every code to what it means.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from receipts.base.errors import NotFound
from receipts.base.units import counted
from receipts.base.untrusted_text import plain
from receipts.publish.page import Cell, Code, Entry, Link, Part, Points, Row, Section, Table, marked, text
from receipts.publish.text import NOTE, amount, number
from receipts.questions.week.data import Cut, Described, Ref

if TYPE_CHECKING:
    from receipts.judging.rule import Rule
    from receipts.judging.rulebook import RuleSet

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


MAX_TEXT = 700
_PREFIX = "rule-"
_PART = re.compile(r"^\*(Why|Rejected|Accepted)\.\*\s*(.*?)(?=^\*(?:Why|Rejected|Accepted)\.\*|\Z)", re.M | re.S)
_LEVELS = {"E": "E, rejects or invalidates", "I": "I, leaves the question open", "W": "W, is shown"}


def known_rules(rules: RuleSet, codes: Iterable[str]) -> dict[str, Rule]:
    """Rules of these codes, in the order of their codes; a code that the set does not hold is left out."""
    held = {}
    for code in sorted(set(codes)):
        try:
            held[code] = rules.get(code)
        except NotFound:
            continue
    return held


def cited(sections: Iterable[Section]) -> Iterator[str]:
    """Codes that the cells of some sections lead to."""
    for item in sections:
        cells = (cell for table in item.tables for row in table.rows for cell in row.cells)
        points = (cell for _, several in item.points for cell in several)
        titles = (entry.title for entry in item.entries)
        for part in chain.from_iterable((*cells, *points, *titles)):
            if isinstance(part, Link) and part.anchor.startswith(_PREFIX):
                yield part.anchor.removeprefix(_PREFIX)
        yield from cited(item.sections)


def rules_section(rules: RuleSet, sections: Iterable[Section]) -> list[Section]:
    """The rules that some sections cite; one that the set does not hold says so. None where they cite none."""
    codes = sorted(set(cited(sections)))
    held = known_rules(rules, codes)
    entries = tuple(_rule_entry(code, held.get(code)) for code in codes)
    intro = "What the codes of this page mean. A rule's whole page: receipts rules CODE."
    fold = counted(len(entries), "rule")
    return [Section("rules", "Rules", sentences=(intro,), entries=entries, fold=fold)] if entries else []


def _rule_entry(code: str, item: Rule | None) -> Entry:
    if item is None:
        missing = (("rule", ("The rule set in force holds no such rule.",)),)
        return Entry(f"{_PREFIX}{code}", (plain(code),), missing)
    facts: list[tuple[str, Cell]] = []
    for name, written in _PART.findall(item.page):
        # What is between backticks is read sign by sign; one without its other, where a text was cut, opens nothing.
        pieces = plain(" ".join(written.split()), MAX_TEXT).split("`")
        closed = len(pieces) - (len(pieces) + 1) % 2
        parts = [Code(piece) if at % 2 and at < closed else piece for at, piece in enumerate(pieces)]
        facts.append((name.lower(), tuple(part for part in parts if part)))
    title = f"{item.code} {item.name.replace('_', ' ')}"
    level = _LEVELS.get(item.level.value, item.level.value)
    return Entry(f"{_PREFIX}{item.code}", (title,), tuple(facts), line=(level,))


def receipts_section(receipts: Sequence[Described]) -> Section:
    """The appendix in words."""
    intro = (
        "Every receipt that a number of this page is from. Print one with: receipts show ID; its bytes with --raw."
        if receipts
        else "This page is from no receipt."
    )
    fold = counted(len(receipts), "receipt") if receipts else ""
    return Section("receipts", "Receipts", (intro,), entries=tuple(map(_receipt_entry, receipts)), fold=fold)


def _receipt_entry(item: Described) -> Entry:
    judged = item.status if item.outcome == "ok" else f"{item.status}, {item.outcome}"
    shown = (
        f"{number(item.rate)} tokens/s/chip" if item.rate is not None else "",
        f"{item.step_seconds:,.4g} s a step" if item.step_seconds is not None else "",
        f"peak {amount(item.peak_bytes)}" if item.peak_bytes is not None else "",
        item.topology,
    )
    line: Cell = (marked(item.status, judged), f" · {' · '.join(filter(None, shown))}")
    facts: list[tuple[str, Cell]] = [
        ("id", (Code(item.receipt.id),)),
        ("launch", (Code(item.launch),)),
        ("run", (f"{item.lane} · {item.kind} · {item.outcome} · {item.provenance}",)),
        ("judged", (f"{item.status} · path {item.path}{' · ' if item.errors else ''}{', '.join(item.errors)}",)),
        ("ran", (f"{item.started}{f' to {item.finished}' if item.finished else ''}",)),
    ]
    if item.superseded_by is not None:
        facts.append(("superseded", (f"by {item.superseded_by[:12]}" if item.superseded_by else "retracted",)))
    if item.lineage:
        facts.append(("lineage", (plain(item.lineage, NOTE),)))
    if item.context:
        facts.append(("context", (item.context,)))
    facts += [(plain(key.replace("_", " ")), (plain(text, NOTE),)) for key, text in item.notes]
    return Entry(item.receipt.anchor, (plain(item.receipt.name),), tuple(facts), line)
