"""``receipts decide``: what was decided on a receipt, and why; shown wherever the receipt is quoted."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.decisions import decisions, sentence
from receipts.publish.page import Page

EPILOG = """\b
Examples:
  receipts decide 3f9c drop --reason "faster, and the loss parts after 200 steps"
  receipts decide @golden ship --reason "validated on both hosts"
  receipts decide 3f9c          (what was decided on it)

Nothing is overwritten: every decision is kept, and the last one counts."""


@click.command("decide", epilog=EPILOG)
@click.argument("receipt", metavar="ID")
@click.argument("decision", required=False, type=click.Choice(["ship", "hold", "drop"]))
@click.option("--reason", help="Why; shown wherever the receipt is quoted.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt's decisions as JSON.")
@pass_session
def command(session: Session, receipt: str, decision: str | None, reason: str | None, as_json: bool) -> int:
    """Record a decision about a receipt, or show earlier ones."""
    if (decision is None) is not (reason is None):
        raise UsageError('a decision and its reason go together: receipts decide ID ship|hold|drop --reason "…"')
    with session.open_store() as store:
        stored = store.resolve(receipt)
        if decision is not None and reason is not None:
            store.published.decide(stored, decision, reason)
        record = store.published.decisions([stored])
    name = stored[:12]
    answer = f"{name}: {sentence(record[-1])}" if record else f"nothing was decided on {name}"
    earlier = decisions(record[:-1]) if decision is None else ()
    output.answer(as_json, [item._asdict() for item in record], Page(name, (answer,), sections=tuple(earlier)))
    return 0
