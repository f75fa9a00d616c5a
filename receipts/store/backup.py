"""Backups: a whole store in one SQLite file, taken while writers are active, and a store restored from one.

From SQLite the pages are copied as one state of the file (SQLite's backup API). From PostgreSQL every row is read in
one snapshot and written into a SQLite store with its number, so that seals hold and one engine's backup can be
restored on the other; rows go into PostgreSQL by COPY. A backup is checked before it gets its name, and never
replaces another file unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Table, func, insert, inspect, select

from receipts.base import files
from receipts.base.errors import StoreError, UsageError
from receipts.emit.files import file_mode, make_folder
from receipts.store import schema
from receipts.store.address import Address, address
from receipts.store.database import connect, opened, snapshot, writing
from receipts.store.entries import AT_ONCE, unpack
from receipts.store.sql import engine_of
from receipts.store.tables import HEAD, documents, erased, metadata, receipts, version


def copy_pages(engine: Engine, file: Path, journal: str = "DELETE") -> None:
    """All pages of a SQLite store into a file, in one state. Raises StoreError.

    The file keeps its ``journal`` mode: with *DELETE* it is one file, without a log beside it.
    """
    import sqlite3

    target = sqlite3.connect(file, isolation_level=None)
    try:
        with engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            raw.backup(target)  # all pages in one step: one state, and in a WAL no writer waits for it
        target.execute(f"PRAGMA journal_mode = {journal}")
    except sqlite3.Error as error:
        raise StoreError(f"{file}: the copy failed ({error}); check the store with: receipts audit") from error
    finally:
        target.close()


def copy_rows(engine: Engine, file: Path) -> None:
    """All rows of a store on a server into a new SQLite store, in one state, each with its number."""
    target = connect(address(str(file)))
    try:
        with snapshot(engine) as old, writing(target) as new:
            metadata.create_all(new, checkfirst=False)
            version.create(new)
            for table in metadata.sorted_tables:
                for rows in _rows(old, table):
                    new.execute(insert(table), rows)
            _finish(new)
    finally:
        target.dispose()


class Copied(NamedTuple):
    """A copy that was made and checked: its place, the store's id, and how many rows."""

    place: str
    store: str
    receipts: int
    rows: int


def backup(source: Address, file: Path, *, force: bool = False) -> Copied:
    """Write the whole store into a file, in one state of it; there all of it or nothing.

    Raises UsageError where the file is there already and ``force`` is not given, StoreError where the store cannot be
    read, the file not be written, or the copy is not whole.
    """
    if file.is_dir():
        raise UsageError(f"{file}: this is a folder; name a file in it")
    if file.exists() and not force:
        raise UsageError(f"{file}: there is a file already; name another, or replace it with --force")
    if source.file is not None and file.exists() and file.samefile(source.file):
        raise UsageError(f"{file}: this is the store itself; name another file")
    schema.must_exist(source)
    with opened(source) as engine, _beside(file, force=force) as staged:
        schema.ensure(engine, source, create=False)
        if source.file is not None:
            copy_pages(engine, staged)
        else:
            copy_rows(engine, staged)
        return _checked(staged, file)


@contextmanager
def _beside(file: Path, *, force: bool) -> Iterator[Path]:
    """A file to be written beside another, which takes its name when all is on the disk."""
    if not file.parent.is_dir():
        raise UsageError(f"{file} cannot be written: there is no folder {file.parent}")
    try:
        with files.staged(file, over=force, mode=file_mode(file.parent)) as staged:
            try:
                yield staged
            finally:
                for end in ("-wal", "-shm", "-journal"):
                    staged.with_name(staged.name + end).unlink(missing_ok=True)
    except FileExistsError:
        raise UsageError(f"{file}: there is a file already; name another, or replace it with --force") from None
    except OSError as error:
        raise StoreError(f"{file}: it cannot be written ({error.strerror}); name a place that can") from None


def _finish(connection: Connection) -> None:
    """Triggers when the rows are in: they would look at each of them, and refuse a store's second id."""
    engine = engine_of(connection)
    engine.create_triggers(connection)
    for table in metadata.sorted_tables:
        if "seq" in table.c:
            gone = select(func.max(erased.c.number)).where(erased.c.what == table.name)
            given = select(func.max(table.c.seq)).union_all(gone)
            last = max((number for number in connection.execute(given).scalars() if number is not None), default=0)
            if last:
                engine.number_on(connection, table, last)
    connection.execute(insert(version).values(version_num=HEAD))


def _rows(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    query = select(table).order_by(*table.primary_key.columns)
    streamed = connection.execution_options(yield_per=AT_ONCE).execute(query)
    for part in streamed.mappings().partitions():
        yield [dict(row) for row in part]


def _checked(file: Path, name: object) -> Copied:
    """What a file holds, under the name that it is to have. Raises StoreError where it is no whole store."""
    place = address(str(file))
    state = schema.check(place)
    problems = [item for item in state.problems if state.found == state.wanted]
    if problems:
        raise StoreError(f"{name}: it was not made, because the store is not whole: {problems[0]}; see: receipts audit")
    with opened(place) as engine, engine.connect() as connection:
        there = set(inspect(connection).get_table_names())
        count = select(func.count())
        rows = {
            table.name: connection.execute(count.select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table.name in there
        }
        store = schema.own_id(connection)
        # Every document against its id. SQLite notices a damaged page, and not a flipped bit in a value. Raises
        # StoreError where one is damaged: a copy of damage is found when the original is gone.
        query = select(receipts.c.id, documents.c.codec, documents.c.body).join(
            documents, documents.c.receipt == receipts.c.seq
        )
        for row in connection.execution_options(yield_per=AT_ONCE).execute(query):
            raw = unpack(row.codec, row.body, f"{name}: it was not made: receipt {row.id[:12]}")
            if sha256(raw).hexdigest() != row.id:
                what = f"receipt {row.id[:12]} is damaged in the store"
                raise StoreError(
                    f"{name}: it was not made, because {what}; restore an earlier backup (see: receipts audit)"
                )
    return Copied(str(name), store, rows[receipts.name], sum(rows.values()))


def restore(file: Path, target: Address, audit: Callable[[Address], object] = lambda _place: None) -> Copied:
    """Make a store of a backup, with the same id and the same numbers, where there is none; all of it or nothing.

    ``audit`` looks over what is to become the store before it has its name, and raises where something is not as it
    was written: a document's digest does not show that a verdict was changed. Raises UsageError where there is a store
    already, StoreError where the file is no whole backup.
    """
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file; name one that receipts backup wrote")
    if target.file is not None and target.file.exists() and target.file.stat().st_size:
        raise UsageError(f"{target}: there is a store already; restore into a file that is not there: --store FILE")
    if target.file is not None and target.standing:
        make_folder(target.file.parent)
    place = address(str(file))
    with opened(place) as old:
        schema.ensure(old, place, create=False)
        if target.file is not None:
            with _beside(target.file, force=target.file.exists()) as staged:
                copy_pages(old, staged, journal="WAL")  # the mode that a store has
                copied = _checked(staged, target)
                audit(address(str(staged)))
                return copied
        copied = _checked(file, target)
        audit(place)
        with opened(target) as new, snapshot(old) as source, writing(new) as connection:
            engine_of(connection).lock_schema(connection)
            if inspect(connection).get_table_names():
                raise UsageError(f"{target}: the database holds tables already; restore into an empty one")
            metadata.create_all(connection, checkfirst=False)
            version.create(connection)
            for table in metadata.sorted_tables:
                _copy_in(connection, table, chain.from_iterable(_rows(source, table)))
            _finish(connection)
    return copied


def _copy_in(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows into PostgreSQL by COPY."""
    driver: Any = connection.connection.driver_connection
    names = [column.name for column in table.columns]
    columns = ", ".join(f'"{name}"' for name in names)
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({columns}) FROM STDIN') as stream:
        for row in rows:
            stream.write_row([row[name] for name in names])
