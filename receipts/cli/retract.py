"""``receipts retract`` and ``purge``: a receipt that no longer counts, or counts again, and one that no longer is."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb


@verb("retract")
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="The reason; shown wherever the receipt is quoted.")
@click.option("--withdraw", is_flag=True, help="Withdraw its retraction: the receipt counts again.")
def command(session: Session, receipt: str, reason: str, withdraw: bool) -> Answer:
    """Retract a receipt. It stays in the store with the reason, and comparisons no longer accept it.

    Examples:
      receipts retract 3f9c --reason "never ran: the log is of another job"
      receipts retract 3f9c --withdraw --reason "it did run: the log was the right one"

    To replace a receipt by a better one of the same launch, submit the better one with run.supersedes.
    """
    store = session.store
    stored = store.resolve(receipt)
    if withdraw:
        store.reinstate(stored, reason)
        text = f"{stored[:12]} stands again: {reason}"
        return Answer({"id": stored, "retracted": False, "reason": reason}, text)
    store.retract(stored, reason)
    return Answer({"id": stored, "retracted": True, "reason": reason}, f"retracted {stored[:12]}: {reason}")


@verb("purge")
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="Why; kept with the id.")
@click.option("--yes", is_flag=True, help="Do not ask. There is no way back.")
def purge(session: Session, receipt: str, reason: str, yes: bool) -> Answer:
    """Erase a receipt for good, for a leaked secret. Its id, the reason and the time stay.

    Examples:
      receipts purge 3f9c --reason "the command line held a token" --yes
    """
    from receipts.receipt.parse import listed_digests
    from receipts.workflows.collect import forget

    store = session.store
    stored = store.resolve(receipt)
    if not yes and not _agreed(stored):
        return Answer({"id": stored, "purged": False}, code=1, notes=("nothing was erased",))
    files = listed_digests(store.parsed(stored))
    store.purge(stored, reason)
    forget(store, files)
    data = {"id": stored, "purged": True, "reason": reason}
    note = "copies and backups made before still hold it"
    return Answer(data, f"purged {stored[:12]}: {reason}", notes=(note,))


def _agreed(receipt: str) -> bool:
    try:
        return click.confirm(f"Erase {receipt[:12]} and every verdict on it? There is no way back.", err=True)
    except click.Abort:
        raise UsageError("nobody answered and nothing was erased; add --yes where nobody can") from None
