"""``receipts recover``: the receipt of a run that was ended before it could write its own, from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError
from receipts.cli import output

if TYPE_CHECKING:
    from receipts.emit.record import RunRecord
    from receipts.ingest.evidence.reading import AllocationFailure

EPILOG = """\b
Examples:
  receipts recover run.1f8e2a3c-4711.journal
  receipts recover run.1f8e2a3c-4711.journal -o run.json
  receipts recover run.1f8e2a3c-4711.journal --log slurm-811.out
  receipts recover run.1f8e2a3c-4711.journal --outcome preempted
  receipts recover run.1f8e2a3c-4711.journal --outcome hang

The journal of one rank of many gives that rank's part, for receipts merge. A journal whose run is still going is
refused, unless the run is stuck in a step and --outcome hang is given; its process is left alone. Exit codes: 0
written, 2 not a journal, the run is still going, or the call is wrong."""

OUTCOMES = ("ok", "oom", "crash", "hang", "nan", "preempted")


@click.command("recover", epilog=EPILOG)
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
@click.option("--json", "as_json", is_flag=True, help="Print what was recovered as JSON.")
def command(journal: str, path: str | None, logs: tuple[str, ...], outcome: str | None, as_json: bool) -> int:
    """Make the receipt of a run from the JOURNAL that it left.

    For a run that was killed, ran out of memory or was preempted. Keeps every completed step, and reads how the run
    ended from the process's last messages, as `ingest` reads logs.
    """
    from receipts.emit import parts
    from receipts.emit.files import receipt_path
    from receipts.publish.recorded import recovered

    record = read(journal, hang=outcome == "hang")
    blamed(record, logs)
    if outcome is not None:
        from receipts.emit.recover import blame

        failure = {"message": f"{record.stall}, when it was recovered"} if record.stall is not None else {}
        blame(record, outcome, {**record.failure, **failure})
    meant = Path(record.head["out"])
    target = Path(path) if path is not None else Path(journal).parent / meant.name
    raw = "".join(parts.pieces(record)).encode()
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
    output.answer(as_json, tree, lambda: recovered(tree))
    return 0


def read(journal: str, *, hang: bool = False) -> RunRecord:
    """The record of a journal whose process has ended, or is stuck and said to be. Raises InputError and UsageError."""
    from receipts.emit.recover import recover, running, stuck
    from receipts.emit.replay import NotAJournal

    try:
        record = recover(journal)
    except NotAJournal as error:
        raise InputError(journal, [Problem("", str(error))]) from None
    except OSError as error:
        raise InputError(journal, [Problem("", f"it cannot be read: {error.strerror or error}")]) from None
    if running(record):
        record.stall = stuck(record)
        still = f"{journal}: its process {record.head['process']} is still running"
        if record.stall is None:
            raise UsageError(f"{still}; recover it when it has ended")
        if not hang:
            raise UsageError(
                f"{still}, and {record.stall}; --outcome hang writes the receipt of a hang and leaves the process alone"
            )
    return record


def blamed(record: RunRecord, logs: Iterable[str] = ()) -> None:
    """Read again how the run ended: its own last words, and logs, with the engine's readers of failed allocations."""
    from receipts.emit.recover import blame

    texts: list[bytes] = []
    message = str(record.failure.get("message", ""))
    if message and record.outcome in ("oom", "crash"):
        texts.append(message.encode())
    for name in logs:
        texts.append(_tail(name))
    for text in texts:
        recognized = failure_in(text)
        if recognized is not None and recognized.is_oom:
            blame(record, "oom", {**_leaves(recognized), "message": message or recognized.message})
            return
    for line in _lines_of_hangs(texts) if record.outcome == "crash" else ():
        blame(record, "hang", {"class": "not_oom", "message": line})
        return


def _lines_of_hangs(texts: Iterable[bytes]) -> Iterator[str]:
    """The lines in which somebody gives up waiting, without secrets."""
    from receipts.emit.failures import LONGEST, hangs
    from receipts.emit.secrets import redact

    for text in texts:
        for line in text.decode(errors="replace").splitlines():
            if hangs(line[:LONGEST]):
                yield redact(line.strip()[:LONGEST])


def failure_in(text: bytes) -> AllocationFailure | None:
    """The failed allocation that began what a text tells; None where it tells of none."""
    from receipts.ingest.evidence.memory.classify import first_cause
    from receipts.ingest.evidence.memory.oom import OomReader
    from receipts.ingest.evidence.scan import scan

    scanned = scan([text.rstrip(b"\n") + b"\n"], [OomReader])
    return first_cause(item for reading in scanned for item in reading.failures if item.fatal)


def _leaves(failure: AllocationFailure) -> dict[str, Any]:
    names = ("requested_bytes", "used_bytes", "free_bytes", "limit_bytes", "operator", "chip")
    figures = {name: getattr(failure, name) for name in names}
    # The ordinal in a message is the one that the process sees.
    return {**figures, "class": failure.class_, "phase": failure.phase, "device": figures.pop("chip")}


LARGEST_LOG = 64 << 20


def _tail(name: str) -> bytes:
    try:
        with Path(name).open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - LARGEST_LOG))
            return stream.read(LARGEST_LOG)
    except OSError as error:
        raise InputError(name, [Problem("", f"it cannot be read: {error.strerror or error}")]) from None


def check(raw: bytes, source: str) -> None:
    """Refuse to write what is no receipt: journals and parts may have been changed on the way. Raises InputError."""
    from receipts.receipt import Document, parse

    parse(Document(raw, source))
