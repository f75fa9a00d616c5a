"""The lock that writers share, and that whoever must not pass by another takes alone."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select

from receipts.store.statement import Statement

# Any number will do, so long as every version of the program takes the same one; schema.py takes another.
_KEY: Final = 0x7265636569707475
ALONE: Final = Statement(select(func.pg_advisory_xact_lock(_KEY)))
TOGETHER: Final = Statement(select(func.pg_advisory_xact_lock_shared(_KEY)))


def lock(connection: Connection, *, alone: bool) -> None:
    """Keep a receipt that replaces others apart from all that are just coming in, so that neither misses the other.

    SQLite has one writer anyway. On PostgreSQL writers pass side by side, and one that replaces waits for them.
    """
    if connection.dialect.name == "postgresql":
        (ALONE if alone else TOGETHER).run(connection, {})
