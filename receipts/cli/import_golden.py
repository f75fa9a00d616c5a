"""``receipts import golden``: the values that a project's tests expect, commit by commit."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.importing import send, to_receipts
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
@to_receipts
@pass_session
def golden(
    session: Session, paths: tuple[Path, ...], history: bool, out: Path | None, submitting: bool, as_json: bool
) -> int:
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
    went = send(session, {f"{parse(item).id[:16]}.json": item.raw for item in documents}, documents, out, submitting)
    refused = sum(bool(item.problems) for item in entries)
    repeated = sum(item.repeated for item in entries)
    if as_json:
        output.as_json({"receipts": [parse(item).id for item in documents], "repeated": repeated, "refused": refused})
    else:
        counts = f"{repeated} repeat the values before them, {counted(refused, 'line')} refused"
        output.line(f"{counted(len(documents), 'receipt')} of {counted(len(entries), 'commit')}, {counts}{went.where}")
    return 2 if refused or not went.whole else 0
