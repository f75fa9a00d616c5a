"""The schema of a store: made new, recognised by one SELECT, upgraded and checked.

A new store is made from `tables` and `triggers` and stamped, because importing Alembic costs more than all the rest
of a first submit; a test holds that this and the migrations give the same schema on both engines.
A store of an earlier revision is upgraded: a file when it is opened, a database of a server by `db upgrade`. One of an
unknown revision is refused: its receipts come over by export and import.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, Engine, func, insert, inspect, select
from sqlalchemy.exc import OperationalError, ProgrammingError

from receipts import __version__
from receipts.base.errors import StoreError
from receipts.store.address import Address
from receipts.store.database import ANEW, opened, reading, writing
from receipts.store.sql import engine_of
from receipts.store.sql.guards import DELETABLE
from receipts.store.tables import EARLIER, HEAD, REBUILT, metadata, receipts, stores, version

if TYPE_CHECKING:
    from alembic.config import Config


class Upgrade(NamedTuple):
    """What `db upgrade` did: revisions before and after, equal where there was nothing to do."""

    store: str
    found: str
    wanted: str


class StoreCheck(NamedTuple):
    """What `db check` found. `problems` are sentences; none means that the store is whole and up to date."""

    store: str
    found: str
    wanted: str
    receipts: int
    problems: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 where there is no problem, else 1."""
        return 1 if self.problems else 0


def revision(connection: Connection) -> str | None:
    """The store's revision: empty where an empty table of versions is all there is, None where there is no table."""
    try:
        return connection.execute(select(version.c.version_num)).scalar() or ""
    except (OperationalError, ProgrammingError) as error:
        if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", "") == "42P01":
            return None
        raise


def ensure(engine: Engine, address: Address, *, create: bool) -> None:
    """Check that the store has the present schema; make it where it is empty and ``create`` is asked for.

    Raises StoreError where it has another schema, is empty, or belongs to another program.
    """
    with reading(engine) as connection:
        current = revision(connection)
    if not current and create:
        make(engine, address)
        return
    if not current:
        raise StoreError(f"{address}: this is no store of receipts; make one with: receipts submit FILE")
    if current in EARLIER and address.file is not None and os.access(address.file, os.W_OK):
        upgrade(address)
        return
    compare(address, current)


def compare(address: Address, current: str) -> None:
    """Raise StoreError where a revision is not the present one."""
    if current in EARLIER:
        raise StoreError(
            f"{address}: the store is at schema {current}, and this version needs {HEAD}; whoever may change tables "
            "upgrades it with: receipts db upgrade"
        )
    if current != HEAD:
        raise StoreError(
            f"{address}: the store is at schema {current}, and this version reads and writes {HEAD} alone.\n{ANEW}"
        )


def make(engine: Engine, address: Address) -> None:
    """Make the tables in an empty database, once, even if others are making them."""
    engine_of(engine).prepare(engine)
    with writing(engine) as connection:
        engine_of(connection).lock_schema(connection)
        if _known(connection, address):
            return
        create(connection)
        version.create(connection, checkfirst=True)
        connection.execute(insert(version).values(version_num=HEAD))
        identify(connection)


def create(connection: Connection) -> None:
    """Create all tables, indexes and triggers in an empty database, without the revision."""
    metadata.create_all(connection, checkfirst=False)
    engine_of(connection).create_triggers(connection)


def execute(connection: Connection, revision: Path) -> None:
    """Run the statements of a migration that is kept as SQL, in a file an engine; an empty line ends each."""
    statements = revision.with_name(f"{revision.name}.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in statements.split("\n\n"):  # with no parameters, so that a percent sign is one
        connection.exec_driver_sql(statement.strip(), execution_options={"no_parameters": True})


def identify(connection: Connection) -> None:
    """Give the store its id, where it has none."""
    if connection.execute(select(stores.c.id)).first() is None:
        connection.execute(
            insert(stores).values(id=str(uuid.uuid4()), created_at=datetime.now(UTC), made_by=__version__)
        )


def own_id(connection: Connection) -> str:
    """The store's id."""
    name: str = connection.execute(select(stores.c.id)).scalar_one()
    return name


def upgrade(address: Address) -> Upgrade:
    """Bring a store to the present revision in one transaction: all of it or nothing.

    Raises StoreError where there is no store, or its revision is unknown.
    """
    from alembic import command

    must_exist(address)
    with opened(address) as engine:
        engine_of(engine).prepare(engine)
        with writing(engine) as connection:
            engine_of(connection).lock_schema(connection)
            current = _known(connection, address)
            command.upgrade(configuration(connection), "head")
            identify(connection)
            return Upgrade(str(address), current, revision(connection) or "")


def _known(connection: Connection, address: Address) -> str:
    tables = set(inspect(connection).get_table_names())
    current = (revision(connection) or "") if "alembic_version" in tables else ""
    if current in EARLIER:
        return current
    if current:
        compare(address, current)
    elif strangers := tables - {"alembic_version"}:
        shown = ", ".join(sorted(strangers)[:3])
        raise StoreError(
            f"{address}: another program keeps its tables here ({shown}); name an empty database with --store"
        )
    return current


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for one open connection; there is no alembic.ini that could disagree."""
    from alembic.config import Config

    from receipts.base.environment import bundled_folder

    config = Config()
    config.set_main_option("script_location", str(bundled_folder("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["target_metadata"] = metadata
    return config


def must_exist(address: Address) -> None:
    """Raise StoreError where a store's file is not there: SQLite would make an empty one of it."""
    if address.file is not None and not address.file.exists():
        raise StoreError(f"{address}: there is no store; make one with: receipts submit FILE")


def check(address: Address) -> StoreCheck:
    """Look a store over: its revision, its tables and triggers, and what the engine says of its own files.

    Raises StoreError where it cannot be read at all.
    """
    must_exist(address)
    with opened(address) as engine, reading(engine) as connection:
        current = revision(connection)
        if not current:
            raise StoreError(f"{address}: this is no store of receipts")
        problems: list[str] = []
        try:
            compare(address, current)
        except StoreError as error:  # its tables and triggers are those of another schema
            problems.append(str(error))
        else:
            missing = {table.name for table in metadata.sorted_tables} - set(inspect(connection).get_table_names())
            if missing:
                problems.append(f"tables are missing: {', '.join(sorted(missing))}; restore a backup")
            if wrong := engine_of(connection).wrong_triggers(connection):
                what = "triggers are missing or changed, so that rows can be changed"
                problems.append(f"{what}: {', '.join(sorted(wrong))}; restore a backup")
            problems += engine_of(connection).damage(connection)
        count = connection.execute(select(func.count()).select_from(receipts)).scalar_one()
        return StoreCheck(str(address), current, HEAD, count, tuple(problems))


def erase(engine: Engine) -> None:
    """See that deleted rows leave the files, as far as the engine lets this user."""
    engine_of(engine).erase(engine, [*DELETABLE, *(table.name for table in REBUILT)])
