"""``receipts recover``: the receipt of a run that was ended before it could write its own, from its journal."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

OUTCOMES = ("ok", "oom", "crash", "hang", "nan", "preempted")


@verb("recover")
@click.argument("journal", type=click.Path(dir_okay=False))
@click.option(
    "--output", "-o", "path", metavar="FILE", help="Write here.  [default: where the run would have written it]"
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FILE",
    help="A log that shows how the run ended, for example the job's or dmesg's.",
)
@click.option("--outcome", type=click.Choice(OUTCOMES), help="How the run ended, if you know it from elsewhere.")
def command(session: Session, journal: str, path: str | None, logs: tuple[str, ...], outcome: str | None) -> Answer:
    """Make the receipt of a run from the JOURNAL that it left.

    For a run that was killed, ran out of memory or was preempted. Keeps every completed step, and reads how the run
    ended from the process's last messages, as `ingest` reads logs.

    Examples:
      receipts recover run.1f8e2a3c-4711.journal
      receipts recover run.1f8e2a3c-4711.journal -o run.json
      receipts recover run.1f8e2a3c-4711.journal --log slurm-811.out
      receipts recover run.1f8e2a3c-4711.journal --outcome preempted
      receipts recover run.1f8e2a3c-4711.journal --outcome hang

    The journal of one rank of many gives that rank's part, for receipts merge. A journal whose run is still going is
    refused, unless the run is stuck in a step and --outcome hang is given; its process is left alone. Exit codes: 0
    written, 2 not a journal, the run is still going, or the call is wrong.
    """
    from receipts.emit import document
    from receipts.emit.files import receipt_path
    from receipts.emit.recovery import blame
    from receipts.publish.recorded import recovered
    from receipts.workflows.recorded import blamed, check, read

    record = read(journal, hang=outcome == "hang")
    blamed(record, logs)
    if outcome is not None:
        failure = {"message": f"{record.stall}, when it was recovered"} if record.stall is not None else {}
        blame(record, outcome, {**record.failure, **failure})
    meant = Path(record.head["out"])
    target = Path(path) if path is not None else Path(journal).parent / meant.name
    raw = "".join(document.file_text(record)).encode()
    if record.place.world == 1:
        check(raw, journal)
    elif path is not None and not target.name.endswith(".part.json"):
        target = Path(receipt_path(str(target), record.head["launch"], record.place))
    if path is None and target.exists():
        raise UsageError(f"{target} exists and is kept; name a file with -o")
    files.write(target, raw)
    tree = {
        "written": str(target),
        "launch": record.head["launch"],
        "rank": record.place.rank,
        "world": record.place.world,
        "steps": record.steps,
        "outcome": record.outcome,
        "failure": record.failure,
    }
    return Answer(tree, lambda: recovered(tree))
