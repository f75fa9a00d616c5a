"""``receipts neighbours``: every stored launch one axis away, with its effect and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, is_file, parsed_file, pass_session

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood

SHOWN_UNSTATED = 12

EPILOG = """\b
Examples:
  receipts neighbours 3f9c
  receipts neighbours @golden --axis parallelism.tensor
  receipts neighbours run.json --metric step_seconds --limit 50
  receipts neighbours @golden --json

Each is compared with its replicates and witnesses, as receipts compare does; the best of an axis comes first.
Exit codes: 0 neighbours were found, 2 wrong call or input, 3 none can be compared."""


@click.command("neighbours", epilog=EPILOG)
@click.argument("receipt", metavar="ID|FILE")
@click.option("--axis", "-a", metavar="AXIS", help="Only receipts that differ in this axis; see: receipts axes.")
@click.option("--metric", "-m", default="tokens_per_second", show_default=True, help="The metric to compare.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Show at most this many configurations per axis, the newest.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the neighbours as JSON.")
@pass_session
def command(session: Session, receipt: str, axis: str | None, metric: str, limit: int, as_json: bool) -> int:
    """Show every stored receipt that differs in one axis, with effect and verdict."""
    from receipts.api.neighbours import as_data, axis_named
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    with session.open_store() as store:
        parsed = parsed_file(receipt) if is_file(receipt) else store.get(receipt)
        shown = output.Progress()
        answer = neighbours(store, parsed, session.rulebook, metric=metric, axis=axis, limit=limit, progress=shown.at)
        shown.clear()
    if as_json:
        output.as_json(as_data(answer))
    else:
        _print(answer, axis)
    return answer.exit_code


def _print(neighbourhood: Neighbourhood, axis: str | None) -> None:
    run = neighbourhood.of.receipt.run
    output.line(f"{output.clean(neighbourhood.of.name)}  {neighbourhood.of.id[:12]}")
    output.line(f"   lane {output.clean(run.lane)} · metric {neighbourhood.metric}")
    for name, items in neighbourhood.by_axis.items():
        output.heading(output.clean(name))
        _table(name, items, neighbourhood.more)
    if neighbourhood.refused:
        from receipts.publish.tables import moved

        output.heading("Refused")
        for item in neighbourhood.refused:
            refusal = f"{item.axis} {moved(item)}: {item.entry.name} ({item.entry.id[:12]}): {item.reason}"
            output.wrapped(refusal, 2, 4)
    if not neighbourhood.compared:
        output.line()
        output.wrapped(_nothing(neighbourhood, axis), 0)
    for line in _remarks(neighbourhood):
        output.note(line)


def _table(axis: str, items: Sequence[JudgedNeighbour], more: Sequence[str]) -> None:
    from receipts.publish import tables

    output.lines(output.terminal().table(tables.neighbours(items)))
    if axis in more:
        output.wrapped(f"the newest of this axis; more with --axis {axis} --limit N")
    open_questions = [item for item in items if item.verdict.status == "inconclusive" and item.reason]
    for reason in dict.fromkeys(item.reason for item in open_questions):
        output.wrapped(f"open: {reason}", 2, 4)


def _nothing(near: Neighbourhood, axis: str | None) -> str:
    """Why there is none, and what to do next."""
    where = f"in {axis} alone" if axis is not None else "in one axis alone"
    if near.refused:
        return f"Every launch that differs {where} is refused; receipts compare says what would settle it."
    if near.unstated:
        shown = ", ".join(near.unstated[:SHOWN_UNSTATED])
        rest = len(near.unstated) - SHOWN_UNSTATED
        return (
            f"No stored launch is known to differ {where}: the receipt leaves {len(near.unstated)} axes open and "
            f"names no run.context that holds them ({shown}{f' and {rest} more' if rest > 0 else ''}). State them, or "
            "the context, in this receipt and in those that it is to be compared with."
        )
    return (
        f"No stored launch of lane {near.of.receipt.run.lane} differs {where}. The chain to one that is further away: "
        f"receipts bridge {near.of.id[:12]} ID"
    )


def _remarks(neighbourhood: Neighbourhood) -> list[str]:
    if neighbourhood.indexed:
        return []
    return ["the index does not hold every receipt of this lane as it is read now; run: receipts db reindex"]
