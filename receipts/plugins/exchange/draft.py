"""The draft of a receipt from one row of a table, by the mapping.

It holds leaves by their paths, what could not be read, and why the row cannot stand. Columns that no entry of the
mapping names become settings where the mapping asks for it; the others are reported.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from receipts.base.errors import Problem
from receipts.base.untrusted_text import expanded
from receipts.ingest.leaves import at, put
from receipts.plugins.exchange.mapping import PLACE, Choices, MappedField, Mapping, MemoryColumns, Pattern, Rest, Spread
from receipts.plugins.exchange.quantity import kind_of, read_quantity, rounded_text
from receipts.plugins.exchange.table import TableRow
from receipts.receipt import VERSION
from receipts.receipt.leaves import find_leaf


@dataclass
class RowDraft:
    """The tree of one receipt. A leaf that is stated stays as it is."""

    tree: dict[str, Any] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def has(self, path: str) -> bool:
        """Whether something is stated at a path."""
        return at(self.tree, path) is not None

    def put(self, path: str, value: Any) -> None:
        """State a leaf, unless it is stated already."""
        if not self.has(path):
            put(self.tree, path, value)

    def leave(self, path: str, source: Any) -> None:
        """Report what could not be read, and keep it word by word."""
        text = source if isinstance(source, str) else str(source)
        self.unread.append((path, text))
        notes = self.tree.setdefault("notes", {})
        earlier = notes.get(f"unread.{path}")
        notes[f"unread.{path}"] = (f"{earlier}; {text}" if earlier else text)[:10_000]


_DATE = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")
MAX_KEY = 200  # what receipts.receipt.document allows a key


def assemble(row: TableRow, mapping: Mapping) -> RowDraft:
    """The draft of a row's receipt, with what could not be read and why it cannot stand."""
    draft = RowDraft()
    draft.put("schema_version", VERSION)
    named = filled(mapping.notebook.launch, row)
    if named is None:
        what = f"the launch's template {mapping.notebook.launch!r} names what the row does not state"
        draft.problems.append(Problem("run.launch", what, "end optional places with ?: {date?}"))
    else:
        draft.put("run.launch", hashlib.sha256(named.encode()).hexdigest())
    stated = next((value for path in mapping.notebook.dated if (value := row.at(path)) is not None), None)
    day = _day(str(stated)) if stated is not None else mapping.notebook.undated
    if day is None:
        draft.leave("run.started", stated)
        day = mapping.notebook.undated
    draft.put("run.started", f"{day.isoformat()}T00:00:00Z")
    draft.put("run.started_stated", str(stated) if stated is not None else "undated")

    def holds(choices: Choices) -> list[bool]:
        cells = ((row.at(path), values) for path, values in choices.items())
        return [("" if cell is None else as_text(cell).lower()) in values for cell, values in cells]

    for item in mapping.fields:
        if not draft.has(item.to) and all(holds(item.when)) and not any(holds(item.unless)):
            _state(draft, row, item)
    if mapping.notebook.context and (context := filled(mapping.notebook.context, row)) is not None:
        draft.put("run.context", context)
    for spread in mapping.spreads:
        _spread(draft, row, spread)
    if mapping.memory is not None:
        _memory(draft, row, mapping.memory)
    for name, path in mapping.notes.items():
        value = row.at(path)
        if isinstance(value, list):
            draft.put(f"notes.{name}", [as_text(item)[:10_000] for item in value])
        elif value is not None:
            draft.put(f"notes.{name}", value if isinstance(value, bool | int) else as_text(value)[:10_000])
    return draft


def _day(text: str) -> date | None:
    """The first day that a text names; the first of a month where it names no day."""
    match = _DATE.search(text)
    try:
        return date(int(match[1]), int(match[2]), int(match[3] or 1)) if match else None
    except ValueError:
        return None


def filled(template: str, row: TableRow) -> str | None:
    """The template with ``{path}`` filled in; None if a place is not stated, unless it ends in ``?``."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        name = match[1]
        optional = name.endswith("?")
        cell = row.where if name == "row" else row.at(name.removesuffix("?"))
        missing = missing or (cell is None and not optional)
        return "" if cell is None else as_text(cell)

    text = PLACE.sub(value, template).strip()
    return None if missing or not text else text


def as_text(value: Any) -> str:
    """A cell as the table printed it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(getattr(value, "text", value))


_SWITCHES = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}


def _state(draft: RowDraft, row: TableRow, item: MappedField) -> None:
    if item.value is not None:
        draft.put(item.to, item.value)
        return
    source: Any = filled(item.template, row) if item.template else None
    for path in item.from_:
        source = row.at(path)
        if source is not None:
            break
    if isinstance(source, list):
        # Its entries as one text, which nobody orders, or the entry that the field takes.
        if item.take != "all":
            source = source[0 if item.take == "first" else -1]
        elif item.join:
            source = item.join.join(sorted({as_text(entry) for entry in source}))
        elif item.patterns and all(isinstance(entry, str) for entry in source):
            source = next((entry for entry in source if any(one.search(entry) for one, _ in item.patterns)), None)
    if source is None:
        return
    known, value = True, source
    if item.map or item.patterns:
        text = as_text(source)
        known, value = text.lower() in item.map, item.map.get(text.lower())
        known, value = (known, value) if known else by_pattern(item.patterns, text)
    if not known:
        if item.otherwise == "refuse":
            expected = ", ".join([*item.map, *(pattern.pattern for pattern, _ in item.patterns)])
            draft.problems.append(
                Problem(item.to, f"{source!r} is not known to the mapping", f"map it; known: {expected}")
            )
        elif item.otherwise == "note":
            draft.leave(item.to, source)
        if item.otherwise != "keep":
            return
        value = source
    if value == "":
        return
    if item.form == "text":
        draft.put(item.to, value if isinstance(value, bool) or item.map else as_text(value))
    elif item.form == "switch":
        switch = value if isinstance(value, bool) else _SWITCHES.get(as_text(value).lower())
        draft.leave(item.to, source) if switch is None else draft.put(item.to, switch)
    elif item.form == "list":
        parts = as_text(value).split(item.split) if item.split else value if isinstance(value, list) else [value]
        draft.put(item.to, [part.strip() if isinstance(part, str) else part for part in parts if part != ""])
    elif item.form == "date":
        day = _day(as_text(value))
        draft.put(item.to, f"{day.isoformat()}T00:00:00Z") if day else draft.leave(item.to, source)
    else:
        _put_number(draft, item, source, value)


def by_pattern(patterns: Iterable[Pattern], text: str) -> tuple[bool, Any]:
    """The value of the first pattern found in the text, its groups filled in; whether there is one."""
    for pattern, value in patterns:
        match = pattern.search(text)
        if match:
            return True, expanded(match, value) if isinstance(value, str) else value
    return False, None


# Units of leaves, and what numbers of them may be given in; a leaf without a unit may be a share.
_KINDS = {
    "seconds": {"seconds"},
    "bytes": {"bytes"},
    "tokens/s": {"tokens/s"},
    "tokens/s/chip": {"tokens/s", "tokens/s/chip"},
    "TFLOP/s/chip": {"TFLOP/s"},
}


def _put_number(draft: RowDraft, item: MappedField, source: Any, value: Any) -> None:
    leaf = find_leaf(item.to)
    held = "bytes" if item.to == "memory.aggregate.bytes" else None if leaf is None else leaf.unit
    # Bytes without a unit, so that `512 B` does not mean billions.
    times = 1.0
    if item.patterns and isinstance(value, str) and " × " in value:
        # The first number of a product that a pattern wrote (`\1 × \2`), and what it is to be multiplied by.
        first, *others = value.split(" × ")
        factors = [factor.value for other in others if (factor := read_quantity(other)) is not None]
        if len(factors) == len(others):
            value, times = first, math.prod(factors)
    unit = item.unit or ("B" if held == "bytes" else "")
    quantity = read_quantity(value, unit, several=item.several, binary=item.binary)
    kinds = {"", "share"} if held is None else {"", *_KINDS.get(held, ())}
    anything = leaf is None or leaf.path.endswith("*")
    if quantity is None or not (anything or quantity.kind in kinds):
        draft.leave(item.to, source)
        return
    quantity = replace(quantity, value=quantity.value * times)
    if item.form == "integer" and not quantity.coarse and not quantity.value.is_integer():
        draft.leave(item.to, source)
        return
    draft.put(item.to, round(quantity.value) if item.form == "integer" else quantity.value)
    companion = f"{item.to}_stated"
    if find_leaf(companion) is not None:
        whole = item.rounded and isinstance(source, int) and not item.unit
        draft.put(companion, rounded_text(source) if whole else quantity.text)


def _spread(draft: RowDraft, row: TableRow, spread: Spread) -> None:
    source = row.at(spread.from_)
    if source is None:
        return
    if isinstance(source, list):
        entries: Table[str, Any] = dict.fromkeys(map(as_text, source), True)
    elif isinstance(source, dict):
        entries = source
    else:
        entries = {as_text(source): True}
    for name, value in entries.items():
        if value is None or value == "" or name in spread.skip:
            continue
        if isinstance(value, dict | list) or len(name) > MAX_KEY:
            draft.leave(f"{spread.to}.{name[:80]}", value if len(name) <= MAX_KEY else f"{name}: {value}")
            continue
        kept = value if isinstance(value, bool | int | str) else float(value)
        draft.put(f"{spread.to}.{spread.rename.get(name, name)}", str(kept) if spread.to == "wheels" else kept)


_LEAVES = ("bytes_used", "peak_bytes", "peak_reserved_bytes")
_KIND = {"bytes_used": "live", "peak_bytes": "live", "peak_reserved_bytes": "reserved"}


def _memory(draft: RowDraft, row: TableRow, columns: MemoryColumns) -> None:
    """Rows by phase where one chip ran; one figure for several chips stays the one figure that it is."""
    listed = row.at(columns.from_)
    if listed is None:
        return
    one_chip = as_text(row.at(columns.chips)) == "1"
    rows: dict[str, dict[str, Any]] = {}
    for entry in listed if isinstance(listed, list) else [listed]:
        cell = TableRow(row.where, entry if isinstance(entry, dict) else {columns.value: entry})
        text = " ".join(as_text(cell.at(name)) for name in (columns.where, columns.kind) if cell.at(name) is not None)
        unit = as_text(cell.at(columns.unit) or "").partition(" ")[0]
        sized = unit == "" or kind_of(unit) == "bytes"
        quantity = read_quantity(cell.at(columns.value), unit) if sized else None
        known, leaf = by_pattern(columns.kinds, text)
        if quantity is None or not known or quantity.kind not in ("", "bytes"):
            draft.leave(f"memory {text}".strip(), f"{as_text(cell.at(columns.value))} {unit}".strip())
        elif leaf not in _LEAVES:
            continue
        elif one_chip:
            phase = by_pattern(columns.phases, text)[1] or "steady"
            figures = rows.setdefault(phase, {"chip": 0, "phase": phase})
            figures[leaf] = max(int(quantity.value), figures.get(leaf, 0))
        elif not draft.has("memory.aggregate"):
            over = by_pattern(columns.over, text)[1] or "unstated"
            figure = {"bytes": int(quantity.value), "over": over, "kind": _KIND[leaf], "stated": quantity.text}
            draft.put("memory.aggregate", figure)
    if rows:
        draft.put("memory.chips", list(rows.values()))


# Behind a number, that of another run of the row: `1 (0)`.
_ANOTHER = re.compile(r"(?<=\d)\s\(\d+\)$")


# What a column of a page says that is a result and no setting.
_RESULT = re.compile(
    r"(?i)speed|through|tok|tps|wps|samples|images|mfu|hfu|flop|mem|gib|loss|time|latency|\bms\b|\bs\b|util|gain|ratio"
    r"|improv|accura|score|perplex|%|percent|reduc|delta|diff|step|notes?\b|comment|remark|link|source|commit|date|status"
)


def spill(
    draft: RowDraft, row: TableRow, named: Collection[str], rest: Rest | None, *, of_page: bool = False
) -> list[str]:
    """State what no entry names as keys of an open map, where the mapping asks for it; the paths that nothing reads.

    A column ``of_page`` that is not a result may be a setting: rows that differ in it do not repeat one another.
    """
    unnamed = []
    for path, value in _columns(row):
        if _within(path, named):
            continue
        text = _ANOTHER.sub("", " + ".join(map(as_text, value)) if isinstance(value, list) else as_text(value))
        fits = len(path) <= MAX_KEY and len(text) <= MAX_KEY
        if rest is None or not _within(path, rest.from_) or not fits:
            unnamed.append(path)
            if of_page and fits and not _RESULT.search(path):
                draft.put(f"features.{path}", text)
        else:
            kept = value if isinstance(value, bool | int) else text
            draft.put(f"{rest.to}.{path}", float(value) if isinstance(value, float) else kept)
    return unnamed


def _columns(row: TableRow) -> Iterator[tuple[str, Any]]:
    """Every stated column with its dotted path, the nested ones too."""
    waiting = [(str(name), value) for name, value in reversed(row.cells.items())]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((f"{path}.{name}", entry) for name, entry in reversed(value.items()))
        elif (value := row.at(path)) is not None:
            yield path, value


def _within(path: str, paths: Collection[str]) -> bool:
    """Whether a path is one of these or lies below one."""
    parts = path.split(".")
    return any(".".join(parts[:end]) in paths for end in range(1, len(parts) + 1))
