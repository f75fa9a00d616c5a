"""An open store's connection: one transaction a question, one a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from sqlalchemy import Connection, Engine

from receipts.base.errors import NotFound
from receipts.receipt import Parsed
from receipts.store.address import Address
from receipts.store.entries import Entry, entries, entry
from receipts.store.sql import engine_of
from receipts.store.sql.transactions import reading, snapshot, told, write
from receipts.store.tables import receipts

T = TypeVar("T")
Self = TypeVar("Self", bound="Connected")


class Connected:
    """What every part of a store stands on. Raises StoreError where the store cannot be reached, read or written."""

    def __init__(self, engine: Engine, place: Address) -> None:
        self._engine = engine
        self._address = place
        self._parsed: dict[str, Parsed] = {}
        self._state: Connection | None = None

    def __repr__(self) -> str:
        return f"Store({str(self._address)!r})"

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @property
    def url(self) -> str:
        """Where it is: a path, or a URL without its password."""
        return str(self._address)

    @property
    def full_url(self) -> str:
        """Its URL with the password, by which another process of the same user opens it: for no message."""
        return self._address.url.render_as_string(hide_password=False)

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """All that is read meanwhile is read from one state of the store, whoever writes; and without asking anew."""
        if self._state is not None:
            yield
            return
        with told(self._address), snapshot(self._engine) as connection:
            self._state = connection
            try:
                yield
            finally:
                self._state = None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._state is not None:
            with told(self._address):
                yield self._state
            return
        with told(self._address), reading(self._engine) as connection:
            yield connection

    def entry(self, receipt_id: str) -> Entry:
        """The row of a receipt. Raises NotFound."""
        with self._reading() as connection:
            row = connection.execute(entries().where(receipts.c.id == receipt_id)).first()
        if row is None:
            raise NotFound(f"there is no receipt {receipt_id[:12]}; see: receipts list")
        return entry(row)

    def _write(self, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        def locked(connection: Connection) -> T:
            engine_of(connection).lock(connection, alone=alone)  # no seal may pass by a row that is not seen yet
            return work(connection)

        with told(self._address):
            return write(self._engine, locked)
