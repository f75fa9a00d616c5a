"""Stores that are filled once a worker and copied for each test, on either engine."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from receipts.store import open_store

Fill = Callable[[str], None]


def no_receipts(url: str) -> None:
    """Make a store, and put nothing into it."""
    open_store(url).close()


class FileCopies:
    """Copies of SQLite stores. Those of one name have one content, and one id: two that shall meet are made apart."""

    def __init__(self, folder: Path) -> None:
        """``folder`` keeps the files that are copied."""
        self._folder = folder

    def file(self, to: Path, name: str, fill: Fill) -> str:
        """The URL of a copy at ``to``, which ``fill`` has put its content into."""
        kept = self._folder / f"{name}.sqlite"
        if not kept.exists():
            fill(f"sqlite:///{kept}")
            assert not kept.with_name(f"{kept.name}-wal").exists(), f"{name} was not closed"
        shutil.copyfile(kept, to)
        return f"sqlite:///{to}"


class DatabaseCopies:
    """The same on PostgreSQL, by its templates."""

    def __init__(self, server: str) -> None:
        """``server`` is the URL of any database of the server."""
        self._server = server
        self._databases: dict[str, str] = {}
        self._unused: list[str] = []

    @contextlib.contextmanager
    def database(self, name: str, fill: Fill) -> Iterator[str]:
        """The URL of a copy in a database of its own, dropped afterward."""
        if name not in self._databases:
            template = self._create()
            fill(self._url(template))
            self._databases[name] = template
        with self._lent(self._databases[name]) as made:
            yield made

    @contextlib.contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of a database without a table, dropped afterward."""
        with self._lent("template1") as made:
            yield made

    @contextlib.contextmanager
    def _lent(self, template: str) -> Iterator[str]:
        while self._unused:
            self._drop(self._unused.pop())
        made = self._create(template)
        try:
            yield self._url(made)
        finally:
            # Dropped by the next test: now it would wait a tenth of a second for the connections that have just ended.
            self._unused.append(made)

    def close(self) -> None:
        """Drop the databases that were copied."""
        for made in (*self._unused, *self._databases.values()):
            self._drop(made)

    def _url(self, database: str) -> str:
        return f"{self._server.rpartition('/')[0]}/{database}"

    def _create(self, template: str = "template1") -> str:
        made = f"receipts_{uuid.uuid4().hex}"
        self._run(f'CREATE DATABASE "{made}" TEMPLATE "{template}"')
        return made

    def _drop(self, database: str) -> None:
        self._run(f'DROP DATABASE "{database}" WITH (FORCE)')

    def _run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(statement.encode())
