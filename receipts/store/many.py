"""Many rows at once, as each engine does it best: SQLite runs a statement often, PostgreSQL runs one over arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Column, LargeBinary, SmallInteger, String

from receipts.store.arrays import written
from receipts.store.statement import Driven, Row, run, run_each

_ARRAYS: Final = ((SmallInteger, "smallint"), (String, "text"), (LargeBinary, "bytea"))


def _arrays(columns: Sequence[Column[Any]]) -> str:
    """A parameter for each column: an array of its type. Numbers of rows and digests have 8 bytes."""
    kinds = [next((name for kind, name in _ARRAYS if isinstance(item.type, kind)), "bigint") for item in columns]
    return ", ".join(f"%s::{kind}[]" for kind in kinds)


def _turned(columns: Sequence[Column[Any]], rows: Iterable[Sequence[Any]]) -> list[str]:
    """An array for each column."""
    turned = list(zip(*rows, strict=True)) or [()] * len(columns)
    return [written(column.type, values) for column, values in zip(columns, turned, strict=True)]


class Lookup:
    """Rows whose key columns have given values, for many values: each is a look-up in the key's index.

    ``joined`` and ``and_`` are SQL of both engines: what the key's table is joined to, and a further condition.
    ``newest`` is the column by which, descending, the first few rows of each key are taken.
    """

    def __init__(
        self,
        key: Sequence[Column[Any]],
        wanted: Sequence[Column[Any]],
        *,
        joined: str = "",
        and_: str = "",
        newest: Column[Any] | None = None,
    ) -> None:
        self._key = tuple(key)
        self._wanted = ", ".join(_named(column) for column in wanted)
        self._from = f"FROM {key[0].table.name} {joined}".rstrip()
        self._and = f" AND {and_}" if and_ else ""
        self._order = f" ORDER BY {_named(newest)} DESC LIMIT " if newest is not None else ""

    @cached_property
    def _one(self) -> str:
        equal = " AND ".join(f"{_named(column)} = ?" for column in self._key)
        last = f"{self._order}?" if self._order else ""
        return f"SELECT {self._wanted} {self._from} WHERE {equal}{self._and}{last}"

    @cached_property
    def _many(self) -> str:
        names = ", ".join(f"key{at}" for at in range(len(self._key)))
        equal = " AND ".join(f"{_named(column)} = asked.key{at}" for at, column in enumerate(self._key))
        last = f"{self._order}%s" if self._order else ""
        inner = f"SELECT {self._wanted} {self._from} WHERE {equal}{self._and}{last}"
        return f"SELECT found.* FROM unnest({_arrays(self._key)}) AS asked ({names}) CROSS JOIN LATERAL ({inner}) found"

    def read(self, connection: Driven, keys: Iterable[Sequence[Any]], limit: int | None = None) -> list[Row]:
        """Rows of all these keys; with ``newest``, at most ``limit`` of each. No key may stand there twice."""
        asked, last = list(keys), [limit] if self._order else []
        if not asked:
            return []
        if connection.dialect.name == "postgresql":
            rows: list[Row] = run(connection, self._many, [*_turned(self._key, asked), *last]).fetchall()
            return rows
        return run_each(connection, self._one, ([*key, *last] for key in asked))


def _named(column: Column[Any]) -> str:
    return f"{column.table.name}.{column.name}"


class Insertion:
    """Inserts into some columns of a table. What another writer inserted first is left as it is."""

    def __init__(self, columns: Sequence[Column[Any]]) -> None:
        self._columns = tuple(columns)
        self._into = f"INSERT INTO {columns[0].table.name} ({', '.join(column.name for column in columns)})"

    def put(self, connection: Driven, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in their order."""
        if rows and connection.dialect.name == "postgresql":
            run(connection, self._over_arrays, _turned(self._columns, rows))
            return
        for row in rows:
            run(connection, self._one_row, row)

    def counted(self, connection: Driven, rows: Sequence[Sequence[Any]], by: int) -> list[Row]:
        """Insert rows in their order; gives the first ``by`` values and the number of each that was inserted."""
        if rows and connection.dialect.name == "postgresql":
            names = ", ".join(column.name for column in self._columns[:by])
            sql = f"{self._over_arrays} RETURNING {names}, seq"
            made: list[Row] = run(connection, sql, _turned(self._columns, rows)).fetchall()
            return made
        found = []
        for row in rows:
            cursor = run(connection, self._one_row, row)
            if cursor.rowcount:
                found.append((*row[:by], cursor.lastrowid))
        return found

    @cached_property
    def _over_arrays(self) -> str:
        return f"{self._into} SELECT * FROM unnest({_arrays(self._columns)}) ON CONFLICT DO NOTHING"

    @cached_property
    def _one_row(self) -> str:
        return f"{self._into} VALUES ({', '.join('?' * len(self._columns))}) ON CONFLICT DO NOTHING"


def change(connection: Driven, sql: str, rows: Iterable[Sequence[Any]]) -> None:
    """Run a statement that changes rows, written with ``?``, for each of some parameters."""
    text = sql.replace("?", "%s") if connection.dialect.name == "postgresql" else sql
    for row in rows:
        run(connection, text, row)
