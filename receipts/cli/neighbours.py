"""``receipts neighbours``: every stored launch one axis away, with its effect and its verdict."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, one, pass_session
from receipts.cli.sides import METRIC

NOT_INDEXED = "the index does not hold every receipt of this lane as it is read; run: receipts db reindex"
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
@METRIC
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
    from receipts.publish.neighbours import page
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    with session.open_store() as store, output.Progress() as shown:
        parsed = one(store, receipt)
        answer = neighbours(store, parsed, session.rulebook, metric=metric, axis=axis, limit=limit, progress=shown.at)
    output.answer(as_json, lambda: as_data(answer), lambda: page(answer, axis))
    if not (answer.indexed or as_json):
        output.note(NOT_INDEXED)
    return answer.exit_code
