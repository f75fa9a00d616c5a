"""Rows of a notebook's table to receipts, by a mapping. Importing invents nothing.

What the table does not state stays unstated. What cannot be read is reported, and kept word by word under
``notes.unread.…``. A row that cannot become a receipt is refused with its place and all its reasons.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from pathlib import Path

from receipts.base.errors import InputError, Problem
from receipts.receipt import Document, Parsed, parse
from receipts.workflows.tables.assemble import assemble
from receipts.workflows.tables.mapping import Mapping, read_mapping
from receipts.workflows.tables.prepare import page_row, prepared
from receipts.workflows.tables.recomputed import Disagreement, disagreements
from receipts.workflows.tables.rest import spill
from receipts.workflows.tables.row_draft import RowDraft
from receipts.workflows.tables.table import MARKDOWN, TableRow, read_table, read_text


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that a field was to have and that could not be read as what the field holds."""

    where: str
    to: str
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that did not become a receipt, with every reason."""

    where: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A receipt made from a row; its bytes are deterministic, so importing twice gives the same id."""

    row: TableRow
    parsed: Parsed


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """What became of a table. ``unnamed`` are the columns that nothing reads, each with the number of its rows."""

    receipts: tuple[Made, ...]
    refused: tuple[Refusal, ...]
    unread: tuple[Unread, ...]
    unnamed: Table[str, int] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()


def import_file(table: Path, mapping: Path) -> ImportedTable:
    """Read a table by a mapping file. Raises InputError where either cannot be read as what it is."""
    how = read_mapping(mapping)
    requires = how.notebook.requires
    rows = read_table(table, rows=how.notebook.rows) if not how.columns or table.suffix.lower() in MARKDOWN else []
    if requires or how.aliases or how.columns:
        rows = list(prepared(rows, table, how.aliases, requires, how.melt, how.transposed))
    if how.columns and not rows:
        rows = list(prepared([page_row(read_text(table), how.columns)], table, {}, requires))
    if not rows:
        do = f"name another mapping, or a page that has {' or '.join(requires)}" if requires else "add rows"
        raise InputError(str(table), [Problem("$", f"mapping {how.notebook.name} fits no row of it", do)])
    return replace(import_rows(rows, how), disagreements=tuple(disagreements(rows, how.checks)))


def import_rows(rows: Iterable[TableRow], mapping: Mapping) -> ImportedTable:
    """Receipts of the rows, in their order. Two rows that name one launch are both refused."""
    imported: list[Made] = []
    refused: list[Refusal] = []
    unread: list[Unread] = []
    launches: dict[str, str] = {}
    named, unnamed = mapping.named, Counter[str]()
    for row in rows:
        if row.problem is not None:
            refused.append(Refusal(row.where, (row.problem,)))
            continue
        draft = assemble(row, mapping)
        unnamed.update(spill(draft, row, named, mapping.rest))
        unread.extend(Unread(row.where, to, text) for to, text in draft.unread)
        launch = draft.tree.get("run", {}).get("launch")
        if launch in launches:
            what = f"it names the launch of {launches[launch]}"
            draft.problems.append(Problem("run.launch", what, "give notebook.launch what tells the rows apart"))
        try:
            parsed = parse(Document(encode(draft), f"{mapping.notebook.name}: {row.where}"))
        except InputError as error:
            refused.append(Refusal(row.where, (*draft.problems, *error.problems)))
            continue
        if draft.problems:
            refused.append(Refusal(row.where, tuple(draft.problems)))
            continue
        launches[parsed.receipt.run.launch] = row.where
        imported.append(Made(row, parsed))
    return ImportedTable(tuple(imported), tuple(refused), tuple(unread), unnamed)


def encode(draft: RowDraft) -> bytes:
    """The bytes of a receipt: compact JSON with sorted keys and one newline, the same on every machine."""
    text = json.dumps(draft.tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"
