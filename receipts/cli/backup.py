"""``receipts backup`` and ``restore``: the whole store in one file, and a store of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.units import counted
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.store.transfer.backup import Copied


@verb("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(session: Session, file: Path, force: bool) -> Answer:
    """Write the whole store to one SQLite file, as of one moment. Others may write meanwhile.

    The copy is checked before it gets its name. If the check fails, no file is left. Kept files of evidence are copied
    to FILE.evidence.

    Examples:
      receipts backup receipts-2026-03-08.sqlite
      receipts --store postgresql+psycopg://owner@db/receipts backup lab.sqlite
      receipts --store lab.sqlite audit

    The file is itself a store: every command takes it with --store FILE.
    """
    from receipts.store.address import address
    from receipts.store.evidence import files_beside, kept_files
    from receipts.store.transfer.backup import backup
    from receipts.workflows.collect import copy_all

    target = file.expanduser().absolute()
    copy = backup(address(session.store_url), target, force=force)
    copy_all(kept_files(address(session.store_url)), files_beside(target))
    return _answer(copy, f"it comes back with: receipts --store STORE restore {file}")


@verb("restore")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def restore(session: Session, file: Path) -> Answer:
    """Make a new store from a backup, completely or not at all.

    It is the same store, with the same id and the same row numbers, so every seal still holds.

    Examples:
      receipts --store new.sqlite restore receipts-2026-03-08.sqlite
      receipts --store postgresql+psycopg://owner@db/empty restore lab.sqlite

    A backup of an SQLite store can be restored to PostgreSQL, and the other way round.
    """
    from receipts.store.address import address
    from receipts.store.evidence import files_beside, kept_files
    from receipts.store.transfer.backup import restore
    from receipts.workflows.collect import copy_all

    source = file.expanduser().absolute()
    restored = restore(source, address(session.store_url))
    copy_all(files_beside(source), kept_files(address(session.store_url)))
    return _answer(restored, "hold it against its seals with: receipts audit")


def _answer(copy: Copied, note: str) -> Answer:
    held = f"{counted(copy.receipts, 'receipt')}, {counted(copy.rows, 'row')} in all"
    return Answer(copy._asdict(), f"{copy.place}: {held}", notes=(note,))
