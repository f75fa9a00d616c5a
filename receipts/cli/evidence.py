"""``receipts evidence``: the files that the store keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from receipts.base.errors import UsageError
from receipts.base.units import amount, counted
from receipts.cli.session import Session
from receipts.cli.verb import Answer, group, verb
from receipts.publish.page import table_of


@group("evidence")
def command() -> None:
    """The files of evidence that the store keeps, by their digests.

    Examples:
      receipts evidence list
      receipts evidence get 5d1c6f0a -o trace.json
      receipts evidence gc

    receipts submit run.json --evidence DIR keeps the files that it reads, packed, in STORE.evidence; RECEIPTS_EVIDENCE
    names another folder, or an object store (s3://bucket/prefix). RECEIPTS_EVIDENCE_LIMIT ("200 GiB") is the most that
    all of them may take, packed.
    """


@verb("list", of=command)
def list_(session: Session) -> Answer:
    """List every kept file, and how many receipts name it.

    Examples:
      receipts evidence list
    """
    from receipts.store.evidence import kept_files
    from receipts.workflows.collect import named_files

    store = session.store
    kept = kept_files(store.database.address)
    files = kept.all() if kept is not None else []
    named = named_files(store) if files else {}
    rows = [{**item._asdict(), "receipts": named.get(item.digest, [])} for item in files]
    cells = ((item.digest[:12], amount(item.size), str(len(named.get(item.digest, ())))) for item in files)
    total = f"{counted(len(files), 'file')}, {amount(sum(item.size for item in files))}"
    return Answer(rows, table_of("", "file | #size | #receipts", cells), notes=(total,))


@verb("get", of=command)
@click.argument("digest")
@click.option("--output", "-o", "path", required=True, metavar="FILE", type=click.Path(path_type=Path), help="To here.")
def get(session: Session, digest: str, path: Path) -> Answer:
    """Write one kept file, checked against its digest.

    Examples:
      receipts evidence get 5d1c6f0a -o trace.json
    """
    from receipts.base.files import refuse_existing, staged, writable
    from receipts.store.evidence import kept_files

    refuse_existing(path)
    kept = kept_files(session.store.database.address)
    whole = [item.digest for item in kept.all() if item.digest.startswith(digest)] if kept is not None else []
    if kept is None or len(whole) != 1:
        raise UsageError(f"{digest}: {counted(len(whole), 'kept file')} of that digest; see: receipts evidence list")
    with kept.file(whole[0]) as plain, writable(path), staged(path) as beside:
        shutil.copyfile(plain, beside)
    return Answer({"digest": whole[0], "file": str(path)}, f"wrote {path}")


@verb("gc", of=command)
@click.option(
    "--older", type=click.IntRange(1, 36_500), metavar="DAYS", help="Also remove those of launches older than this."
)
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
def gc(session: Session, older: int | None, dry_run: bool) -> Answer:
    """Remove the kept files that no receipt lists. Receipts whose files go are evidenced, and no longer kept.

    Examples:
      receipts evidence gc --dry-run
      receipts evidence gc --older 365
    """
    from datetime import UTC, datetime, timedelta

    from receipts.workflows.collect import collect

    since = datetime.now(UTC) - timedelta(days=older) if older is not None else None
    loose = collect(session.store, since=since, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    total = f"{verb}: {counted(len(loose), 'file')}, {amount(sum(item.size for item in loose))}"
    return Answer([item._asdict() for item in loose], total)
