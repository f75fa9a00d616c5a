"""``receipts import golden``: the values that a project's tests expect, commit by commit."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base import files
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts import golden tests/golden_values_dev_dgx_h100.jsonl --history
  receipts import golden histories/*.jsonl --history --submit
  receipts history LABEL --metric step_seconds

Each line of a history holds one commit's golden values, with `commit` and `date`. A commit that repeats the values
before it measured nothing and gets no receipt. Without -o or --submit nothing is written. One golden file without a
history: `receipts ingest`. Exit codes: 0 every line was read, 2 some line was not, 4 the store failed."""


@click.command("golden", short_help="Import histories of golden values.", epilog=EPILOG)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--history", is_flag=True, required=True, help="The files are JSON lines, one for each commit.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write receipts here."
)
@click.option("--submit", "submitting", is_flag=True, help="Store the receipts.")
@pass_session
def golden(session: Session, paths: tuple[Path, ...], history: bool, out: Path | None, submitting: bool) -> int:
    """Read Megatron-LM's golden values through their commits: one receipt for each change of the values.

    A commit's date is given as the launch's, which it can only follow.
    """
    from receipts.receipt import Document, parse
    from receipts.workflows.published.golden import import_history

    entries = list(import_history(paths))
    documents = [Document(item.raw, item.where) for item in entries if item.raw is not None]
    for item in entries:
        if item.problems:
            output.note(f"{item.where}: {output.clean('; '.join(map(str, item.problems)))}")
    if out is not None:
        files.write_folder(out, {f"{parse(item).id[:16]}.json": item.raw for item in documents}, over=True)
    stored = session.submit_all(documents) if submitting else None
    refused = sum(bool(item.problems) for item in entries)
    where = f", written to {out}" if out is not None else ""
    where += f", {stored} in the store" if stored is not None else ""
    repeated = sum(item.repeated for item in entries)
    counts = f"{repeated} repeat the values before them, {counted(refused, 'line')} refused"
    output.line(f"{counted(len(documents), 'receipt')} of {counted(len(entries), 'commit')}, {counts}{where}")
    return 2 if refused or (stored is not None and stored < len(documents)) else 0
