"""The engines, SQLite and PostgreSQL: two classes with one interface, and many rows at once on either.

A `Lookup` looks up many keys, each in the key's index. An `Insertion` leaves what another writer inserted first as it
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Integer, Select, Table, bindparam, func, select

from receipts.store.sql.postgres import Postgres
from receipts.store.sql.sqlite import Sqlite
from receipts.store.sql.statement import Row

if TYPE_CHECKING:
    from sqlalchemy import Engine


_ENGINES: Final[dict[str, Sqlite | Postgres]] = {"sqlite": Sqlite(), "postgresql": Postgres()}


def engine_of(connection: Connection | Engine) -> Sqlite | Postgres:
    """The engine of a connection."""
    return engine_of_name(connection.dialect.name)


def engine_of_name(name: str) -> Sqlite | Postgres:
    """The engine of a dialect."""
    return _ENGINES[name]


def distinct_texts(target: Column[Any]) -> Select[Any]:
    """The distinct texts of an indexed column, in order: a look-up each, however many rows."""
    walk = select(func.min(target).label("text")).cte("walk", recursive=True)
    following = select(func.min(target)).where(target > walk.c.text).scalar_subquery()
    walk = walk.union_all(select(following).where(walk.c.text.is_not(None)))
    return select(walk.c.text).where(walk.c.text.is_not(None))


class Lookup:
    """Rows whose key columns have given values, for many values: each is a look-up in the key's index.

    ``where`` is a further condition, ``joined`` what the key's table is joined to, and on what. ``newest`` are
    columns by which, descending, the first few rows of each key are taken.
    """

    def __init__(
        self,
        key: Sequence[Column[Any]],
        wanted: Sequence[Column[Any]],
        *,
        joined: tuple[Table, ColumnElement[bool]] | None = None,
        where: ColumnElement[bool] | None = None,
        newest: Sequence[Column[Any]] = (),
    ) -> None:
        self.key = tuple(key)
        self.limited = bool(newest)
        query = select(*wanted).select_from(key[0].table)
        query = query.join(*joined) if joined is not None else query
        query = query.where(where) if where is not None else query
        if newest:
            query = query.order_by(*(column.desc() for column in newest)).limit(bindparam("most", type_=Integer()))
        self._query = query
        self.prepared: dict[str, Any] = {}  # what an engine made of it, by the engine's name

    def of(self, values: Sequence[ColumnElement[Any]]) -> Select[Any]:
        """The query for one key."""
        return self._query.where(*(column == value for column, value in zip(self.key, values, strict=True)))

    def read(self, connection: Connection, keys: Iterable[Sequence[Any]], limit: int | None = None) -> list[Row]:
        """Rows of all these keys; with ``newest``, at most ``limit`` of each. No key may occur twice."""
        wanted = list(keys)
        return engine_of(connection).look_up(connection, self, wanted, limit) if wanted else []


class Insertion:
    """Inserts into some columns of a table. What another writer inserted first is left as it is."""

    def __init__(self, columns: Sequence[Column[Any]]) -> None:
        self.columns = tuple(columns)
        self.into = f"INSERT INTO {columns[0].table.name} ({', '.join(column.name for column in columns)})"

    def counted(self, connection: Connection, rows: Sequence[Sequence[Any]], by: int) -> list[Row]:
        """Insert rows in their order; gives the first ``by`` values and the number of each that was inserted."""
        return engine_of(connection).insert_counted(connection, self, rows, by) if rows else []
