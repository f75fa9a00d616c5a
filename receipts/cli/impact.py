"""``receipts impact``: the claims and documents that go stale with a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

if TYPE_CHECKING:
    from receipts.questions.claims.stored import Impact

EPILOG = """\b
Examples:
  receipts impact 3f9c
  receipts impact @golden --json
  receipts impact 3f9c --in docs --in README.md

Documents are those that claims name under quoted_in, reports written from this store, and what --in finds. Exit codes:
0 the receipt is in force, or nothing quotes it; 3 it is superseded or retracted, and what is listed is stale."""


@click.command("impact", epilog=EPILOG)
@click.argument("receipt", metavar="ID")
@click.option("--in", "places", multiple=True, metavar="PATH", help="Also search this file or folder for its id.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def command(session: Session, receipt: str, places: tuple[str, ...], as_json: bool) -> int:
    """List the claims and documents that depend on a receipt. They go stale with the receipt."""
    from receipts.publish.claim import impacted as page
    from receipts.questions.claims.stored import impact

    with session.open_store() as store:
        impacts = impact(store, store.resolve(receipt), [Path(place) for place in places])
    output.answer(as_json, lambda: _document(impacts), lambda: page(impacts))
    return 3 if impacts.stale else 0


def _document(impact: Impact) -> dict[str, object]:
    superseded = impact.superseded
    return {
        "receipt": impact.receipt,
        "superseded": {"by": superseded[0] or None, "reason": superseded[1]} if superseded else None,
        "stale": impact.stale,
        "claims": [
            {"id": claim.id, "text": claim.text, "quoted_in": list(claim.quoted_in)} for _, claim in impact.claims
        ],
        "documents": list(impact.documents),
        "quotes": [item._asdict() for item in impact.quotes],
        "decisions": [item._asdict() for item in impact.decisions],
    }
