"""``receipts merge``: the parts of many ranks, as one receipt."""

from __future__ import annotations

import contextlib
import sys

import click

from receipts.base import files
from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import verb


@verb("merge")
@click.argument("parts", nargs=-1, required=True, metavar="PART|JOURNAL…")
@click.option("--output", "-o", "path", required=True, metavar="FILE", help="Write here, - for standard output.")
@click.option("--partial", is_flag=True, help="Write a receipt even if ranks are missing.")
def command(session: Session, parts: tuple[str, ...], path: str, partial: bool) -> int:
    """Merge the PARTS that the ranks of one launch wrote into one receipt.

    The receipt holds the memory of every chip, the slowest rank's time for every step, and how much the ranks differ.
    The same parts give the same bytes.

    Examples:
      receipts merge run.rank*.part.json -o run.json
      receipts merge run.rank*.part.json run.1f8e2a3c-4711.journal -o run.json
      torchrun --nproc-per-node 8 train.py; receipts merge out/*.part.json -o run.json

    A rank that was killed leaves a journal instead of a part; give it along with the parts.
    Exit codes: 0 every rank is there and all agree, 1 ranks disagree, 2 the parts are not of one launch, or the call is
    wrong, 3 ranks are missing (--partial still writes the receipt).
    """
    from receipts.publish.recorded import merged as page
    from receipts.workflows.recorded import check, merge_files, parts_in

    if path != "-":
        files.refuse_existing(path)
    merged = merge_files(parts_in(parts))
    raw = merged.text().encode()
    whole = not merged.missing
    if whole or partial:
        check(raw, path)
        if path == "-":
            sys.stdout.write(raw.decode())
        else:
            files.write(path, raw)
    written = path if whole or partial else None
    with contextlib.redirect_stdout(sys.stderr) if path == "-" else contextlib.nullcontext():
        run = {name: merged.tree["run"][name] for name in ("launch", "outcome")}
        problems = {"missing": list(merged.missing), "disagreements": list(merged.disagreements)}
        output.answer(session.as_json, {"written": written, **run, **problems}, lambda: page(merged, written))
    return 3 if merged.missing else 1 if merged.disagreements else 0
