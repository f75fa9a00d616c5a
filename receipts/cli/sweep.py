"""``receipts sweep``: a grid of launches as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from receipts.cli.session import Session, fetch, is_file
from receipts.cli.sides import METRIC, STUDY, WAIVE, waivers
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.sweep import Sweep


@verb("sweep")
@click.argument("receipts", nargs=-1, required=True, metavar="WHAT…")
@click.option("--vary", "-v", required=True, metavar="AXIS[,AXIS]", help="The axes of the grid, outermost first.")
@click.option("--base", metavar="ID", help="The cell that the others are judged against.  [default: the first]")
@METRIC
@WAIVE
@STUDY
def command(
    session: Session,
    receipts: tuple[str, ...],
    vary: str,
    base: str | None,
    metric: str,
    waive: tuple[str, ...],
    study: str | None,
) -> Answer:
    """Show receipts as a grid: effects against a base, one-axis links, and rejected cells with the reason.

    Examples:
      receipts sweep 'label=grid*' --vary micro_batch,mtp_depth
      receipts sweep runs/a.json runs/b.json runs/c.json --vary path.attention
      receipts sweep 'label=grid*' --vary pipeline --base 3f9c --metric step_seconds
    """
    from receipts.base.errors import UsageError
    from receipts.publish.sweep import page
    from receipts.questions.comparisons import Comparisons
    from receipts.questions.sweep import sweep

    receipts_ = [item for group in fetch(session, receipts) for item in group]
    unique = list({item.id: item for item in receipts_}.values())
    head = fetch(session, [base])[0][0] if base else None
    names = [name.strip() for name in vary.split(",") if name.strip()]
    if not names:
        raise UsageError("--vary names no axis; write --vary micro_batch,mtp_depth")
    stored = session.asks_store or not all(map(is_file, receipts))
    comparisons = Comparisons(session.store if stored else None, session.rulebook)
    options = {"waivers": waivers(waive), "study": study}
    grid = sweep(unique, names, comparisons, metric, head, **options)
    return Answer(lambda: _as_data(grid, metric), lambda: page(grid, metric))


def _as_data(grid: Sweep, metric: str) -> dict[str, Any]:
    from receipts.judging.verdict_json import to_json

    cells = [
        {
            "coordinates": dict(zip(grid.vary, cell.coordinates, strict=True)),
            "launches": [item.id for item in cell.launches],
            "left_out": {item.receipt: item.why for item in cell.lost},
            "refused": cell.refused,
            "against_base": to_json(cell.against_base) if cell.against_base else None,
        }
        for cell in grid.cells
    ]
    links = [{"a": link.a, "b": link.b, "axis": link.axis} for link in grid.links]
    return {"metric": metric, "vary": list(grid.vary), "cells": cells, "links": links}
