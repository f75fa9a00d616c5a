"""Statements as the driver runs them: declared in Core, compiled once a dialect, run on the driver's own connection.

A training job waits for its submit, which is eight small statements. Core's execution takes several times as long over
each as SQLite does; the columns, the types and the dialect's SQL that it is needed for are asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect, Insert, Select, Table, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import CompoundSelect
from sqlalchemy.types import TypeEngine

Convert = Callable[[Any], Any]
Row = tuple[Any, ...]


class _Compiled(NamedTuple):
    """A statement in one dialect. ``order`` is None where its parameters go by name."""

    sql: str
    order: Sequence[str] | None
    constants: Mapping[str, Any]
    to_driver: Sequence[tuple[str, Convert]]
    from_driver: Sequence[tuple[int, Convert]]
    number_returned: bool

    def bound(self, given: Mapping[str, Any]) -> Mapping[str, Any] | Sequence[Any]:
        values = {**self.constants, **given}
        for name, convert in self.to_driver:
            values[name] = convert(values[name])
        return values if self.order is None else [values[name] for name in self.order]


class Statement:
    """A query, or the insert of one row, under its parameters' names."""

    def __init__(self, declared: Select[Any] | CompoundSelect[Any] | Insert, parameters: Iterable[str] = ()) -> None:
        self.declared = declared
        self._parameters = list(parameters)
        self._compiled: dict[str, _Compiled] = {}

    @classmethod
    def insert(cls, table: Table) -> Statement:
        """The insert of a row that gives every column but a number that the store counts."""
        return cls(insert(table), [column.key for column in table.columns if column is not table.autoincrement_column])

    def run(self, connection: Connection, given: Mapping[str, Any]) -> Any:
        """Run it; gives the driver's cursor."""
        compiled = self._for(connection.dialect)
        return run(connection, compiled.sql, compiled.bound(given))

    def all(self, connection: Connection, given: Mapping[str, Any]) -> list[Row]:
        """Every row of a query."""
        rows: list[Row] = self.run(connection, given).fetchall()
        for at, convert in self._for(connection.dialect).from_driver:
            rows = [(*row[:at], convert(row[at]), *row[at + 1 :]) for row in rows]
        return rows

    def add(self, connection: Connection, row: Mapping[str, Any]) -> int:
        """Insert a row; gives the number that the store counted for it."""
        cursor = self.run(connection, row)
        number: int = cursor.fetchone()[0] if self._for(connection.dialect).number_returned else cursor.lastrowid
        return number

    def _for(self, dialect: Dialect) -> _Compiled:
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        return found

    def _compile(self, dialect: Dialect) -> _Compiled:
        compiled = self.declared.compile(dialect=dialect, column_keys=self._parameters or None)
        assert isinstance(compiled, SQLCompiler)
        types = {name: bind.type for name, bind in compiled.binds.items()}
        columns = [] if isinstance(self.declared, Insert) else [item.type for item in self.declared.selected_columns]
        into = {name: _dialects(kind, dialect).bind_processor(dialect) for name, kind in types.items()}
        back = [_dialects(kind, dialect).result_processor(dialect, None) for kind in columns]
        return _Compiled(
            sql=str(compiled),
            order=compiled.positiontup,
            constants=compiled.params,
            to_driver=[(name, convert) for name, convert in into.items() if convert is not None],
            from_driver=[(at, convert) for at, convert in enumerate(back) if convert is not None],
            number_returned=bool(compiled.effective_returning),
        )


def _dialects(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def run(connection: Connection, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Any:
    """Run a statement on the driver's connection; gives its cursor. Raises SQLAlchemy's DBAPIError, as Core does."""
    driver, errors = connection.connection.driver_connection, connection.dialect.loaded_dbapi.Error
    assert driver is not None
    try:
        return driver.execute(sql, values)
    except errors as error:
        raise DBAPIError.instance(sql, None, error, errors, dialect=connection.dialect) from error
