"""``receipts run``: launch a plan, keep a receipt of every attempt, and step down the ladder where memory runs out.

The reporter prints each attempt as it begins and ends, and what the walk came to.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from receipts.api.questions.capacity import plan_of
from receipts.base.errors import UsageError
from receipts.base.units import amount, counted
from receipts.cli import output
from receipts.cli.asked import read_files
from receipts.cli.session import Session, verb
from receipts.emit import identity

if TYPE_CHECKING:
    from receipts.plugins.run.attempt import Attempt, AttemptFolder
    from receipts.questions.ladder import Rung
    from receipts.receipt import Parsed


class RunReporter:
    """Reports a walk on standard error, where the command's own lines do not go."""

    def __init__(self, folder: AttemptFolder, as_json: bool) -> None:
        self._folder = folder
        self._as_json = as_json
        self._faults: list[str] = []

    def begins(self, attempt: Attempt) -> None:
        """An attempt is about to be launched."""
        rung = f" · {_words(attempt.rung)}" if attempt.rung else ""
        output.note(f"attempt {attempt.number}{rung} · launch {attempt.launch[:12]} · {self._folder.of(attempt)}")

    def step(
        self,
        attempt: Attempt | None,
        why: str,
        receipt: Parsed | None = None,
        rung: Rung | None = None,
        fault: str | None = None,
    ) -> None:
        """An attempt has its receipt, or a plan was passed over; ``fault`` is why a receipt is not stored."""
        if attempt is None:
            output.note(why)
        else:
            stored = f"stored {str(attempt.receipt)[:12]}" if attempt.stored else "not stored"
            output.note(f"attempt {attempt.number}: {attempt.outcome}{_failed(receipt)} · {stored} · {why}")
            if fault is not None:
                self._faults.append(fault)
                output.note(f"{fault}\nkeep it with: receipts submit {self._folder.receipt(attempt)}")
        if rung is None:
            return
        for name, skipped in rung.skipped:
            output.note(f"  skipped {_words(name)}: {skipped}")
        if rung.plan is None:
            output.note("  no rung is left: stop and record")
        else:
            changes = ", ".join(f"{path} {_value(old)} → {_value(new)}" for path, (old, new) in rung.changes.items())
            output.note(f"  next rung {_words(rung.name)}: {changes}")

    def end(self, code: int) -> None:
        """The walk is over."""
        rows = self._folder.attempts
        if self._as_json:
            attempts = [asdict(item) for item in rows]
            place = str(self._folder.path)
            output.as_json({"dir": place, "exit_code": code, "attempts": attempts, "faults": self._faults})
        elif not rows:
            output.note("nothing was launched: no rung of the ladder is left; --force launches the plan all the same")
        elif len(rows) > 1:
            ended = (f"{_words(item.rung or 'plan')} {item.outcome}" for item in rows)
            output.note(f"{counted(len(rows), 'attempt')}: {' → '.join(ended)}")


def _failed(receipt: Parsed | None) -> str:
    failure = receipt.receipt.failure if receipt is not None else None
    if failure is None:
        return ""
    parts = [failure.class_, failure.phase, f"chip {failure.chip}" if failure.chip is not None else None]
    words = [_words(str(part)) for part in parts if part]
    if failure.requested_bytes is not None:
        words.append(f"wanted {amount(failure.requested_bytes)}")
    return f" ({', '.join(words)})" if words else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    return "unstated" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@verb("run")
@click.option("--plan", "plan", metavar="PLAN|ID", help="What to launch: a plan, or a receipt to launch again.")
@click.option(
    "--dir", "place", metavar="DIR", help="Folder for plans, logs and receipts.  [default: receipts-run-TIME]"
)
@click.option("--resume", metavar="DIR", help="Resume a run whose `receipts run` was killed.")
@click.option(
    "--retries",
    type=click.IntRange(0),
    help="Launch at most this many smaller plans.  [default: to the ladder's end]",
)
@click.option(
    "--silence",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Stop a command that prints nothing for this long.",
)
@click.option(
    "--grace", type=click.FloatRange(0), default=30, show_default=True, help="Seconds from SIGTERM to SIGKILL."
)
@click.option("--force", is_flag=True, help="Launch a plan even if it is known or predicted to fail.")
@click.option(
    "--nodes", type=int, help="Number of nodes that run the plan together.  [default: the job step's, else 1]"
)
@click.option("--node-rank", type=int, help="The number of this node; node 0 chooses the plans.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…")
def run(
    session: Session,
    plan: str | None,
    place: str | None,
    resume: str | None,
    retries: int | None,
    silence: float | None,
    grace: float,
    force: bool,
    nodes: int | None,
    node_rank: int | None,
    words: tuple[str, ...],
) -> int:
    """Launch a plan's command, watch it, and write a receipt of every attempt.

    If memory runs out at start-up or in the first window that compiles, the next smaller plan of the lane's ladder is
    launched, the same for every rank. A plan that is known or predicted to fail is skipped for the next smaller one.

    Examples:
      receipts run --plan plan.json -- python train.py --micro-batch {batch.micro_batch}
      receipts run --plan plan.json -- torchrun --nproc-per-node 8 train.py --config {plan}
      receipts run --plan 3f9c --retries 2 --silence 600 -- ./launch.sh {batch.micro_batch}
      receipts run --resume receipts-run-20261121-0915
      receipts run --plan p.json --dir /shared/run-7 --nodes 2 --node-rank $RANK -- ./node.sh {plan}
      srun --ntasks-per-node=1 receipts run --plan p.json --dir /shared/run-7 -- ./node.sh {plan}

    In the command, {batch.micro_batch} and any other {leaf} is replaced by that value of the plan, {plan} by the plan's
    file, and {dir} by the attempt's folder; what the command writes into {dir} is read as evidence. Its environment
    holds RECEIPTS_PLAN, RECEIPTS_LAUNCH, RECEIPTS_OUT and RECEIPTS_JOURNAL, which the recorder reads. More:
    docs/run.md. Exit codes: the command's own (128 + n for signal n); 1 if nothing was launched, 2 wrong call, 4 the
    store failed.
    """
    from receipts.plugins.run.command import ChildLimits
    from receipts.plugins.run.launcher import Launcher
    from receipts.plugins.run.walk import Walk

    if nodes is None:
        node_rank, nodes = _place(node_rank)
    node_rank = node_rank or 0
    if nodes < 1 or not 0 <= node_rank < nodes:
        raise UsageError(f"--node-rank {node_rank} of --nodes {nodes}: ranks count from 0 to {max(nodes, 1) - 1}")
    if resume is not None:
        if plan is not None or place is not None or words:
            raise UsageError(
                "--resume goes on with its folder's plan and command; leave --plan, --dir and the command out"
            )
        folder, wanted = _taken_up(Path(resume))
    else:
        folder, wanted = _begun(session, plan, place, words, nodes, node_rank)
    limits, command = ChildLimits(silence, grace), words or folder.command
    launcher = Launcher(folder, limits, command, node_rank, nodes, show=not session.as_json)
    if node_rank:
        return launcher.follow()
    reporter = RunReporter(folder, session.as_json)
    with folder.alone():
        code = Walk(session, folder, wanted, launcher, reporter, retries, force=force).run()
        reporter.end(code)
        return code


def _place(rank: int | None) -> tuple[int, int]:
    """This node and the number of all, from the job's step or the hosts that a scheduler numbers; else one node."""
    numbered = identity.host_of(os.environ) or identity.rank_of(os.environ)
    if rank is not None or numbered is None:
        return rank or 0, 1
    return numbered[1], numbered[2]


def _taken_up(place: Path) -> tuple[AttemptFolder, Parsed]:
    """A folder whose runner was killed, with the plan of its last attempt. Raises UsageError."""
    from receipts.plugins.run.attempt import AttemptFolder
    from receipts.plugins.run.command import alive
    from receipts.questions.plan import parse_plan
    from receipts.receipt import read

    folder = AttemptFolder(place)
    folder.open()
    if folder.over or not folder.attempts:
        raise UsageError(f"{place}: this run is over; see: receipts run --help")
    last = folder.attempts[-1]
    if last.finished is None and last.process is not None and alive(last.process):
        raise UsageError(
            f"{place}: attempt {last.number} still runs as process {last.process[0]}; wait for it, or end it"
        )
    return folder, parse_plan(read(folder.plan(last)))


def _begun(
    session: Session, plan: str | None, place: str | None, words: tuple[str, ...], nodes: int, rank: int
) -> tuple[AttemptFolder, Parsed]:
    """A new folder, with the plan. Nothing is made before plan and command are known to be whole. Raises UsageError."""
    from receipts.plugins.run.attempt import AttemptFolder
    from receipts.plugins.run.command import CommandWords

    if plan is None:
        raise UsageError("name what to launch: --plan PLAN -- COMMAND…, or --resume DIR")
    if not words:
        raise UsageError(f"name the command after --: receipts run --plan {quote(plan)} -- python train.py …")
    if nodes > 1 and place is None:
        raise UsageError("--nodes needs --dir, a folder that every node sees")
    wanted = plan_of(session, read_files((plan,), "plan")[0])
    folder = AttemptFolder(Path(place or f"receipts-run-{datetime.now():%Y%m%d-%H%M%S}"))
    CommandWords(words).filled(wanted, {"plan": folder.path, "dir": folder.path})
    if rank == 0:
        folder.begin(words)
    return folder, wanted
