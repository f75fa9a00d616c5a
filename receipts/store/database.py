"""An open store's connection: one transaction a question, one a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from receipts.base.environment import Actor, this_process
from receipts.store.address import Address
from receipts.store.sql import engine_of
from receipts.store.sql.transactions import driver_errors, reading, snapshot, write

T = TypeVar("T")
P = ParamSpec("P")


class By(NamedTuple):
    """Who caused a row, and when, in UTC: the columns of every row that a person causes."""

    actor: str
    at: datetime


class Database:
    """The one connection that every part of a store shares. Raises StoreError where it cannot be reached or written."""

    def __init__(self, engine: Engine, place: Address, actor: Actor | None = None) -> None:
        self.engine = engine
        self.address = place
        self._actor = actor
        self._state: Connection | None = None
        self._kept: dict[object, Any] = {}

    def __repr__(self) -> str:
        return f"Database({str(self.address)!r})"

    def actor(self, connection: Connection) -> str:
        """Who changes it by this connection, as rows have it: whom it was opened for, else the database's own user."""
        if self._actor is not None:
            return str(self._actor)
        process, user = this_process(), engine_of(connection).user(connection)
        return str(Actor("database", user, str(process)) if user else process)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @property
    def url(self) -> str:
        """Where it is: a path, or a URL without its password."""
        return str(self.address)

    @property
    def full_url(self) -> str:
        """Its URL with the password, by which another process of the same user opens it: for no message."""
        return self.address.url.render_as_string(hide_password=False)

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """All reads inside see one state of the store, whatever is written meanwhile, and nothing is asked twice."""
        if self._state is not None:
            yield
            return
        with self.snapshot() as connection:
            self._state = connection
            try:
                yield
            finally:
                self._state = None
                self._kept.clear()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads: one state of the store, or that of `one_state`."""
        if self._state is not None:
            with driver_errors(self.address):
                yield self._state
            return
        with driver_errors(self.address), reading(self.engine) as connection:
            yield connection

    def once(self, about: object, read: Callable[[], T]) -> T:
        """What is read, and within `one_state` kept until its end."""
        if self._state is None:
            return read()
        if about not in self._kept:
            self._kept[about] = read()
        value: T = self._kept[about]
        return value

    @contextmanager
    def at_once(self) -> Iterator[Connection]:
        """A transaction of a few statements that read; see `Postgres.at_once`."""
        with driver_errors(self.address), engine_of(self.engine).at_once(self.engine, writes=False) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A transaction that reads one state of the store, however long it takes and whatever is written meanwhile."""
        with driver_errors(self.address), snapshot(self.engine) as connection:
            yield connection

    def by(self, connection: Connection) -> By:
        """Who changes it, and when: now."""
        return By(self.actor(connection), datetime.now(UTC))

    def change(self, work: Callable[[Connection, By], T]) -> T:
        """Run a change that a person causes, as `write` does."""
        return self.write(lambda connection: work(connection, self.by(connection)))

    def write(self, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        """Run a change in one transaction, under the lock that writers share, or ``alone``."""

        def locked(connection: Connection) -> T:
            engine_of(connection).lock(connection, alone=alone)  # no seal may pass by a row that is not seen yet
            return work(connection)

        with driver_errors(self.address):
            return write(self.engine, locked)


class Repository:
    """Methods of a store on one subject; each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database!r})"


def reads(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Repository, P], T]:
    """Turn a function of a connection into a method that reads, in one transaction."""

    @wraps(work)
    def method(part: Repository, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with part.database.reading() as connection:
            return work(connection, *args, **kwargs)

    return method


def writes(work: Callable[Concatenate[Connection, By, P], T]) -> Callable[Concatenate[Repository, P], T]:
    """Turn a function of a connection and an actor into a method that writes, in one transaction."""

    @wraps(work)
    def method(part: Repository, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return part.database.change(lambda connection, by: work(connection, by, *args, **kwargs))

    return method
