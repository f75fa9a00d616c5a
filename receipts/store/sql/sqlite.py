"""SQLite: one writer at a time, and a statement that costs next to nothing, so that each is run for itself."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Integer, String, Table, bindparam, column, func, select
from sqlalchemy import table as sqlalchemy_table
from sqlalchemy.exc import DBAPIError, OperationalError

from receipts.store.sql.guards import sqlite_triggers, triggers_by_name
from receipts.store.sql.statement import Ask, Row, Rows, SqlStatement, driver_of, run

if TYPE_CHECKING:
    from receipts.store.sql import Insertion, Lookup

BUSY_SECONDS: Final = 30
# Taking the write lock first means that a writer waits for another, and never fails half-way.
BEGIN: Final = {False: "BEGIN", True: "BEGIN IMMEDIATE"}
WRITES: Final = "receipts_writes"  # the option of a connection that says which
_GIVEN: Final = sqlalchemy_table("sqlite_sequence", column("name", String), column("seq", Integer))


class Sqlite:
    """What SQLite does in its own way; `Postgres` has the same methods."""

    # Whether numbers are left out where nothing was deleted.
    numbers_skip: Final = False

    # Expressions

    def among(self, target: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """That a column has one of some values: one parameter, so that a statement is the same however many."""
        return self._in(target, json.dumps(values))

    def among_named(self, target: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """The same of values that a `SqlStatement` is given under a name, by `values`."""
        return self._in(target, bindparam(name))

    def _in(self, target: ColumnElement[Any], text: Any) -> ColumnElement[bool]:
        each = func.json_each(text).table_valued("value")
        return target.in_(select(each.c.value))

    def values(self, some: Sequence[Any]) -> Any:
        """Values as a parameter of `among_named`."""
        return json.dumps(some)

    def day(self, moment: ColumnElement[Any]) -> ColumnElement[Any]:
        """The day of a moment, in UTC."""
        return func.date(moment)

    # Statements

    def together(self, connection: Connection, asks: Sequence[Ask], *, end: bool = False) -> list[list[Row]]:
        """The rows of several queries. ``end`` ends the transaction where that spares a round trip."""
        return [statement.all(connection, given) for statement, given in asks]

    def write(self, connection: Connection, tables: Sequence[Rows], *, end: bool) -> None:
        """Insert rows of several tables, in their order; ``end`` as in `together`."""
        filled = [(statement.compiled(connection.dialect), rows) for statement, rows in tables if rows]
        with driver_of(connection, "INSERT") as driver:
            for compiled, rows in filled:
                if len(rows) == 1:
                    driver.execute(compiled.sql, compiled.bound(rows[0]))
                else:
                    driver.executemany(compiled.sql, map(compiled.bound, rows))

    def look_up(
        self, connection: Connection, lookup: Lookup, keys: Sequence[Sequence[Any]], limit: int | None
    ) -> list[Row]:
        """Rows of each key."""
        names = [f"key{at}" for at in range(len(lookup.key))]
        if "sqlite" not in lookup.prepared:
            binds = [bindparam(name, type_=column.type) for name, column in zip(names, lookup.key, strict=True)]
            lookup.prepared["sqlite"] = SqlStatement(lookup.of(binds)).compiled(connection.dialect)
        compiled = lookup.prepared["sqlite"]
        places = [compiled.order.index(name) for name in names]
        fixed: Mapping[str, Any] = {**compiled.constants, "most": limit}
        parameters = [fixed.get(name) for name in compiled.order]

        def each() -> Iterator[list[Any]]:
            for key in keys:
                for place, value in zip(places, key, strict=True):
                    parameters[place] = value
                yield parameters

        with driver_of(connection, compiled.sql) as driver:
            return [row for values in each() for row in driver.execute(compiled.sql, values)]

    def insert_counted(
        self, connection: Connection, into: Insertion, rows: Sequence[Sequence[Any]], by: int
    ) -> list[Row]:
        """Insert rows in their order, but for those whose key is taken; see `Insertion.counted`."""
        sql = f"{into.into} VALUES ({', '.join('?' * len(into.columns))}) ON CONFLICT DO NOTHING"
        inserted = []
        for row in rows:
            cursor = run(connection, sql, row)
            if cursor.rowcount:
                inserted.append((*row[:by], cursor.lastrowid))
        return inserted

    # Transactions

    @contextmanager
    def at_once(self, engine: Engine, *, writes: bool) -> Iterator[Connection]:
        """A transaction of a few statements that the driver runs, for a caller that waits for each."""
        with engine.connect().execution_options(**{WRITES: writes}) as connection, connection.begin():
            yield connection

    def snapshot(self, connection: Connection) -> Connection:
        """A connection whose next transaction reads one state of the store, however long it takes."""
        return connection

    def user(self, connection: Connection) -> str:
        """Who the database knows this as: nobody, because a file knows no users."""
        return ""

    def lock(self, connection: Connection, *, alone: bool) -> None:
        """Keep writers apart. There is one writer anyway."""

    def asks_locked(self, *, alone: bool) -> list[Ask]:
        """`lock` as the first of what is asked together."""
        return []

    def numbers(self, tables: Sequence[Any], count: int) -> Ask:
        """A question for the next ``count`` numbers of some tables: a row each. SQLite keeps what it gave last."""
        return _numbers(tuple(tables)), {"steps": json.dumps(list(range(1, count + 1)))}

    def ends_on_error(self, error: Exception) -> bool:
        """Whether a transaction can go on after an error."""
        return False

    # Schema

    def prepare(self, engine: Engine) -> None:
        """Set the journal mode, which the file keeps. It needs the file alone for a moment."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                with engine.connect() as connection:
                    self._raw(connection, "PRAGMA journal_mode = WAL")
                    return
            except Exception as error:  # sqlite3 is asked directly: a journal mode cannot be set in a transaction
                if "locked" not in str(error) or time.monotonic() > until:
                    raise OperationalError("PRAGMA journal_mode", None, error) from error
                time.sleep(0.01)

    def lock_schema(self, connection: Connection) -> None:
        """Let one migrator in at a time. There is one writer anyway."""

    def create_triggers(self, connection: Connection) -> None:
        """Create the triggers of all tables."""
        for statement in sqlite_triggers():
            connection.exec_driver_sql(statement)

    def wrong_triggers(self, connection: Connection) -> set[str]:
        """Triggers that are missing, or are not what the DDL makes."""
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        there: dict[str, str] = {row.name: row.sql for row in connection.exec_driver_sql(query)}
        return {name for name, text in triggers_by_name(sqlite_triggers()).items() if there.get(name) != text}

    def damage(self, connection: Connection) -> Iterator[str]:
        """What the engine finds wrong in its own files, in sentences."""
        for row in connection.exec_driver_sql("PRAGMA integrity_check(10)"):
            if row[0] != "ok":
                yield f"the file is damaged: {row[0]}; restore a backup"
        for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            which = "a row" if row[1] is None else f"row {row[1]}"  # tables without row numbers have none
            yield f"{which} of {row[0]} refers to a row of {row[2]} that is not there; restore a backup"

    def size(self, connection: Connection) -> int:
        """Bytes of the database, without its log."""
        pages, each = (connection.exec_driver_sql(f"PRAGMA page_{name}").scalar_one() for name in ("count", "size"))
        return int(pages) * int(each)

    def number_on(self, connection: Connection, table: Table, last: int) -> None:
        """Let the next row of a table have the number after this one."""
        if table.dialect_options["sqlite"]["autoincrement"]:
            run(connection, "DELETE FROM sqlite_sequence WHERE name = ?", [table.name])
            run(connection, "INSERT INTO sqlite_sequence VALUES (?, ?)", [table.name, last])

    def overwrite_deleted(self, engine: Engine) -> None:
        """Write zeros over what the next transaction deletes."""
        with engine.connect() as connection:
            self._raw(connection, "PRAGMA secure_delete = ON")

    def erase(self, engine: Engine, tables: Sequence[str]) -> None:
        """See that deleted rows leave the files, as far as the engine lets this user."""
        with engine.connect() as connection:
            # Readers of an older state hold the log back; the next checkpoint without them takes it.
            self._raw(connection, "PRAGMA wal_checkpoint(TRUNCATE)")

    def _raw(self, connection: Connection, statement: str) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(statement)


@cache
def _numbers(tables: Sequence[Any]) -> SqlStatement:
    given = (select(func.max(_GIVEN.c.seq)).where(_GIVEN.c.name == table.name).scalar_subquery() for table in tables)
    step = func.json_each(bindparam("steps")).table_valued(column("value", Integer))
    return SqlStatement(select(*(func.coalesce(last, 0) + step.c.value for last in given)))


def is_busy(error: DBAPIError) -> bool:
    """Whether the same work may succeed the next time."""
    text = str(error.orig)
    return "UNIQUE constraint" in text or "replace refused" in text or "locked" in text or "busy" in text
