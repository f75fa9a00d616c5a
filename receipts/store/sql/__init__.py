"""What the engines do each in their own way: two classes with one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from receipts.store.sql.postgres import Postgres
from receipts.store.sql.sqlite import Sqlite

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


_ENGINES: Final[dict[str, Sqlite | Postgres]] = {"sqlite": Sqlite(), "postgresql": Postgres()}


def engine_of(connection: Connection | Engine) -> Sqlite | Postgres:
    """The engine of a connection."""
    return engine_of_name(connection.dialect.name)


def engine_of_name(name: str) -> Sqlite | Postgres:
    """The engine of a dialect."""
    return _ENGINES[name]
