"""``receipts evidence``: the files that the store keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from receipts.base.errors import UsageError
from receipts.base.units import amount, counted
from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.page import table_of

EPILOG = """\b
Examples:
  receipts evidence list
  receipts evidence get 5d1c6f0a -o trace.json
  receipts evidence gc

receipts submit run.json --evidence DIR keeps the files that it reads, packed, in STORE.evidence; RECEIPTS_EVIDENCE
names another folder, or an object store (s3://bucket/prefix). RECEIPTS_EVIDENCE_LIMIT ("200 GiB") is the most that all
of them may take, packed."""


@click.group("evidence", epilog=EPILOG)
def command() -> None:
    """The files of evidence that the store keeps, by their digests."""


@command.command("list", epilog="\b\nExamples:\n  receipts evidence list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def list_(session: Session, as_json: bool) -> int:
    """List every kept file, and how many receipts name it."""
    from receipts.store.kept import kept_files
    from receipts.workflows.collect import named_files

    with session.open_store() as store:
        kept = kept_files(store.database.address)
        files = kept.all() if kept is not None else []
        named = named_files(store) if files else {}
    rows = [{**item._asdict(), "receipts": named.get(item.digest, [])} for item in files]
    cells = ((item.digest[:12], amount(item.size), str(len(named.get(item.digest, ())))) for item in files)
    output.answer(as_json, rows, table_of("", "file | #size | #receipts", cells))
    if not as_json:
        output.note(f"{counted(len(files), 'file')}, {amount(sum(item.size for item in files))}")
    return 0


@command.command("get", epilog="\b\nExamples:\n  receipts evidence get 5d1c6f0a -o trace.json")
@click.argument("digest")
@click.option("--output", "-o", "path", required=True, metavar="FILE", type=click.Path(path_type=Path), help="To here.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def get(session: Session, digest: str, path: Path, as_json: bool) -> int:
    """Write one kept file, checked against its digest."""
    from receipts.base.files import refuse_existing, staged, writable
    from receipts.store.kept import kept_files

    refuse_existing(path)
    with session.open_store() as store:
        kept = kept_files(store.database.address)
    whole = [item.digest for item in kept.all() if item.digest.startswith(digest)] if kept is not None else []
    if kept is None or len(whole) != 1:
        raise UsageError(f"{digest}: {counted(len(whole), 'kept file')} of that digest; see: receipts evidence list")
    with kept.file(whole[0]) as plain, writable(path), staged(path) as beside:
        shutil.copyfile(plain, beside)
    output.answer(as_json, {"digest": whole[0], "file": str(path)}, f"wrote {path}")
    return 0


@command.command("gc", epilog="\b\nExamples:\n  receipts evidence gc --dry-run\n  receipts evidence gc --older 365")
@click.option("--older", type=click.IntRange(1, 36_500), metavar="DAYS", help="Those of launches older than that too.")
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def gc(session: Session, older: int | None, dry_run: bool, as_json: bool) -> int:
    """Remove the kept files that no receipt lists. Receipts whose files go are evidenced, and no longer kept."""
    from datetime import UTC, datetime, timedelta

    from receipts.workflows.collect import collect

    since = datetime.now(UTC) - timedelta(days=older) if older is not None else None
    with session.open_store() as store:
        loose = collect(store, since=since, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    total = f"{verb}: {counted(len(loose), 'file')}, {amount(sum(item.size for item in loose))}"
    output.answer(as_json, [item._asdict() for item in loose], total)
    return 0
