"""``receipts restore``: a store of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts --store new.sqlite restore receipts-2026-03-08.sqlite
  receipts --store postgresql+psycopg://owner@db/empty restore lab.sqlite

A backup of an SQLite store can be restored to PostgreSQL, and the other way round."""


@click.command("restore", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print what was restored as JSON.")
@pass_session
def command(session: Session, file: Path, as_json: bool) -> int:
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
    if as_json:
        output.as_json(restored._asdict())
    else:
        held = f"{counted(restored.receipts, 'receipt')}, {counted(restored.rows, 'row')} in all"
        output.line(f"{output.clean(restored.place)}: {held}")
        output.note("hold it against its seals with: receipts audit")
    return 0
