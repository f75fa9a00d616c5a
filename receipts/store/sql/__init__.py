"""What the engines do each in their own way: two classes with one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from receipts.store.sql.postgres import Postgres
from receipts.store.sql.sqlite import Sqlite

if TYPE_CHECKING:
    from receipts.store.statement import Driven

_ENGINES: Final[dict[str, Sqlite | Postgres]] = {"sqlite": Sqlite(), "postgresql": Postgres()}


def engine_of(connection: Driven) -> Sqlite | Postgres:
    """The engine that a connection is of."""
    return _ENGINES[connection.dialect.name]
