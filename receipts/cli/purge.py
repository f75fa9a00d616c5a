"""``receipts purge``: erase a receipt's bytes, leaving a tombstone."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts purge 3f9c --reason "the command line held a token" --yes"""


@click.command("purge", epilog=EPILOG)
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="Why; kept with the id.")
@click.option("--yes", is_flag=True, help="Do not ask. There is no way back.")
@click.option("--json", "as_json", is_flag=True, help="Print what was erased as JSON.")
@pass_session
def command(session: Session, receipt: str, reason: str, yes: bool, as_json: bool) -> int:
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
    output.answer(as_json, data, f"purged {stored[:12]}: {output.clean(reason)}")
    output.note("copies and backups made before still hold it")
    return 0


def _agreed(receipt: str) -> bool:
    try:
        return click.confirm(f"Erase {receipt[:12]} and every verdict on it? There is no way back.", err=True)
    except click.Abort:
        raise UsageError("nobody answered and nothing was erased; add --yes where nobody can") from None
