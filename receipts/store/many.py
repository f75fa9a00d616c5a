"""Many rows at once, as each engine does it best: SQLite runs a statement often, PostgreSQL runs one over arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Column, Connection, LargeBinary, SmallInteger, String, bindparam, select

from receipts.store.statement import Row, Statement, run

_ARRAYS: Final = ((SmallInteger, "smallint"), (String, "text"), (LargeBinary, "bytea"))


def _array(column: Column[Any]) -> str:
    """PostgreSQL's name of a column's type in an array; numbers of rows and digests have 8 bytes."""
    return next((name for kind, name in _ARRAYS if isinstance(column.type, kind)), "bigint")


def _arrays(columns: Sequence[Column[Any]]) -> str:
    return ", ".join(f"%s::{_array(column)}[]" for column in columns)


def _turned(columns: Sequence[Column[Any]], rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(values) for values in zip(*rows, strict=True)] or [[] for _ in columns]


class Lookup:
    """Rows of a table whose key columns have given values, however many: a look-up in the key's index for each."""

    def __init__(self, key: Sequence[Column[Any]], wanted: Sequence[Column[Any]]) -> None:
        self._key = tuple(key)
        self._wanted = tuple(wanted)

    @cached_property
    def _one(self) -> Statement:
        return Statement(select(*self._wanted).where(*(column == bindparam(column.name) for column in self._key)))

    @cached_property
    def _many(self) -> str:
        table = self._key[0].table.name
        names = ", ".join(column.name for column in self._key)
        equal = " AND ".join(f"{table}.{column.name} = asked.{column.name}" for column in self._key)
        wanted = ", ".join(f"{column.table.name}.{column.name}" for column in self._wanted)
        return f"SELECT {wanted} FROM unnest({_arrays(self._key)}) AS asked ({names}) JOIN {table} ON {equal}"

    def read(self, connection: Connection, keys: Iterable[tuple[Any, ...]]) -> list[Row]:
        """Rows of all these keys, in no order. No key may stand there twice."""
        asked = list(keys)
        if not asked:
            return []
        if connection.dialect.name == "postgresql":
            rows: list[Row] = run(connection, self._many, _turned(self._key, asked)).fetchall()
            return rows
        names = [column.name for column in self._key]
        return [row for key in asked for row in self._one.all(connection, dict(zip(names, key, strict=True)))]


class Insertion:
    """Inserts into some columns of a table. What another writer inserted first is left as it is."""

    def __init__(self, columns: Sequence[Column[Any]]) -> None:
        self._columns = tuple(columns)
        self._table = columns[0].table

    @cached_property
    def _into(self) -> str:
        return f"INSERT INTO {self._table.name} ({', '.join(column.name for column in self._columns)})"

    def put(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in their order."""
        if not rows:
            return
        if connection.dialect.name == "postgresql":
            run(connection, self._over_arrays, _turned(self._columns, rows))
            return
        for row in rows:
            run(connection, self._one_row, row)

    def counted(self, connection: Connection, rows: Sequence[Sequence[Any]], by: int) -> list[tuple[Any, ...]]:
        """Insert rows in their order; gives the first ``by`` values and the number of each that was inserted."""
        if not rows:
            return []
        if connection.dialect.name == "postgresql":
            names = ", ".join(column.name for column in self._columns[:by])
            sql = f"{self._over_arrays} RETURNING {names}, seq"
            made: list[tuple[Any, ...]] = run(connection, sql, _turned(self._columns, rows)).fetchall()
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
