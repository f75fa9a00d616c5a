"""``receipts decide``: what was decided on a receipt, and why; shown wherever the receipt is quoted."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb
from receipts.publish.decisions import decisions, sentence
from receipts.publish.page import Page, sections_of


@verb("decide")
@click.argument("receipt", metavar="ID")
@click.argument("decision", required=False, type=click.Choice(["ship", "hold", "drop"]))
@click.option("--reason", help="Why; shown wherever the receipt is quoted.")
def command(session: Session, receipt: str, decision: str | None, reason: str | None) -> Answer:
    """Record a decision about a receipt, or show earlier ones.

    Examples:
      receipts decide 3f9c drop --reason "faster, and the loss parts after 200 steps"
      receipts decide @golden ship --reason "validated on both hosts"
      receipts decide 3f9c          (what was decided on it)

    Nothing is overwritten: every decision is kept, and the last one counts.
    """
    if (decision is None) is not (reason is None):
        raise UsageError('a decision and its reason go together: receipts decide ID ship|hold|drop --reason "…"')
    stored = session.store.resolve(receipt)
    published = session.store.published
    if decision is not None and reason is not None:
        published.decide(stored, decision, reason)
    record = published.decisions([stored])
    name = stored[:12]
    answer = f"{name}: {sentence(record[-1])}" if record else f"nothing was decided on {name}"
    earlier = decisions(record[:-1] if decision is None else ())
    return Answer([item._asdict() for item in record], Page(name, (answer,), sections=sections_of(earlier)))
