"""``receipts run``: launch a plan, keep a receipt of every attempt, and step down the ladder where memory runs out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session, named_plan
from receipts.cli.verb import verb

if TYPE_CHECKING:
    from receipts.cli.run_tools import Launcher
    from receipts.receipt import Parsed
    from receipts.workflows.run.attempt import AttemptFolder


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
@click.option("--nodes", type=int, default=1, show_default=True, help="Number of nodes that run the plan together.")
@click.option(
    "--node-rank", type=int, default=0, show_default=True, help="The number of this node; node 0 chooses the plans."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…")
def command(
    session: Session,
    plan: str | None,
    place: str | None,
    resume: str | None,
    retries: int | None,
    silence: float | None,
    grace: float,
    force: bool,
    nodes: int,
    node_rank: int,
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

    In the command, {batch.micro_batch} and any other {leaf} is replaced by that value of the plan, {plan} by the plan's
    file, and {dir} by the attempt's folder; what the command writes into {dir} is read as evidence. Its environment
    holds RECEIPTS_PLAN, RECEIPTS_LAUNCH, RECEIPTS_OUT and RECEIPTS_JOURNAL, which the recorder reads. More:
    docs/run.md. Exit codes: the command's own (128 + n for signal n); 1 if nothing was launched, 2 wrong call, 4 the
    store failed.
    """
    from receipts.cli.run_tools import Launcher
    from receipts.workflows.run.child import ChildLimits
    from receipts.workflows.run.mesh import Mesh, placed

    placed(node_rank, nodes)
    if resume is not None:
        refused = plan is not None or place is not None or words
        if refused:
            raise UsageError(
                "--resume goes on with its folder's plan and command; leave --plan, --dir and the command out"
            )
        folder, wanted = _taken_up(Path(resume))
    else:
        folder, wanted = _begun(session, plan, place, words, nodes, node_rank)
    launcher = Launcher(
        folder, Mesh(node_rank, nodes), ChildLimits(silence, grace), words or folder.command, not session.as_json
    )
    if node_rank:
        return launcher.follow()
    with folder.alone():
        return _walk(session, folder, wanted, launcher, retries, force)


def _taken_up(place: Path) -> tuple[AttemptFolder, Parsed]:
    """A folder whose runner was killed, with the plan of its last attempt. Raises UsageError."""
    from receipts.questions.plan import parse_plan
    from receipts.receipt import read
    from receipts.workflows.run.attempt import AttemptFolder
    from receipts.workflows.run.child import alive

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
    from receipts.workflows.run.attempt import AttemptFolder
    from receipts.workflows.run.words import CommandWords

    if plan is None:
        raise UsageError("name what to launch: --plan PLAN -- COMMAND…, or --resume DIR")
    if not words:
        raise UsageError(f"name the command after --: receipts run --plan {quote(plan)} -- python train.py …")
    if nodes > 1 and place is None:
        raise UsageError("--nodes needs --dir, a folder that every node sees")
    wanted = named_plan(session, plan)
    folder = AttemptFolder(Path(place or f"receipts-run-{datetime.now():%Y%m%d-%H%M%S}"))
    CommandWords(words).filled(wanted, {"plan": folder.path, "dir": folder.path})
    if rank == 0:
        folder.begin(words)
    return folder, wanted


def _walk(
    session: Session,
    folder: AttemptFolder,
    plan: Parsed,
    launcher: Launcher,
    retries: int | None,
    force: bool,
) -> int:
    from receipts.cli.run_text import RunReporter
    from receipts.cli.run_tools import tools
    from receipts.workflows.run.loop import walk
    from receipts.workflows.run.words import CommandWords

    lane = session.rulebook.lanes.of(plan.receipt.run.lane)
    reporter = RunReporter(folder, session.as_json)
    outcome = walk(
        plan,
        lane,
        folder,
        CommandWords(folder.command),
        tools(session, folder, lane, launcher, reporter, force),
        retries,
    )
    reporter.end(outcome)
    return outcome.code
