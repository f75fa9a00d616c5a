"""``receipts record``: launch a command as it is, record what it trains, and submit the receipt.

One command, several times; or two commands in turns, which are one session, and then their comparison.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from receipts.base.errors import UsageError, near
from receipts.cli import output
from receipts.cli.session import Session, print_answer, verb
from receipts.emit import identity
from receipts.emit.identity import uuid_of

if TYPE_CHECKING:
    from receipts.plugins.run.outer_clock import Recorded
    from receipts.workflows.evidence import Amended

RECOMMENDED_STEPS = 300
STEPS_FOR_WHY = 8


class Side(NamedTuple):
    """A command, and the label of its launches."""

    label: str | None
    words: tuple[str, ...]


class WithDashes(click.Command):
    """A command that knows what stood behind ``--``: there it is one command, before it each word is a side."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words behind ``--`` apart."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["receipts.command"], args = tuple(args[at + 1 :]), args[:at]
        return super().parse_args(ctx, args)


@verb("record", json=False, kind=WithDashes)
@click.option("--lane", metavar="LANE", help="The lane of the launch.  [default: that of its framework and chip]")
@click.option("--name", "label", metavar="LABEL", help="The label of the launches.")
@click.option("-n", "--launches", type=click.IntRange(1, 1000), default=1, show_default=True, help="Launches a side.")
@click.option(
    "--intend",
    "intended",
    multiple=True,
    metavar="NAME=VALUE",
    help="The path that you mean, such as attention=te_fused.  [default: what the lane promises]",
)
@click.option("--why", is_flag=True, help="Trace eight steps, for: receipts why A B.")
@click.option("--no-submit", is_flag=True, help="Store nothing: leave run.json, and run.evidence/ beside it.")
@click.argument("sides", nargs=-1, metavar="[SCRIPT SCRIPT | -- COMMAND…]")
def record(
    session: Session,
    lane: str | None,
    label: str | None,
    launches: int,
    intended: tuple[str, ...],
    why: bool,
    no_submit: bool,
    sides: tuple[str, ...],
) -> int:
    """Launch a training command, and record it without a line of it changed.

    The command runs as it would by itself: its input and output, its signals, its exit code. Each Python process below
    it watches for a training loop of PyTorch and records its steps, model, path, machine and inputs; the launcher times
    the steps by a clock of its own (R207). The receipt is stored with its trace, and its verdict printed on standard
    error.

    Two scripts, or commands in quotes, are launched in turns, -n times each, as one session; their comparison follows.

    Examples:
      receipts record -- python train.py
      receipts record --name base -- torchrun --nproc-per-node 8 train.py --compile
      receipts record -n 5 a.sh b.sh
      receipts record -n 3 "python train.py --lr 1e-3" "python train.py --lr 3e-3"
      receipts record --no-submit -- uv run train.py

    Exit codes: that of the command, 128 and more for a signal; of two commands that of their comparison, unless one
    fails. 2 the call is wrong.
    """
    asked = recorder_settings(session, lane, intended, why=why)
    wanted = _sides(click.get_current_context().meta.get("receipts.command"), sides, label)
    several = launches > 1 or len(wanted) > 1
    # Launchers of one step of a job, each with its ranks, are of one session, and name each launch alike.
    step = identity.attempt_of(os.environ) if several and identity.among_several(os.environ) else ()
    if several:
        session_id = uuid_of("session", *step) if step else str(uuid.uuid4())
        asked["RECEIPTS_SESSION"] = os.environ.get("RECEIPTS_SESSION") or session_id
    stored: list[list[str]] = [[] for _ in wanted]
    for number in range(launches):
        for side, names in zip(wanted, stored, strict=True):
            if several:
                output.note(f"receipts: {side.label or shlex.join(side.words)[:60]}, {number + 1} of {launches}")
            own = {"RECEIPTS_LABEL": side.label} if side.label else {}
            if step:
                own["RECEIPTS_LAUNCH"] = uuid_of("record", *step, str(number), str(wanted.index(side)))
            code, stored_now = launch(session, side.words, {**asked, **own}, no_submit=no_submit)
            names += stored_now
            if code:
                if several and (number + 1 < launches or side is not wanted[-1]):
                    output.note("receipts: it failed, so nothing more is launched")
                return code if code > 0 else 128 - code
    if len(wanted) < 2 or not all(stored):
        return 0
    from receipts.api.questions.compare import compare

    return max(print_answer(session, compare(session, tuple(stored[0]), tuple(other))) for other in stored[1:])


def recorder_settings(
    session: Session, lane: str | None, intended: Sequence[str] = (), *, why: bool = False
) -> dict[str, str]:
    """What the recorder is told by the environment. Raises NotFound for a lane, UsageError for a name, of none."""
    from receipts.receipt.configuration import Intended

    asked = {"RECEIPTS_LANE": session.rulebook.lanes.get(lane).name} if lane else {}
    pairs = dict(pair.partition("=")[::2] for item in intended for pair in item.split(","))
    for name, value in pairs.items():
        known = list(Intended.model_fields)
        if name not in known:
            raise UsageError(f"--intend {name}={value}: one of {', '.join(known)}, and a value{near(name, known)}")
        if not value:
            raise UsageError(f"--intend {name}: give the value that you mean: --intend {name}=VALUE")
    if pairs:
        asked["RECEIPTS_INTEND"] = ",".join(f"{name}={value}" for name, value in pairs.items())
    return asked | ({"RECEIPTS_WITNESS": str(STEPS_FOR_WHY)} if why else {})


def _sides(command: tuple[str, ...] | None, words: tuple[str, ...], label: str | None) -> list[Side]:
    """The commands to launch. Without ``--`` each word is one, where it is a script or has blanks; else all are one."""
    if command is not None and words:
        raise UsageError(f"{words[0]} stands before --, and the command behind it: give scripts, or one command")
    if command or (words and not all(" " in word.strip() or is_script(word) for word in words)):
        return [Side(label, command or words)]
    if not words:
        raise UsageError("name the command: receipts record -- python train.py; or two scripts: a.sh b.sh")
    labels = [Path(word).stem if is_script(word) else word for word in words]
    if len(words) > 1 and (label or len(set(labels)) < len(labels)):
        why = "--name is for one command" if label else f"two sides are called {labels[0]}"
        raise UsageError(f"{why}; several have the names of their scripts")
    return [
        Side(label if len(words) == 1 else own[:200], words_of(word)) for own, word in zip(labels, words, strict=True)
    ]


def is_script(word: str) -> bool:
    return os.path.isfile(word) and (os.access(word, os.X_OK) or word.endswith((".sh", ".py")))


def words_of(word: str) -> tuple[str, ...]:
    """The words that run a script, or the words of a command in quotes."""
    if not is_script(word):
        try:
            return tuple(shlex.split(word))
        except ValueError as error:
            raise UsageError(f"{word}: these are no words of a command: {error}") from None
    if os.access(word, os.X_OK):
        return (os.path.join(os.curdir, word) if os.sep not in word else word,)
    return ("python" if word.endswith(".py") else "sh", word)


def launch(
    session: Session,
    words: Sequence[str],
    asked: Mapping[str, str],
    at: Path | None = None,
    out: int | None = None,
    *,
    no_submit: bool = False,
    quiet: bool = False,
    limit: float | None = None,
) -> tuple[int, list[str]]:
    """Launch once, and submit what it recorded; the command's code, and the ids of its receipts, or their files.

    It runs in the folder ``at`` and prints to the file descriptor ``out``; ``quiet`` says no verdict; it is ended after
    ``limit`` seconds. A service of this plugin: *launch*.
    """
    from receipts.ingest.draft import Options
    from receipts.plugins.run.outer_clock import LaunchFolder, ObservedLaunch
    from receipts.receipt import parse, read
    from receipts.workflows.evidence import amended

    names: list[str] = []
    with _folder() as place:
        folder = LaunchFolder(place)
        seen = ObservedLaunch(words, folder, folder.environment(os.environ, asked), at, out, limit)
        recorded = seen.receipts()
        if not recorded:
            output.note(f"receipts: nothing was recorded: {seen.silence()}")
        for item in recorded:
            output.note(f"receipts: {item.note}") if item.note else None
            if item.parts and not no_submit:
                names += _collected(session, item, quiet=quiet)
                continue
            # The receipt with what its evidence shows: the outer clock, the journal, the trace that it lists.
            listed = [row.uri for row in parse(read(str(item.receipt))).receipt.evidence or () if row.uri]
            files = [*map(str, item.evidence), *(uri for uri in listed if os.path.isfile(uri))]
            lanes = session.rulebook.lanes
            options = Options(None, None, {}, tuple(lanes.get(name) for name in lanes.names()))
            whole = amended(str(item.receipt), files, None, options)
            names.append(_left(whole) if no_submit else _submitted(session, whole, quiet=quiet))
    return seen.exit_code, names


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for one launch, which stays only where what it holds could not be stored."""
    place = Path(tempfile.mkdtemp(prefix="receipts-record-"))
    try:
        yield place
    except Exception:
        if any(file.is_file() for file in place.rglob("*")):
            output.note(f"receipts: what was recorded lies in {place}")
            raise
        shutil.rmtree(place, ignore_errors=True)
        raise
    shutil.rmtree(place, ignore_errors=True)


def _collected(session: Session, item: Recorded, *, quiet: bool) -> list[str]:
    """Hand this host's parts to the server, or to the store; the receipt's id where they complete the launch."""
    from receipts.emit import document
    from receipts.receipt import Document
    from receipts.store.evidence import kept_files
    from receipts.workflows.evidence import Amended, is_journal
    from receipts.workflows.recorded import forget_parts, keep_part, parts_folder, read, waiting_words

    for path in item.parts:
        raw = "".join(document.file_text(read(str(path)))).encode() if is_journal(path) else path.read_bytes()
        tree = json.loads(raw)
        listed = (row.get("uri") or "" for row in tree["receipt"].get("evidence", ()))
        evidence = [Path(uri) for uri in listed if os.path.isfile(uri)]
        if session.server is not None:
            for file in evidence:
                session.server.keep(file)
            data = session.server.ask("POST", "/v1/parts", body=raw).data
            if "id" in data:
                output.note(f"receipts: every rank is there; stored as {data['id'][:12]}, {data['status']}")
                return [data["id"]]
            status, join = data["status"], f"receipts merge --send --partial {tree['launch']}"
        else:
            with session.open_store() as store:
                if (kept := kept_files(store.database.address)) is not None:
                    for file in evidence:
                        kept.put(file)
                waiting = keep_part(parts_folder(store.database.address), raw, partial=False)
            if waiting.receipt is not None:
                stored = _submitted(session, Amended(Document(waiting.receipt, str(item.receipt))), quiet=quiet)
                forget_parts(waiting)
                return [stored]
            status, join = waiting_words(waiting), f"receipts merge --partial {waiting.folder} -o run.json"
    output.note(f"receipts: {status}; other hosts have the rest. What there is, if they never come: {join}")
    return []


def _left(whole: Amended) -> str:
    """Leave the receipt and its evidence in this folder, beside what is there; the file's name."""
    from receipts.emit import files
    from receipts.receipt import parse

    launch = parse(whole.document).receipt.run.launch
    path = files.write([whole.document.raw.decode()], os.environ.get("RECEIPTS_OUT") or files.RECEIPT, launch)
    beside = Path(path).with_suffix(".evidence")
    beside.mkdir(exist_ok=True)
    for file in whole.files:
        shutil.copy2(file, beside)
    output.note(f"receipts: wrote {path}; store it with: receipts submit {path} --evidence {beside}")
    return path


def _submitted(session: Session, whole: Amended, *, quiet: bool) -> str:
    """Store the receipt with its evidence, and say its verdict; its id. Raises InputError where it is refused."""
    from receipts.cli.submit import spooling
    from receipts.judging.findings import grouped
    from receipts.judging.verdict import Level
    from receipts.publish.verdict import offense, outcome
    from receipts.receipt import parse
    from receipts.stats.steady import MINIMUM_STEPS
    from receipts.workflows.evidence import keep_evidence
    from receipts.workflows.submit import submit

    with spooling(session, [whole.document], []) as kept:
        if session.server is not None:
            for file in whole.files:
                session.server.keep(file)
            (item,) = session.server.submit(kept.items)
        else:
            with session.open_store() as store:
                keep_evidence(store, whole)
                (item,) = submit(kept.items, store, session.rulebook, extracts={whole.document.id: whole.extracts})
        kept.items.settle()
        if item.error is not None:
            raise item.error
        if quiet:
            return whole.document.id
        output.note(output.terminal().text(outcome(item, alone=True)).rstrip("\n"))
        if (verdict := item.verdict) is None:
            return whole.document.id
        # The lane that the receipt is of, why it is invalid, and how many steps would do where it is unsteady.
        output.note(f"receipts: lane {verdict.lane}; its numbers: receipts show {verdict.receipt[:12]}")
        if errors := grouped(verdict.findings).at(Level.ERROR):
            output.note(f"receipts: {'; '.join(offense(errors))}")
        segment = session.rulebook.launch(parse(whole.document)).segment
        if segment is not None and segment.status in ("too_few", "unsteady"):
            # A level that moves settles, or it does not: twice the run shows which.
            would = max(RECOMMENDED_STEPS, 2 * segment.stop)
            if segment.status == "too_few":
                least = session.rulebook.lanes.of(verdict.lane.partition("@")[0]).minimum_steps
                would = segment.stop + max(least, MINIMUM_STEPS) - segment.kept
            output.note(f"receipts: {segment.reason}; {would:,} steps would do, and {segment.stop:,} ran")
    return whole.document.id
