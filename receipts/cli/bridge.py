"""``receipts bridge``: the chain of accepted one-axis receipts from A to B, or the cheapest runs that make one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.neighbours import NOT_INDEXED
from receipts.cli.session import Session, two
from receipts.cli.sides import METRIC
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.bridge.bridge import Bridge


@verb("bridge")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@METRIC
@click.option("--plan", "folder", metavar="DIR", help="Write the missing runs here as plans for receipts run.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Judge at most this many hops.",
)
@click.option("--svg", "svg", metavar="FILE", help="Also write the bridge as a waterfall picture.")
@click.option("--dot", "as_dot", is_flag=True, help="Print the configurations and hops for Graphviz.")
def command(
    session: Session, a: str, b: str, metric: str, folder: str | None, most: int, svg: str | None, as_dot: bool
) -> Answer:
    """Show the shortest chain of accepted receipts from A to B, each one axis from the next.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; a label may name launches of two
    configuration. If the store has no chain, prints the fewest configurations that would complete one.

    Examples:
      receipts bridge 3f9c 81aa
      receipts bridge @golden candidate.json --metric step_seconds
      receipts bridge 3f9c 81aa --plan missing
      receipts bridge 3f9c 81aa --svg bridge.svg
      receipts bridge 3f9c 81aa --dot | dot -Tsvg > paths.svg

    Each hop changes one axis and is judged in its session, with witnesses, as receipts compare does; the gain of a hop
    is the gain of its axis. More: docs/bridge.md. Exit codes: 0 there is a bridge of accepted hops, 1 there is none and
    no further run can make one (every way has a rejected hop), 2 wrong call or input, 3 there is none yet (hops are
    missing or undecided).
    """
    from receipts.publish.bridge import page, picture
    from receipts.questions.bridge.bridge import bridge
    from receipts.questions.bridge.data import as_data, dot

    if as_dot and session.as_json:
        raise UsageError("--dot and --json are two forms of one answer; ask for one of them")
    sides = two(session.store, a, b)
    bridged = bridge(session.store, *sides, session.rulebook, metric=metric, most=most, progress=session.progress.at)
    written = _write(Path(folder), bridged) if folder is not None else []
    if svg is not None:
        output.picture(svg, picture(bridged), "there is no bridge with a number on every hop")
    plans = {"plans": written} if folder is not None else {}
    if as_dot:
        return Answer(None, dot(bridged).rstrip("\n"), bridged.exit_code)
    notes = () if bridged.indexed else (NOT_INDEXED,)
    return Answer(lambda: as_data(bridged) | plans, lambda: page(bridged, plans.get("plans")), bridged.exit_code, notes)


def _write(folder: Path, bridge: Bridge) -> list[str]:
    """Write the plans of the missing runs, all or none; gives their paths in the order of the chain."""
    from receipts.questions.plan import file_name

    runs = bridge.route.runs if bridge.route is not None else ()
    if not runs:
        output.note(f"{folder} is not written: nothing is missing that a run could give")
        return []
    paths = [folder / f"{number:02d}-{file_name(run.label)}.json" for number, run in enumerate(runs, 1)]
    files.refuse_existing(*paths)
    files.write_folder(folder, {path.name: run.plan for path, run in zip(paths, runs, strict=True)})
    return [str(path) for path in paths]
