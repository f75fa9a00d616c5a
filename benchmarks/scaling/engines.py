"""The two engines: what one raw SELECT takes, how large a store is, and the same rows on PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Table, func, select

from receipts.store import open_store
from receipts.store.tables import metadata, receipts

_ROW = "SELECT * FROM receipts WHERE seq = "
_ITS_OWN = ("stores",)


def sqlite_floor(path: Path) -> Callable[[int], object]:
    """One row of a receipt by its number, by sqlite3 alone."""
    connection = sqlite3.connect(path)
    return lambda number: connection.execute(f"{_ROW}?", (number,)).fetchone()


def postgresql_floor(url: str) -> Callable[[int], object]:
    """One row of a receipt by its number, by psycopg alone."""
    import psycopg

    connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    return lambda number: connection.execute(f"{_ROW}%s".encode(), (number,)).fetchone()


def sqlite_bytes(path: Path) -> int:
    """Bytes of a store's file, with all that waited in its log."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return path.stat().st_size


def server_clock(url: str) -> Callable[[], float]:
    """Seconds of CPU that a server's processes took for this database so far; 0 where the kernel does not tell."""
    import psycopg

    side = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    query = b"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    def taken() -> float:
        schedules = [Path(f"/proc/{pid}/schedstat") for (pid,) in side.execute(query)]
        return sum(int(one.read_text().split()[0]) for one in schedules if one.exists()) / 1e9

    return taken


def count(url: str) -> int:
    """How many receipts a store holds."""
    with open_store(url, create=False) as store, store.database.reading() as connection:
        found: int = connection.execute(select(func.count()).select_from(receipts)).scalar_one()
        return found


def copy(path: Path, url: str) -> None:
    """Every row of a SQLite store into an empty store of PostgreSQL, by COPY, with its indexes in place."""
    import psycopg

    with open_store(url), psycopg.connect(url.replace("+psycopg", "")) as server:
        for table in metadata.sorted_tables:
            if table.name in _ITS_OWN:
                continue
            names = ", ".join(column.name for column in table.columns)
            with server.cursor() as cursor, cursor.copy(f"COPY {table.name} ({names}) FROM STDIN".encode()) as stream:
                for row in _rows(path, table):
                    stream.write_row(row)
            if table.autoincrement_column is not None:
                last = f"(SELECT coalesce(max(seq), 0) + 1 FROM {table.name})"
                server.execute(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), {last}, false)".encode())
        server.commit()
        server.autocommit = True
        server.execute(b"VACUUM ANALYZE")


def _rows(path: Path, table: Table) -> Iterator[Any]:
    with open_store(str(path), create=False) as store, store.database.reading() as connection:
        yield from connection.execution_options(yield_per=5000).execute(
            select(table).order_by(*table.primary_key.columns)
        )
