"""``receipts neighbours``: every stored launch one axis away, with its effect and its verdict."""

from __future__ import annotations

import click

from receipts.cli.session import Session, one
from receipts.cli.sides import METRIC
from receipts.cli.verb import Answer, verb

NOT_INDEXED = "the index does not hold every receipt of this lane as it is read; run: receipts db reindex"


@verb("neighbours")
@click.argument("receipt", metavar="ID|FILE")
@click.option("--axis", "-a", metavar="AXIS", help="Only receipts that differ in this axis; see: receipts axes.")
@METRIC
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Show at most this many configurations per axis, the newest.",
)
def command(session: Session, receipt: str, axis: str | None, metric: str, limit: int) -> Answer:
    """Show every stored receipt that differs in one axis, with effect and verdict.

    Examples:
      receipts neighbours 3f9c
      receipts neighbours @golden --axis parallelism.tensor
      receipts neighbours run.json --metric step_seconds --limit 50
      receipts neighbours @golden --json

    Each is compared in its session and with its witnesses, as receipts compare does; the best of an axis comes first.
    Exit codes: 0 neighbours were found, 2 wrong call or input, 3 none can be compared.
    """
    from receipts.api.neighbours import as_data
    from receipts.axes import axis_named
    from receipts.publish.neighbours import page
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    of, advance = one(session.store, receipt), session.progress.at
    answer = neighbours(session.store, of, session.rulebook, metric=metric, axis=axis, limit=limit, progress=advance)
    notes = () if answer.indexed else (NOT_INDEXED,)
    return Answer(lambda: as_data(answer), lambda: page(answer, axis), answer.exit_code, notes)
