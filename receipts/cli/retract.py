"""``receipts retract`` and ``purge``: a receipt that no longer counts, and one that no longer is."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
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
    output.answer(as_json, data, f"retracted {stored[:12]}: {reason}")
    return 0


PURGE_EPILOG = """\b
Examples:
  receipts purge 3f9c --reason "the command line held a token" --yes"""


@click.command("purge", epilog=PURGE_EPILOG)
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="Why; kept with the id.")
@click.option("--yes", is_flag=True, help="Do not ask. There is no way back.")
@click.option("--json", "as_json", is_flag=True, help="Print what was erased as JSON.")
@pass_session
def purge(session: Session, receipt: str, reason: str, yes: bool, as_json: bool) -> int:
    """Erase a receipt for good, for a leaked secret. Its id, the reason and the time stay."""
    from receipts.receipt.written import listed
    from receipts.workflows.collect import forget

    with session.open_store() as store:
        stored = store.resolve(receipt)
        if not yes and not _agreed(stored):
            output.note("nothing was erased")
            return 1
        files = listed(store.parsed(stored))
        store.purge(stored, reason)
        forget(store, files)
    data = {"id": stored, "purged": True, "reason": reason}
    output.answer(as_json, data, f"purged {stored[:12]}: {reason}")
    output.note("copies and backups made before still hold it")
    return 0


def _agreed(receipt: str) -> bool:
    try:
        return click.confirm(f"Erase {receipt[:12]} and every verdict on it? There is no way back.", err=True)
    except click.Abort:
        raise UsageError("nobody answered and nothing was erased; add --yes where nobody can") from None
