"""``receipts ingest``: what a run left behind, put together into one receipt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.errors import InputError, UsageError
from receipts.base.files import refuse_existing, write
from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import verb

if TYPE_CHECKING:
    from receipts.ingest import Ingested, Options


KINDS = ("training", "microbench", "profile", "serving")


@verb("ingest")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER|-…")
@click.option("--lane", metavar="LANE", help="The lane of the run; without it, one is proposed.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="State a leaf; it overrides every file.")
@click.option("--map", "map_path", metavar="FILE", help="A TOML file that maps files of your own: docs/ingest-map.md.")
@click.option("--kind", type=click.Choice(KINDS), help="The kind of run.  [default: training]")
@click.option("--witness-for", metavar="LAUNCH", help="The measured launch whose path this profiled one shows.")
@click.option("--output", "-o", "path", metavar="FILE", help="Write the receipt here, - for standard output.")
@click.option("--submit", "submitting", is_flag=True, help="Store the receipt.")
def command(
    session: Session,
    files: tuple[str, ...],
    lane: str | None,
    settings: tuple[str, ...],
    map_path: str | None,
    kind: str | None,
    witness_for: str | None,
    path: str | None,
    submitting: bool,
) -> int:
    """Read the logs, profiles, reports and configurations of ONE run, and make one receipt.

    Prints every value with the place it was read from. A value that no file shows stays unstated. If two places
    contradict each other, both are printed, and the value stays unstated unless one is the better source.

    Examples:
      receipts ingest run.log
      receipts ingest run.log -o run.json
      receipts ingest logs/rank_*.log metrics.txt profile.json --lane nvidia-megatron -o run.json
      receipts ingest run.json trace.json -o whole.json
      receipts ingest outputs/run-7/ --map steps.toml -o run.json
      receipts ingest outputs/run-7/ --set hardware.chips=8 --set run.host=bench3 --submit
      kubectl logs trainer-0 | receipts ingest - -o run.json

    Files are recognized by content, not by name. Without -o or --submit, nothing is written.
    How files become a receipt: docs/ingest.md.
    Exit codes: 0 a receipt was made, 2 nothing was readable or the call is wrong, 4 the store failed.
    """
    from receipts.ingest import assemble, gather
    from receipts.ingest.files import given
    from receipts.ingest.step_map import read_map
    from receipts.publish.ingested import as_data, page

    _refuse_early(path)
    options = _options(session, lane, settings, kind, witness_for)
    with given(files, sys.stdin.buffer if "-" in files else None) as (items, passed_by):
        evidence = gather(items, _reading(session.progress), read_map(Path(map_path)) if map_path is not None else None)
        ingested = assemble(evidence, options)
    session.progress.clear()
    known = any(file.readings for file in evidence)
    receipt = ingested.raw if known and not ingested.problems else None
    if receipt is not None and path is not None and path != "-":
        write(path, receipt)
    # The receipt alone goes where its reader waits; what is to be said of it goes beside.
    with contextlib.redirect_stdout(sys.stderr) if path == "-" else contextlib.nullcontext():
        parts = evidence, ingested, passed_by
        output.answer(session.as_json, lambda: as_data(*parts), lambda: page(*parts))
        code = _end(session, ingested, receipt, path, submitting) if known else _unknown()
    if path == "-" and receipt is not None:
        sys.stdout.write(receipt.decode())
    return code


def _options(
    session: Session, lane: str | None, settings: tuple[str, ...], kind: str | None, witness_for: str | None
) -> Options:
    from receipts.ingest import Options, read_settings

    lanes = session.rulebook.lanes
    known = tuple(lanes.get(name) for name in lanes.names())
    if lane is not None:
        lanes.get(lane)
    stated = read_settings(settings)
    if witness_for is not None:
        stated["run.witness_for"] = witness_for
    return Options(lane, kind, stated, known)


def _refuse_early(path: str | None) -> None:
    """A log of gigabytes is not read for a file that cannot be written."""
    if path in (None, "-"):
        return
    target = Path(str(path))
    refuse_existing(target)
    if not target.parent.is_dir():
        raise UsageError(f"{path} cannot be written: there is no folder {target.parent}")


def _end(session: Session, ingested: Ingested, receipt: bytes | None, path: str | None, submitting: bool) -> int:
    """Store it where asked to, and say what comes next; the exit code."""
    if receipt is None:
        output.note(f"receipts: there is no receipt yet\n{InputError('receipt', ingested.problems)}")
        return 2
    if submitting:
        return _submit(session, receipt, path or "ingested")
    if not session.as_json:
        output.line()
        if path not in (None, "-"):
            output.line(f"wrote {path}; next: receipts check {path}")
        elif path is None:
            output.line("nothing was written; -o run.json writes the receipt, --submit stores it")
    return 0


def _unknown() -> int:
    output.note("receipts: no reader knows any of these files; docs/ingest.md lists what is read")
    return 2


def _submit(session: Session, receipt: bytes, name: str) -> int:
    from receipts.receipt import Document

    outcome = session.submit_one(Document(receipt, name))
    if outcome.error is not None:
        output.refuse(outcome.error)
        return 2
    verdict = outcome.verdict
    state = f"{verdict.status} · path {verdict.path}" if verdict is not None else ""
    known = "" if outcome.submitted is not None and outcome.submitted.new else " (it was there already)"
    output.note(f"stored {Document(receipt, name).id[:12]}{known}: {state}")
    return 0


def _reading(shown: output.Progress) -> Callable[[str, int, int], None]:
    """Which file is being read, and how far."""

    def at(name: str, done: int, size: int) -> None:
        # A packed file holds more than lies on the disk: how much is not known before it is read.
        share = f" of {size / 1e6:,.0f} MB" if done <= size else ""
        shown.text(f"{output.clean(name)[:60]}: {done / 1e6:,.0f} MB{share}")

    return at
