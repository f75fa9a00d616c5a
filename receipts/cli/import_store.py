"""``receipts import store``: what another store exported."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

SHOWN = 20


@verb("store")
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|FILE")
def store(session: Session, place: Path) -> Answer:
    """Import what `receipts export` wrote: documents, verdicts, supersessions, claims, decisions, seals.

    Every document is hashed and checked again. Rows that this store already holds are skipped; nothing in it changes.
    Kept files of evidence in PLACE.evidence are kept here too.

    Examples:
      receipts import store lab-export
      receipts import store lab.jsonl
      receipts --store merged.sqlite import store lab-export --json

    A few hundred receipts are one transaction; after an interruption, run the command again. A launch that has another
    receipt here is refused, and so is a document whose bytes do not hash to its id; each is printed, and everything
    else is imported. How stores merge: docs/export.md. Exit codes: 0 all is imported, 2 something was refused or cannot
    be read, 4 the store failed.
    """
    from receipts.publish.imported import store as page
    from receipts.store.evidence import files_beside, kept_files
    from receipts.workflows.collect import copy_all
    from receipts.workflows.export.source import source
    from receipts.workflows.export.store_import import import_store

    origin = source(place)
    opened = session.opened(create=True)
    done = import_store(origin, opened, session.rulebook, session.progress.at)
    copy_all(files_beside(place.absolute()), kept_files(opened.database.address))
    rest = len(done.notes) - SHOWN
    more = (f"and {rest} more such; see them all with --json",) if rest > 0 else ()
    for text in done.refused:
        output.note(f"refused: {text}")
    return Answer(lambda: vars(done), lambda: page(done), done.exit_code, (*done.notes[:SHOWN], *more))
