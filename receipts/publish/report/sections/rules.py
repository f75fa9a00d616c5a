"""The rules that a page cites, each with its *Why*, so that every code leads to what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from receipts.base.errors import NotFound
from receipts.publish.page import Cell, Code, Entry, Link, Section
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.judging.rule import Rule
    from receipts.judging.rulebook import RuleSet

LONGEST = 700
_PREFIX = "rule-"
_PART = re.compile(r"^\*(Why|Rejected|Accepted)\.\*\s*(.*?)(?=^\*(?:Why|Rejected|Accepted)\.\*|\Z)", re.M | re.S)
_LEVELS = {"E": "E, rejects or invalidates", "I": "I, leaves the question open", "W": "W, is shown"}


def known(rules: RuleSet, codes: Iterable[str]) -> dict[str, Rule]:
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


def section(rules: RuleSet, sections: Iterable[Section]) -> list[Section]:
    """The rules that some sections cite; one that the set does not hold says so. None where they cite none."""
    codes = sorted(set(cited(sections)))
    held = known(rules, codes)
    entries = tuple(_entry(code, held.get(code)) for code in codes)
    intro = "What the codes of this page mean. A rule's whole page: receipts rules CODE."
    return [Section("rules", "Rules", sentences=(intro,), entries=entries)] if entries else []


def _entry(code: str, item: Rule | None) -> Entry:
    if item is None:
        missing = (("rule", ("The rule set in force holds no such rule.",)),)
        return Entry(f"{_PREFIX}{code}", (plain(code),), missing)
    facts = tuple(
        (name.lower(), _spelt(plain(" ".join(text.split()), LONGEST))) for name, text in _PART.findall(item.page)
    )
    title = f"{item.code} {item.name.replace('_', ' ')}"
    return Entry(f"{_PREFIX}{item.code}", (title,), facts, line=(_LEVELS.get(item.level.value, item.level.value),))


def _spelt(text: str) -> Cell:
    """A page's text; what is between backticks is to be read sign by sign."""
    pieces = text.split("`")
    closed = len(pieces) - (len(pieces) + 1) % 2  # a sign without its other, where a text was cut, opens nothing
    parts = [Code(piece) if at % 2 and at < closed else piece for at, piece in enumerate(pieces)]
    return tuple(part for part in parts if part)
