"""Which store is meant: a URL, a plain path, the environment, or the user's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from receipts.base.errors import StoreError, UsageError
from receipts.emit.files import make_folder

if TYPE_CHECKING:
    from sqlalchemy import URL

VARIABLE = "RECEIPTS_STORE"
POSTGRESQL = "postgresql+psycopg"


class Address(NamedTuple):
    """A store's place. `file` is the SQLite file, None on PostgreSQL.

    `standing` says that it is the default or what `RECEIPTS_STORE` names: its folder is made where there is none.
    """

    url: URL
    file: Path | None
    standing: bool = False

    @property
    def target(self) -> str:
        """The store as the spool calls it: its file, or the database on its server, without who asks and how."""
        if self.file is not None:
            return f"sqlite:///{self.file}"
        from sqlalchemy import URL

        url = self.url
        query = {name: value for name, value in url.query.items() if name in ("host", "port", "service")}
        return URL.create(url.drivername, None, None, url.host, url.port, url.database, query).render_as_string()

    def make_folder(self) -> None:
        """Make the folder of a file where that is asked for. Raises StoreError where there is none afterward."""
        folder = self.file.parent if self.file is not None else Path()
        try:
            if self.standing:
                make_folder(folder)
        except OSError as error:
            how = f"the folder cannot be made: {error.strerror}; name a store with --store"
            raise StoreError(f"{self}: {how}") from None
        if not folder.is_dir():
            raise StoreError(f"{self}: there is no folder {folder}; make it with: mkdir -p {folder}")

    def __str__(self) -> str:
        """What to call it in a sentence: its path, or its URL without the password."""
        if self.file:
            return str(self.file)
        return self.url.difference_update_query(["password", "sslpassword"]).render_as_string(hide_password=True)


def is_there(text: str | None = None) -> bool:
    """Whether a text, as `address` reads it, may name a store that exists, told without the time that SQL takes."""
    named = text or os.environ.get(VARIABLE)
    if named:
        return "://" in named or Path(named).expanduser().exists()
    return _own().exists()


def _own() -> Path:
    from platformdirs import user_data_path

    return user_data_path("receipts", appauthor=False) / "receipts.sqlite"


def address(text: str | None = None) -> Address:
    """The address that a text names; none is ``RECEIPTS_STORE``, else the file in the user's data folder.

    Raises UsageError for a URL of another kind.
    """
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    standing = not text
    named = text or os.environ.get(VARIABLE) or str(_own())
    if "://" not in named:
        file = Path(named).expanduser().absolute()
        return Address(URL.create("sqlite", database=str(file)), file, standing)
    try:
        url = make_url(named)
    except (ArgumentError, ValueError):
        raise UsageError(f"--store {named.split('://')[0]}://…: this is no URL; {_FORMS}") from None
    if url.drivername in ("postgresql", "postgres", POSTGRESQL):
        return Address(url.set(drivername=POSTGRESQL), None, standing)
    if url.drivername != "sqlite":
        raise UsageError(f"--store: there is no store on {url.drivername}; {_FORMS}")
    if not url.database or url.database == ":memory:":
        raise UsageError("--store: a store in memory is lost with the process; name a file: sqlite:///receipts.sqlite")
    file = Path(url.database).expanduser().absolute()
    return Address(URL.create("sqlite", database=str(file)), file, standing)


_FORMS = f"write a path, sqlite:///PATH, or {POSTGRESQL}://USER@HOST/DATABASE"
