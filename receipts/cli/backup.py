"""``receipts backup`` and ``restore``: the whole store in one file, and a store of it."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts backup receipts-2026-03-08.sqlite
  receipts --store postgresql+psycopg://owner@db/receipts backup lab.sqlite
  receipts --store lab.sqlite audit

The file is itself a store: every command takes it with --store FILE."""


@click.command("backup", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@pass_session
def command(session: Session, file: Path, force: bool, as_json: bool) -> int:
    """Write the whole store to one SQLite file, as of one moment. Others may write meanwhile.

    The copy is checked before it gets its name. If the check fails, no file is left. Kept files of evidence are copied
    to FILE.evidence.
    """
    from receipts.store.address import address
    from receipts.store.kept import files_beside, kept_files
    from receipts.store.transfer.backup import backup
    from receipts.workflows.collect import copy_all

    target = file.expanduser().absolute()
    copy = backup(address(session.store_url), target, force=force)
    copy_all(kept_files(address(session.store_url)), files_beside(target))
    held = f"{counted(copy.receipts, 'receipt')}, {counted(copy.rows, 'row')} in all"
    output.answer(as_json, copy._asdict(), f"{copy.place}: {held}")
    if not as_json:
        output.note(f"it comes back with: receipts --store STORE restore {file}")
    return 0


RESTORE_EPILOG = """\b
Examples:
  receipts --store new.sqlite restore receipts-2026-03-08.sqlite
  receipts --store postgresql+psycopg://owner@db/empty restore lab.sqlite

A backup of an SQLite store can be restored to PostgreSQL, and the other way round."""


@click.command("restore", epilog=RESTORE_EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print what was restored as JSON.")
@pass_session
def restore(session: Session, file: Path, as_json: bool) -> int:
    """Make a new store from a backup, completely or not at all.

    It is the same store, with the same id and the same row numbers, so every seal still holds.
    """
    from receipts.store.address import address
    from receipts.store.kept import files_beside, kept_files
    from receipts.store.transfer.backup import restore
    from receipts.workflows.collect import copy_all

    source = file.expanduser().absolute()
    restored = restore(source, address(session.store_url))
    copy_all(files_beside(source), kept_files(address(session.store_url)))
    held = f"{counted(restored.receipts, 'receipt')}, {counted(restored.rows, 'row')} in all"
    output.answer(as_json, restored._asdict(), f"{restored.place}: {held}")
    if not as_json:
        output.note("hold it against its seals with: receipts audit")
    return 0
