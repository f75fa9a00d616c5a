"""An open store's database: engines, transactions that wait instead of failing, and errors in words.

A question is one transaction, and so is a change. `Database` is the connection that every part of a store shares;
`Repository`, `reads` and `writes` turn functions of a connection into methods of a store.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError

from receipts.base.environment import Actor, extra, this_process
from receipts.base.errors import NoRoom, StoreError, Unreachable, UsageError
from receipts.emit.files import file_mode
from receipts.store.address import Address
from receipts.store.sql import engine_of
from receipts.store.sql.sqlite import BEGIN, BUSY_SECONDS, WRITES, is_busy
from receipts.store.sql.statement import run

T = TypeVar("T")
ATTEMPTS: Final = 12
# A commit that finds so many pages in the log copies them into the file, while its submit waits. At SQLite's 1,000 that
# is every hundredth submit; the log is on the disk in any case, and 16 MB of it are read in a moment.
_CHECKPOINT_PAGES: Final = 4000
_MAGIC: Final = b"SQLite format 3\0"
# A job that has ended does not wait for minutes on a network that drops what it sends; the URL may say otherwise.
_PATIENCE: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "options": f"-c lock_timeout={BUSY_SECONDS}s",
}
_NOWHERE: Final = logging.NullHandler()
# PostgreSQL: serialization_failure, deadlock_detected, unique_violation, lock_not_available.
_AGAIN = ("40001", "40P01", "23505", "55P03")


def connect(address: Address) -> Engine:
    """An engine on a store that exists. Connections are made when they are needed."""
    if address.file is None:
        extra("psycopg", "postgres", "a store on PostgreSQL")
        # The driver logs what follows from an error, which nobody needs: the error itself is reported.
        logging.getLogger("psycopg").addHandler(_NOWHERE)
        patience = {name: value for name, value in _PATIENCE.items() if name not in address.url.query}
        return create_engine(address.url, pool_size=2, connect_args=patience)
    return _sqlite(address.file)


def _sqlite(file: Path) -> Engine:
    import sqlite3

    with suppress(OSError), file.open("rb") as stream:  # SQLite says what is wrong with it, or makes it
        # It takes a file of a few bytes for an empty database, and would write over it.
        if (stream.read(len(_MAGIC)) or _MAGIC) != _MAGIC:
            raise StoreError(f"{file}: {_SQLITE['not a database']}")
    place, writable = _place(file)

    def open_file() -> sqlite3.Connection:
        # The files that SQLite makes beside it take its mode, too.
        with suppress(OSError):  # it is there, or SQLite says better why it cannot be
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            file.chmod(file_mode(file.parent))
        opened = sqlite3.connect(
            place, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            if writable:
                opened.execute("PRAGMA synchronous = FULL")
                opened.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            opened.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:  # a damaged file
            opened.close()
            raise
        return opened

    engine = create_engine("sqlite://", creator=open_file, poolclass=QueuePool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        run(connection, BEGIN[bool(writes)])

    return engine


@contextmanager
def opened(address: Address) -> Iterator[Engine]:
    """An engine on a store that exists, for as long as the block lasts; what its driver raises is a StoreError."""
    engine = connect(address)
    try:
        with driver_errors(address):
            yield engine
    finally:
        engine.dispose()


def _place(file: Path) -> tuple[str, bool]:
    """SQLite's URI for a file, and whether it may be written.

    In a folder that may not be written SQLite cannot make the files that a reader of a WAL shares with writers; where
    no WAL is left either nobody writes, and the file can be read as it lies.
    """
    from urllib.parse import quote

    uri = f"file:{quote(str(file))}"
    if not file.exists():
        return uri, True
    effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    if os.access(file, os.W_OK, **effective) and os.access(file.parent, os.W_OK, **effective):
        return f"{uri}?mode=rw", True
    wal = file.with_name(f"{file.name}-wal")
    return (f"{uri}?mode=ro" if wal.exists() and wal.stat().st_size else f"{uri}?immutable=1"), False


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads one state of the store."""
    with engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads one state of the store, however long it takes and whatever is written meanwhile."""
    with engine.connect() as connection:
        connection = engine_of(engine).snapshot(connection)
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes all or nothing."""
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        yield connection


def write(engine: Engine, work: Callable[[Connection], T], *, together: bool = False) -> T:
    """Run ``work`` in one transaction, and again where another writer came first; ``together`` as `Postgres.at_once`.

    Up to `ATTEMPTS` times, and never again when `BUSY_SECONDS` have gone by: each time may have waited so long.
    """
    end = time.monotonic() + BUSY_SECONDS
    for attempt in range(ATTEMPTS):
        try:
            with engine_of(engine).at_once(engine, writes=True) if together else writing(engine) as connection:
                return work(connection)
        except (IntegrityError, OperationalError) as error:
            state = getattr(error.orig, "sqlstate", None)
            passing = state in _AGAIN if state is not None else is_busy(error)
            if attempt == ATTEMPTS - 1 or time.monotonic() >= end or not passing:
                raise
            # Two writers that wait equally long meet again.
            time.sleep(random.uniform(0.5, 1.5) * 0.01 * 2 ** min(attempt, 6))
    raise AssertionError("unreachable")


@contextmanager
def driver_errors(address: Address) -> Iterator[None]:
    """Turn what a driver raises into a StoreError that says what to do; an argument that is no text is a UsageError."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object!r} is not text, so it cannot name anything; write it in UTF-8") from None
    except DBAPIError as error:
        raise _store_error(error, address) from error


# connection_exception, too_many_connections, admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout,
# lock_not_available.
_LOCKED: Final = "55P03"
_AWAY: Final = ("08", "53300", "57P01", "57P02", "57P03", "57P05", _LOCKED)
# A server that answers, and would answer the same later. Before there is a connection psycopg has words and no code.
_REFUSED: Final = (
    *("authentication failed", "pg_hba.conf", "no password", "does not exist", "permission denied"),
    *("not permitted to log in", "certificate", "not support SSL", "SSL negotiation", "SCRAM"),
    *("invalid connection option", "unsupported frontend protocol"),
)
# disk_full, and out of memory for shared structures: nothing of it was stored, and it may be later.
_FULL: Final = ("53100", "53200")
ANEW: Final = (
    "With the version that wrote it: receipts export all.jsonl\n"
    "Then with this one, into a new store: receipts --store NEW import store all.jsonl"
)
# Until 0.2.0 the first schema may change under its number.
EARLIER: Final = f"the store was made by an earlier version before 0.2.0, and has other columns than this one.\n{ANEW}"
_SQLITE = {
    "not a database": "this is not an SQLite database; name another file with --store",
    "readonly": "the store may only be read; ask for write permission on the file and its folder",
    "read-only": "the store may only be read; ask for write permission on the file and its folder",
    "disk is full": "the disk is full and nothing of this was stored; make room and do it again",
    "disk I/O error": "the disk failed or is full and nothing of this was stored; check it and do it again",
    "malformed": "the file is damaged; list where: receipts audit; then restore a backup: receipts restore FILE",
    "unable to open": "the file cannot be opened; check the path and its permissions",
    "no such column": EARLIER,
    "has no column": EARLIER,
    "NOT NULL constraint": EARLIER,
    "no such table": EARLIER,
    "locked": f"another process has held the store for more than {BUSY_SECONDS} s; wait, or find it with: fuser FILE",
}


def _store_error(error: DBAPIError, address: Address) -> StoreError:
    """What a driver raised, in words that say what to do."""
    text = " ".join(str(error.orig).split())
    if address.file:
        sentence = next((sentence for part, sentence in _SQLITE.items() if part in text), text)
        # SQLite calls a quota, or a log that cannot grow, a failed disk.
        full = "disk is full" in text or "disk I/O error" in text
        return (NoRoom if full else StoreError)(
            f"{address}: {sentence.replace('fuser FILE', f'fuser {quote(str(address.file))}')}"
        )
    state = str(getattr(error.orig, "sqlstate", None) or "")
    # A server that could not be reached, or was lost: the same may succeed when it is back.
    away = isinstance(error, OperationalError | InterfaceError) and (
        state.startswith(_AWAY) if state else not any(words in str(error.orig) for words in _REFUSED)
    )
    locked = f"another session has held the store for more than {BUSY_SECONDS} s; wait, or find it with"
    sentences = {
        _LOCKED: f"{locked}: SELECT * FROM pg_stat_activity WHERE state = 'idle in transaction'",
        "42501": f"the role may not do this ({text}); grant it, or use another role",
        **dict.fromkeys(("42703", "42P01", "23502"), EARLIER),  # no such column or table, or one nobody gives any more
        "25006": "the store may only be read; connect to the primary server",
        **dict.fromkeys(_FULL, f"the server has no room left and nothing of this was stored ({text})"),
    }
    if away:
        sentence = sentences.get(state, f"the server cannot be reached ({text}); check the URL and that it runs")
    elif not state and isinstance(error, OperationalError):
        sentence = f"the server refused ({text}); check user, password and database in the URL"
    else:
        sentence = sentences.get(state, text)
    kind = Unreachable if away else NoRoom if state in _FULL else StoreError
    return kind(f"{address}: {sentence}")


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
