"""Rows as a mapping wants them: columns by their aliases, the page's name, and figures that stand outside of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import Problem, UsageError, near
from receipts.base.untrusted_text import LinearPattern
from receipts.workflows.tables.mapping import Melt, Transposed
from receipts.workflows.tables.table import PLACE, TableRow

SHIPPED: Final = Path(__file__).parent / "mappings"
_KEPT: Final = 4  # parts of a path that tell pages of one name apart
_PUNCTUATION: Final = re.compile(r"[^a-z0-9#%]+")


def mapping_path(name: str) -> Path:
    """The mapping of that name among those that ship, or the file. Raises UsageError where there is neither."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    shipped = SHIPPED / f"{name}.toml"
    if not shipped.is_file():
        known = sorted(file.stem for file in SHIPPED.glob("*.toml"))
        hint = near(name, known)
        raise UsageError(f"there is no mapping {name!r}; shipped: {', '.join(known)}; or name a .toml file{hint}")
    return shipped


def page_row(text: str, columns: Mapping[str, LinearPattern]) -> TableRow:
    """A page as one row: of each pattern the first group, where it first matches."""
    matches = {name: pattern.search(text) for name, pattern in columns.items()}
    cells = {name: match.group(1) for name, match in matches.items() if match is not None}
    return TableRow("page", cells)


def prepared(
    rows: Iterable[TableRow],
    table: Path,
    aliases: Mapping[str, tuple[str, ...]],
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
        cells = {**place, **row.cells, **_aliased(row.cells, aliases)}
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


def _aliased(cells: Mapping[str, Any], aliases: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Cells by alias; columns are equal by their letters and digits."""
    columns = {_plain(name): value for name, value in cells.items()}
    known = {alias: [key for key in map(_plain, names) if key in columns] for alias, names in aliases.items()}
    return {alias: columns[keys[0]] for alias, keys in known.items() if keys}


def _plain(name: str) -> str:
    return _PUNCTUATION.sub("", name.lower())
