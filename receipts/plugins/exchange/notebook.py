"""Rows of a notebook's table to receipts, by a mapping. Importing invents nothing.

Rows are prepared as the mapping wants them: columns by their aliases, the page's name, and figures that stand outside
of tables. What the table does not state stays unstated. What cannot be read is reported, and kept word by word under
``notes.unread.…``. A row that cannot become a receipt is refused with its place and all its reasons.

The mappings that ship lie in the folder ``mappings`` beside this file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Final

from receipts.base.errors import InputError, Problem, UsageError, near
from receipts.plugins.exchange.draft import RowDraft, assemble, spill
from receipts.plugins.exchange.mapping import Mapping, Melt, Transposed, read_mapping
from receipts.plugins.exchange.quantity import Disagreement, disagreements
from receipts.plugins.exchange.table import MARKDOWN, PLACE, TableRow, read_table, read_text
from receipts.receipt import Document, Parsed, parse

SHIPPED: Final = Path(__file__).parent / "mappings"
_KEPT: Final = 4  # parts of a path that tell pages of one name apart
_PUNCTUATION: Final = re.compile(r"[^a-z0-9#%]+")


def mapping_path(name: str) -> Path:
    """The mapping of that name among those that ship, or the file. Raises UsageError if there is neither."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    shipped = SHIPPED / f"{name}.toml"
    if not shipped.is_file():
        known = sorted(file.stem for file in SHIPPED.glob("*.toml"))
        hint = near(name, known)
        raise UsageError(f"there is no mapping {name!r}; shipped: {', '.join(known)}; or name a .toml file{hint}")
    return shipped


def prepared(
    rows: Iterable[TableRow],
    table: Path,
    aliases: Table[str, tuple[str, ...]],
    requires: tuple[str, ...],
    melt: Melt | None = None,
    transposed: Transposed | None = None,
) -> Iterator[TableRow]:
    """The rows that have one of the required columns, with aliases and the names of the page."""
    place = {"page": table.name, "path": "/".join(table.absolute().parts[-_KEPT:])}
    if transposed is not None:
        tables = groupby(rows, key=lambda row: row.table)
        rows = chain.from_iterable(_turned(list(members), transposed) for _, members in tables)
    for row in chain.from_iterable(_melted(row, melt) for row in rows) if melt is not None else rows:
        # Cells by alias; columns are equal by their letters and digits.
        columns = {_plain(name): value for name, value in row.cells.items()}
        known = {alias: [key for key in map(_plain, names) if key in columns] for alias, names in aliases.items()}
        cells = {**place, **row.cells, **{alias: columns[keys[0]] for alias, keys in known.items() if keys}}
        whole = replace(row, cells=cells)
        if not requires or any(whole.at(name) is not None for name in requires):
            yield whole


def _turned(rows: list[TableRow], transposed: Transposed) -> list[TableRow]:
    """One row for each column that the pattern fits, in which each row is a cell; the rows where it fits none."""
    corner, *columns = [name for name in rows[0].cells if name not in PLACE] or [""]
    runs = [(column, match) for column in columns if (match := transposed.pattern.search(column)) is not None]
    names = [str(row.cells.get(corner)) for row in rows]
    twice = next((name for name in names if names.count(name) > 1), None)
    doubt = Problem("$", f"row {twice!r} occurs twice", "rename one of them") if twice is not None else None
    problem = next((row.problem for row in rows if row.problem is not None), doubt)
    return [
        replace(
            rows[0],
            where=f"{rows[0].where}, {column}",
            cells={
                **{name: cell for name, cell in rows[0].cells.items() if name in PLACE},
                **match.groupdict(),
                transposed.corner: corner,
                **dict(zip(names, (row.cells.get(column) for row in rows), strict=True)),
            },
            problem=problem,
        )
        for column, match in runs
    ] or rows


def _melted(row: TableRow, melt: Melt) -> list[TableRow]:
    """One row for each column that the pattern fits; the row itself where it fits none."""
    named = [
        (str(match.group(1)), column) for column in row.cells if (match := melt.pattern.search(column)) is not None
    ]
    beside = {column.replace("{}", name) for name, _ in named for column in melt.beside.values()}
    kept = {column: cell for column, cell in row.cells.items() if column not in {*dict(named).values(), *beside}}
    return [
        replace(
            row,
            cells={
                **kept,
                melt.name: name,
                melt.value: row.cells[column],
                **{key: row.cells.get(other.replace("{}", name)) for key, other in melt.beside.items()},
            },
        )
        for name, column in named
    ] or [row]


def _plain(name: str) -> str:
    return _PUNCTUATION.sub("", name.lower())


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
    """Read a table by a mapping file. Raises InputError if either cannot be read as what it is."""
    how = read_mapping(mapping)
    requires = how.notebook.requires
    rows = read_table(table, rows=how.notebook.rows) if not how.columns or table.suffix.lower() in MARKDOWN else []
    if requires or how.aliases or how.columns:
        rows = list(prepared(rows, table, how.aliases, requires, how.melt, how.transposed))
    if how.columns and not rows:
        # The page is one row: of each pattern the first group, where it first matches.
        text = read_text(table)
        matches = ((name, pattern.search(text)) for name, pattern in how.columns.items())
        page = TableRow("page", {name: match.group(1) for name, match in matches if match is not None})
        rows = list(prepared([page], table, {}, requires))
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
        of_page = bool(mapping.notebook.requires)
        unnamed.update(spill(draft, row, named, mapping.rest, of_page=of_page))
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
