"""Whole stores copied by what each engine has for it: SQLite's pages, PostgreSQL's COPY."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table

from receipts.base.errors import StoreError


def copy_pages(engine: Engine, file: Path) -> None:
    """All pages of a SQLite store into a file, in one state. Raises StoreError."""
    import sqlite3

    target = sqlite3.connect(file, isolation_level=None)
    try:
        with engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            raw.backup(target)  # all pages in one step: one state, and in a WAL no writer waits for it
        # One file, without a log beside it.
        target.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise StoreError(f"{file}: the copy failed ({error}); check the store with: receipts audit") from error
    finally:
        target.close()


def write_ahead(file: Path) -> None:
    """Set the journal mode that a store has; the file keeps it."""
    import sqlite3

    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def copy_in(connection: Connection, table: Table, parts: Iterator[list[dict[str, Any]]]) -> None:
    """Rows into PostgreSQL by COPY."""
    driver: Any = connection.connection.driver_connection
    names = [column.name for column in table.columns]
    listed = ", ".join(f'"{name}"' for name in names)
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({listed}) FROM STDIN') as stream:
        for rows in parts:
            for row in rows:
                stream.write_row([row[name] for name in names])
