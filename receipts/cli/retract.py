"""``receipts retract``: withdraw a receipt without a successor."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts retract 3f9c --reason "never ran: the log is of another job"

To replace a receipt by a better one of the same launch, submit the better one with run.supersedes."""


@click.command("retract", epilog=EPILOG)
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="The reason; shown wherever the receipt is quoted.")
@click.option("--json", "as_json", is_flag=True, help="Print what was withdrawn as JSON.")
@pass_session
def command(session: Session, receipt: str, reason: str, as_json: bool) -> int:
    """Withdraw a receipt. It stays in the store with the reason, and comparisons no longer accept it."""
    with session.open_store() as store:
        stored = store.resolve(receipt)
        store.retract(stored, reason)
    data = {"id": stored, "retracted": True, "reason": reason}
    output.answer(as_json, data, f"retracted {stored[:12]}: {output.clean(reason)}")
    return 0
