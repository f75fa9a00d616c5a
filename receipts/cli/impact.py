"""``receipts impact``: the claims and documents that go stale with a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.claims.stored import Impact


@verb("impact")
@click.argument("receipt", metavar="ID")
@click.option("--in", "places", multiple=True, metavar="PATH", help="Also search this file or folder for its id.")
def command(session: Session, receipt: str, places: tuple[str, ...]) -> Answer:
    """List the claims and documents that depend on a receipt. They go stale with the receipt.

    Examples:
      receipts impact 3f9c
      receipts impact @golden --json
      receipts impact 3f9c --in docs --in README.md

    Documents are those that claims name under quoted_in, reports written from this store, and what --in finds. Exit
    codes: 0 the receipt is in force, or nothing quotes it; 3 it is superseded or retracted, and what is listed is
    stale.
    """
    from receipts.publish.claim import impacted as page
    from receipts.questions.claims.stored import impact

    store = session.store
    impacts = impact(store, store.resolve(receipt), [Path(place) for place in places])
    return Answer(lambda: _document(impacts), lambda: page(impacts), 3 if impacts.stale else 0)


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
