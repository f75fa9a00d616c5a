"""Statements as the driver runs them: declared in Core, compiled once a dialect, run on the driver's own connection.

A training job waits for its submit, which is a dozen small statements. Core's execution takes several times as long
over each as SQLite does; the columns, the types and the dialect's SQL that it is needed for are asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect, Float, Insert, Select, Table, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import CompoundSelect

Convert = Callable[[Any], Any]
Row = tuple[Any, ...]


class CompiledSql(NamedTuple):
    """A statement in one dialect. ``order`` is None where its parameters go by name."""

    sql: str
    order: Sequence[str] | None
    constants: Mapping[str, Any]
    to_driver: Sequence[tuple[str, Convert]]
    from_driver: Sequence[tuple[int, Convert]]

    def named(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Parameters by their names, in the driver's types."""
        values = {**self.constants, **given}
        for name, convert in self.to_driver:
            values[name] = convert(values[name])
        return values

    def bound(self, given: Mapping[str, Any]) -> Mapping[str, Any] | Sequence[Any]:
        """Parameters as the driver takes them."""
        values = self.named(given)
        return values if self.order is None else list(map(values.__getitem__, self.order))

    def read(self, cursor: Any) -> list[Row]:
        """What a query gave, in Python's types."""
        rows: list[Row] = cursor.fetchall()
        for at, convert in self.from_driver:
            rows = [(*row[:at], convert(row[at]), *row[at + 1 :]) for row in rows]
        return rows


Declared = Select[Any] | CompoundSelect[Any] | Insert


class SqlStatement:
    """A query, or the insert of one row, under its parameters' names.

    It may be declared for each engine: by a function that is called with a `Sqlite` or a `Postgres`.
    """

    def __init__(self, declared: Declared | Callable[[Any], Declared], parameters: Iterable[str] = ()) -> None:
        self.declared = declared
        self.parameters = list(parameters)
        self._compiled: dict[str, CompiledSql] = {}

    @classmethod
    def insert(cls, table: Table, *, numbered: bool = False) -> SqlStatement:
        """The insert of a row that gives every column; a number that the store counts only where it is ``numbered``."""
        given = [column.key for column in table.columns if numbered or column is not table.autoincrement_column]
        return cls(insert(table), given)

    def run(self, connection: Connection, given: Mapping[str, Any]) -> Any:
        """Run it; gives the driver's cursor."""
        compiled = self.compiled(connection.dialect)
        return run(connection, compiled.sql, compiled.bound(given))

    def all(self, connection: Connection, given: Mapping[str, Any]) -> list[Row]:
        """Every row of a query."""
        return self.compiled(connection.dialect).read(self.run(connection, given))

    def compiled(self, dialect: Dialect) -> CompiledSql:
        """The statement in a dialect."""
        if dialect.name in self._compiled:
            return self._compiled[dialect.name]
        from receipts.store.sql import engine_of_name

        declares = self.declared
        declared = declares if isinstance(declares, ClauseElement) else declares(engine_of_name(dialect.name))
        compiled = declared.compile(dialect=dialect, column_keys=self.parameters or None)
        assert isinstance(compiled, SQLCompiler)
        types = {name: bind.type for name, bind in compiled.binds.items()}
        columns = [] if isinstance(declared, Insert) else [item.type for item in declared.selected_columns]
        into = {name: kind.dialect_impl(dialect).bind_processor(dialect) for name, kind in types.items()}
        # A float comes from both drivers as it is; psycopg's converter would ask for a type that no row has told yet.
        back = [
            None if isinstance(kind, Float) else kind.dialect_impl(dialect).result_processor(dialect, None)
            for kind in columns
        ]
        self._compiled[dialect.name] = CompiledSql(
            sql=str(compiled),
            order=compiled.positiontup,
            # What is always given need not be put in and overwritten.
            constants={name: value for name, value in compiled.params.items() if not compiled.binds[name].required},
            to_driver=[(name, convert) for name, convert in into.items() if convert is not None],
            from_driver=[(at, convert) for at, convert in enumerate(back) if convert is not None],
        )
        return self._compiled[dialect.name]


def run(connection: Connection, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Any:
    """Run a statement on the driver's connection; gives its cursor. Raises SQLAlchemy's DBAPIError, as Core does."""
    with driver_of(connection, sql) as driver:
        return driver.execute(sql, values)


@contextmanager
def driver_of(connection: Connection, sql: str) -> Iterator[Any]:
    """The driver's own connection, its errors as SQLAlchemy's."""
    driver, errors = connection.connection.driver_connection, connection.dialect.loaded_dbapi.Error
    assert driver is not None
    try:
        yield driver
    except errors as error:
        raise DBAPIError.instance(sql, None, error, errors, dialect=connection.dialect) from error


Ask = tuple[SqlStatement, Mapping[str, Any]]
Rows = tuple[SqlStatement, Sequence[Mapping[str, Any]]]
