"""PostgreSQL: writers side by side, and a round trip that costs more than most statements, so that they share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Insert,
    Integer,
    String,
    Table,
    any_,
    bindparam,
    func,
    select,
    text,
    true,
)
from sqlalchemy.exc import DBAPIError

from receipts.store.sql.guards import function_bodies, postgres_triggers, triggers_by_name
from receipts.store.sql.statement import Ask, Row, Rows, SqlStatement, driver_of, run

if TYPE_CHECKING:
    from receipts.store.sql import Insertion, Lookup

# Rows of one table from which on COPY is quicker than so many inserts in one round trip.
COPIED: Final = 20
_IDLE: Final = 0  # libpq's PQTRANS_IDLE: no transaction has begun
# Any numbers will do, so long as every version of the program takes the same ones.
_SCHEMA: Final = 0x7265636569707473
_KEY: Final = 0x7265636569707475
_ALONE: Final = SqlStatement(select(func.pg_advisory_xact_lock(_KEY)))
_TOGETHER: Final = SqlStatement(select(func.pg_advisory_xact_lock_shared(_KEY)))


class Postgres:
    """What PostgreSQL does in its own way; `Sqlite` has the same methods."""

    # A submit that is refused or repeated has taken numbers that no row gets.
    numbers_skip: Final = True

    # Expressions

    def among(self, target: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """That a column has one of some values: one parameter, so that a statement is the same however many."""
        return target == any_(bindparam(None, values, type_=ARRAY(_plain(target))))

    def among_named(self, target: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """The same of values that a `SqlStatement` is given under a name, by `values`."""
        return target == any_(bindparam(name, type_=ARRAY(_plain(target))))

    def values(self, some: Sequence[Any]) -> Any:
        """Values as a parameter of `among_named`."""
        return list(some)

    def day(self, moment: ColumnElement[Any]) -> ColumnElement[Any]:
        """The day of a moment, in UTC."""
        return func.date(func.timezone("UTC", moment))

    # Statements

    def together(self, connection: Connection, asks: Sequence[Ask], *, end: bool = False) -> list[list[Row]]:
        """The rows of several queries, in one round trip. ``end`` ends the transaction with it."""
        compiled = [(statement.compiled(connection.dialect), given) for statement, given in asks]
        with driver_of(connection, "; ".join(one.sql for one, _ in compiled)) as driver, _pipeline(driver):
            if driver.autocommit and driver.info.transaction_status == _IDLE:
                driver.execute("BEGIN")
            cursors = [driver.execute(one.sql, one.bound(given)) for one, given in compiled]
            if end:
                driver.execute("COMMIT")
        return [
            one.read(cursor) if cursor.description else [] for (one, _), cursor in zip(compiled, cursors, strict=True)
        ]

    def write(self, connection: Connection, tables: Sequence[Rows], *, end: bool) -> None:
        """Insert rows of several tables, in their order, in one round trip, many by COPY; ``end`` commits with it."""
        few: list[Rows] = []
        for statement, rows in tables:
            # COPY takes rows as they are given, and none out of a query.
            declared = statement.declared
            if len(rows) >= COPIED and isinstance(declared, Insert) and declared.select is None:
                self._copy(connection, statement, rows)
            else:
                few.append((statement, rows))
        compiled = [(statement.compiled(connection.dialect), rows) for statement, rows in few]
        with driver_of(connection, "; ".join(one.sql for one, _ in compiled)) as driver, _pipeline(driver):
            for one, rows in compiled:
                for row in rows:
                    driver.execute(one.sql, one.bound(row))
            if end:
                driver.execute("COMMIT")  # and not `commit`, which waits for an answer of its own

    def _copy(self, connection: Connection, statement: SqlStatement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows; triggers and constraints hold as they do of an insert."""
        assert isinstance(statement.declared, Insert)
        sql = f"COPY {statement.declared.table} ({', '.join(statement.parameters)}) FROM STDIN"
        named = statement.compiled(connection.dialect).named
        with driver_of(connection, sql) as driver, driver.cursor() as cursor, cursor.copy(sql) as stream:
            for row in rows:
                values = named(row)
                stream.write_row([values[name] for name in statement.parameters])

    def look_up(
        self, connection: Connection, lookup: Lookup, keys: Sequence[Sequence[Any]], limit: int | None
    ) -> list[Row]:
        """Rows of each key: one statement over arrays."""
        if "postgresql" not in lookup.prepared:
            kinds = {f"key{at}": _plain(column) for at, column in enumerate(lookup.key)}
            arrays = (bindparam(name, type_=ARRAY(kind)) for name, kind in kinds.items())
            columns = (Column(name, kind) for name, kind in kinds.items())
            keyed = func.unnest(*arrays).table_valued(*columns, name="asked").render_derived()
            each = lookup.of(list(keyed.c)).correlate(keyed).lateral("found")
            lookup.prepared["postgresql"] = SqlStatement(select(*each.c).select_from(keyed.join(each, true())))
        given: dict[str, Any] = {f"key{at}": column for at, column in enumerate(zip(*keys, strict=True))}
        if lookup.limited:
            given["most"] = limit
        statement: SqlStatement = lookup.prepared["postgresql"]
        return statement.all(connection, given)

    def insert_counted(
        self, connection: Connection, into: Insertion, rows: Sequence[Sequence[Any]], by: int
    ) -> list[Row]:
        """Insert rows in their order, but for those whose key is taken; see `Insertion.counted`."""
        kinds = (_plain(column).compile(dialect=connection.dialect) for column in into.columns)
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
        names = ", ".join(column.name for column in into.columns[:by])
        sql = f"{into.into} SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING RETURNING {names}, seq"
        inserted: list[Row] = run(connection, sql, [list(values) for values in zip(*rows, strict=True)]).fetchall()
        return inserted

    # Transactions

    @contextmanager
    def at_once(self, engine: Engine, *, writes: bool) -> Iterator[Connection]:
        """A transaction of a few statements that the driver runs, for a caller that waits for each.

        It begins with the first `together` and may end with `write`, so that neither takes a round trip of its own;
        nothing else may be run before.
        """
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.autocommit = True  # the driver's word for: it begins no transaction by itself
            try:
                with connection.begin():
                    yield connection
            finally:
                if not driver.closed:
                    driver.autocommit = False

    def snapshot(self, connection: Connection) -> Connection:
        """A connection whose next transaction reads one state of the store, however long it takes."""
        return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def user(self, connection: Connection) -> str:
        """Who the database knows this as: the user that logged in, without a round trip."""
        driver: Any = connection.connection.driver_connection
        return str(driver.info.user)

    def lock(self, connection: Connection, *, alone: bool) -> None:
        """Keep writers apart that must not pass one another; others share the lock."""
        (_ALONE if alone else _TOGETHER).run(connection, {})

    def asks_locked(self, *, alone: bool) -> list[Ask]:
        """`lock` as the first of what is asked together."""
        return [(_ALONE if alone else _TOGETHER, {})]

    def numbers(self, tables: Sequence[Any], count: int) -> Ask:
        """A question for the next ``count`` numbers of some tables: a row each. One that is not used is left out."""
        return _numbers(tuple(table.name for table in tables)), {"count": count}

    def ends_on_error(self, error: Exception) -> bool:
        """Whether a transaction ends with an error."""
        return isinstance(error, DBAPIError)

    # Schema

    def prepare(self, engine: Engine) -> None:
        """Set what a database keeps of its engine: nothing."""

    def lock_schema(self, connection: Connection) -> None:
        """Let one migrator in at a time; released with the transaction."""
        connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA)))

    def create_triggers(self, connection: Connection) -> None:
        """Create the triggers of all tables."""
        for statement in postgres_triggers():
            connection.execute(text(statement))

    def wrong_triggers(self, connection: Connection) -> set[str]:
        """Triggers that are missing, disabled, or not what the DDL makes; so is one whose function was changed."""
        query = (
            "SELECT tgname, replace(pg_get_triggerdef(pg_trigger.oid), current_schema() || '.', ''), proname, prosrc "
            "FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid "
            "WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND relnamespace = current_schema()::regnamespace"
        )
        there = {name: rest for name, *rest in connection.execute(text(query))}
        every = list(postgres_triggers())
        bodies = function_bodies(every)
        return {
            name
            for name, wanted_text in triggers_by_name(every).items()
            # PostgreSQL writes the events of a trigger in an order of its own.
            if name not in there
            or sorted(there[name][0].split()) != sorted(wanted_text.split())
            or there[name][2] != bodies[there[name][1]]
        }

    def damage(self, connection: Connection) -> Iterator[str]:
        """What the engine finds wrong in its own files: a server sees to them itself."""
        yield from ()

    def size(self, connection: Connection) -> int:
        """Bytes of the database."""
        return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())

    def number_on(self, connection: Connection, table: Table, last: int) -> None:
        """Let the next row of a table have the number after this one."""
        connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "seq"), last)))

    def overwrite_deleted(self, engine: Engine) -> None:
        """Write zeros over what the next transaction deletes: see `erase`."""

    def erase(self, engine: Engine, tables: Sequence[str]) -> None:
        """See that deleted rows leave the files, as far as the engine lets this user."""
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in tables:
                connection.exec_driver_sql(f"VACUUM {table}")


def _plain(column: ColumnElement[Any]) -> Any:
    """A column's type, without its collation."""
    return String() if isinstance(column.type, String) else column.type


@cache
def _numbers(tables: Sequence[str]) -> SqlStatement:
    # A sequence's name is asked for once, and not for every number.
    sequences = (select(func.pg_get_serial_sequence(name, "seq")).scalar_subquery() for name in tables)
    count = bindparam("count", type_=Integer())
    return SqlStatement(select(*map(func.nextval, sequences)).select_from(func.generate_series(1, count)))


@contextmanager
def _pipeline(driver: Any) -> Iterator[None]:
    """One round trip of psycopg's. It would log what follows from an error as well; the error itself is raised."""
    first: Exception | None = None
    try:
        with driver.pipeline():
            try:
                yield
            except Exception as error:
                first = error
    except Exception:
        if first is None:
            raise
    if first is not None:
        raise first
