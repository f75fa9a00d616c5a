"""The lock that writers share, and that whoever must not pass by another takes alone."""

from __future__ import annotations

from typing import Final

from sqlalchemy import func, select, true

from receipts.store.statement import Driven, Statement

# Any number will do, so long as every version of the program takes the same one; schema.py takes another.
_KEY: Final = 0x7265636569707475
# Who writes looks up what it needs. A plan made while a table was small would read all of it, and a load keeps its
# plans while the tables grow.
_LOOK_UP: Final = func.set_config("enable_seqscan", "off", true())
ALONE: Final = Statement(select(func.pg_advisory_xact_lock(_KEY), _LOOK_UP))
TOGETHER: Final = Statement(select(func.pg_advisory_xact_lock_shared(_KEY), _LOOK_UP))


def lock(connection: Driven, *, alone: bool) -> None:
    """Keep a receipt that replaces others apart from all that are just coming in, so that neither misses the other.

    SQLite has one writer anyway. On PostgreSQL writers pass side by side, and one that replaces waits for them.
    """
    if connection.dialect.name == "postgresql":
        (ALONE if alone else TOGETHER).run(connection, {})
