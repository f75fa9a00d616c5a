"""``receipts ingest``, ``merge``, ``recover`` and ``init``: the receipt of a run, from what it left or from a skeleton.

``ingest`` reads logs, profiles and reports, ``merge`` the parts of many ranks, ``recover`` the journal of a run that
ended before it could write its own receipt. ``init`` writes the skeleton of a receipt or plan for a lane.
"""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.files import refuse_existing, write
from receipts.cli import output
from receipts.cli.session import Answer, Session, print_answer, verb
from receipts.publish.terminal import clean

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.ingest.assembly import Ingested
    from receipts.ingest.draft import Options
    from receipts.ingest.evidence import FileEvidence

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
def ingest(
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
    from receipts.ingest.assembly import assemble
    from receipts.ingest.files import gather, given
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
        print_answer(session, Answer(lambda: as_data(*parts), lambda: page(*parts)))
        code = 2
        if known:
            code = _end(session, evidence, ingested, receipt, path, submitting)
        else:
            output.note("receipts: no reader knows any of these files; docs/ingest.md lists what is read")
    if path == "-" and receipt is not None:
        sys.stdout.write(receipt.decode())
    return code


def _options(
    session: Session, lane: str | None, settings: tuple[str, ...], kind: str | None, witness_for: str | None
) -> Options:
    from receipts.ingest.draft import Options
    from receipts.ingest.leaves import read_settings

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


def _end(
    session: Session,
    evidence: Sequence[FileEvidence],
    ingested: Ingested,
    receipt: bytes | None,
    path: str | None,
    submitting: bool,
) -> int:
    """Store it where asked to, and say what comes next; the exit code."""
    if receipt is None:
        output.note(f"receipts: there is no receipt yet\n{InputError('receipt', ingested.problems)}")
        return 2
    if submitting:
        from receipts.receipt import Document
        from receipts.workflows.evidence import extracts_in

        document = Document(receipt, path or "ingested")
        outcome = session.submit_one(document, extracts_in(evidence, ingested))
        if outcome.error is not None:
            output.refuse(outcome.error)
            return 2
        verdict = outcome.verdict
        state = f"{verdict.status} · path {verdict.path}" if verdict is not None else ""
        known = "" if outcome.submitted is not None and outcome.submitted.new else " (it was there already)"
        output.note(f"stored {document.id[:12]}{known}: {state}")
        return 0
    if not session.as_json:
        output.line()
        if path not in (None, "-"):
            output.line(f"wrote {path}; next: receipts check {path}")
        elif path is None:
            output.line(f"nothing was written; {_next(evidence, ingested)}")
    return 0


def _next(evidence: Sequence[FileEvidence], ingested: Ingested) -> str:
    """The one step that helps most: times of steps, where they lack, and else the receipt."""
    lacking = [item.get for item in ingested.missing if item.path == "measurement.step_durations_seconds"]
    if not lacking:
        return "-o run.json writes the receipt, --submit stores it"
    if not any(len(reading.steps) or reading.means for file in evidence for reading in file.readings):
        return "next: add the run's log, no file here times a step"
    return f"no single step is timed: {lacking[0]}"


def _reading(shown: output.Progress) -> Callable[[str, int, int], None]:
    """Which file is being read, and how far."""

    def at(name: str, done: int, size: int) -> None:
        # A packed file holds more than lies on the disk: how much is not known before it is read.
        share = f" of {size / 1e6:,.0f} MB" if done <= size else ""
        shown.text(f"{clean(name)[:60]}: {done / 1e6:,.0f} MB{share}")

    return at


@verb("merge")
@click.argument("parts", nargs=-1, required=True, metavar="PART|JOURNAL…")
@click.option("--output", "-o", "path", metavar="FILE", help="Write here, - for standard output.")
@click.option("--partial", is_flag=True, help="Write a receipt even if ranks are missing.")
@click.option("--send", is_flag=True, help="Send the parts to the server, which merges them when all are there.")
def merge(session: Session, parts: tuple[str, ...], path: str | None, partial: bool, send: bool) -> int:
    """Merge the PARTS that the ranks of one launch wrote into one receipt.

    The receipt holds the memory of every chip, the slowest rank's time for every step, and how much the ranks differ.
    The same parts give the same bytes.

    Examples:
      receipts merge run.rank*.part.json -o run.json
      receipts merge run.rank*.part.json run.1f8e2a3c-4711.journal -o run.json
      torchrun --nproc-per-node 8 train.py; receipts merge out/*.part.json -o run.json
      receipts --store https://receipts.example.org merge --send run.rank00003.part.json
      receipts --store https://receipts.example.org merge --send --partial LAUNCH

    A rank that was killed leaves a journal instead of a part; give it along with the parts.
    Exit codes: 0 every rank is there and all agree, 1 ranks disagree, 2 the parts are not of one launch, or the call is
    wrong, 3 ranks are missing (--partial still writes the receipt).
    """
    from receipts.publish.ingested import merged as page
    from receipts.workflows.recorded import check, merge_files, parts_in

    if (path is None) != send:
        raise UsageError("name the receipt with -o FILE, or --send the parts to a server; one of both")
    if path is None:
        return _sent(session, parts_in(parts), partial)
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
        print_answer(session, Answer({"written": written, **run, **problems}, lambda: page(merged, written)))
    return 3 if merged.missing else 1 if merged.disagreements else 0


def _sent(session: Session, names: Sequence[str], partial: bool) -> int:
    """Send parts to the server, the journal of a rank as its part; with ``partial`` the last one ends the launch."""
    from receipts.emit import document
    from receipts.workflows.evidence import is_journal
    from receipts.workflows.recorded import read

    if session.server is None:
        raise UsageError("--send needs a server: receipts --store https://HOST merge --send PART")
    data: dict[str, Any] = {}
    for number, name in enumerate(names, 1):
        query = [("partial", "true")] if partial and number == len(names) else []
        try:
            if partial and not Path(name).exists():
                data = session.server.ask("POST", "/v1/parts", query, json.dumps({"launch": name}).encode()).data
                continue
            journal = is_journal(Path(name))
            raw = "".join(document.file_text(read(name))).encode() if journal else Path(name).read_bytes()
        except OSError as error:
            raise InputError(name, [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None
        data = session.server.ask("POST", "/v1/parts", query, raw).data
    stored = f"stored as {data['id'][:12]}, {data['status']}" if "id" in data else str(data["status"])
    print_answer(session, Answer(data, lambda: f"{len(names)} sent; {stored}"))
    return 0 if "id" in data else 3


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
def recover(session: Session, journal: str, path: str | None, logs: tuple[str, ...], outcome: str | None) -> Answer:
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
    from receipts.publish.ingested import recovered
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


@verb("init", json=False)
@click.argument("lane")
@click.option(
    "--output",
    "-o",
    "path",
    type=click.Path(dir_okay=False),
    help="Write here; an existing file is not overwritten.",
)
def init(session: Session, lane: str, path: str | None) -> Answer:
    """Write a receipt template for LANE: required keys are filled, every other axis of the lane is null.

    A null means *not stated*. Fill in what is known and leave the rest.

    Examples:
      receipts init nvidia-megatron > run.json
      receipts init cpu-torch -o run.json
    """
    text = json.dumps(skeleton(session.rulebook.lanes.get(lane)), indent=2) + "\n"
    if path is None:
        return Answer(None, text.rstrip())
    files.write(path, text)
    return Answer(None, notes=(f"wrote {path}; fill it in, then: receipts check {path}",))


def skeleton(lane: Lane) -> dict[str, Any]:
    """The document as data: required keys, then every axis that exists for the lane, unstated."""
    from receipts.ingest.leaves import put
    from receipts.receipt import VERSION
    from receipts.receipt.leaf import Role
    from receipts.receipt.leaves import leaves

    document: dict[str, Any] = {
        "schema_version": VERSION,
        "run": {
            "launch": str(uuid.uuid4()),
            "lane": lane.name,
            "kind": "training",
            "outcome": "ok",
            "provenance": "measured",
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "finished": None,
            "context": None,
            "host": None,
        },
    }
    wanted = {Role.AXIS, Role.REPLICATE, Role.DERIVED, Role.WORK, Role.REGIME}
    for leaf in leaves():
        shown = leaf.path.replace("path.intended.", "path.")
        if "[]" in leaf.path or (leaf.role not in wanted and not leaf.path.startswith("path.witnessed.")):
            continue
        if leaf.path.startswith("run.") or not lane.applies(shown):
            continue
        if leaf.path.endswith(".*"):
            document.setdefault(leaf.path[:-2], {})
        else:
            put(document, leaf.path, None)
    document.setdefault("measurement", {})["step_durations_seconds"] = None
    document.setdefault("memory", {})["chips"] = None
    return document
