"""What a submit does where the store's server does not answer: it keeps what is left for `receipts flush`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from receipts.base.errors import InputError, StoreError, Unreachable
from receipts.cli import output
from receipts.cli.session import Session

if TYPE_CHECKING:
    from receipts.receipt.stream import Item
    from receipts.workflows.spool import Pending

SHOWN = 5


@dataclass
class Spooling:
    """What became of a submit's rest: the exit code, 0 where nothing had to be kept, and a row for each document.

    ``lost``: some could not be kept either.
    """

    items: Pending[Item]
    rows: list[dict[str, Any]]
    code: int = 0
    lost: bool = False


@contextmanager
def spooling(
    session: Session, documents: Iterable[Item], rows: list[dict[str, Any]], *, keeps: bool = True
) -> Iterator[Spooling]:
    """Around a submit: where the server cannot be reached, keep every document that it was not told the end of.

    Without ``keeps`` they are not kept: a spool has no signatures, and would send them unsigned.
    Other faults of a store pass: a user who may not write, or a full disk, is nothing that waiting mends.
    """
    from receipts.workflows.spool import Pending

    spooling = Spooling(Pending(documents), rows)
    try:
        yield spooling
    except Unreachable as error:
        if not keeps:
            raise
        spooling.code = error.exit_code
        _keep(session, spooling, error)
    else:
        remind(session)


def _keep(session: Session, spooled: Spooling, error: Unreachable) -> None:
    from receipts.workflows import spool

    target = session.target
    assert target is not None  # a file is never out of reach
    output.refuse(error)
    kept = 0
    rest = spooled.items.rest()
    lost: list[str] = []
    try:
        for item in spool.keep(rest, target):
            if isinstance(item, InputError):
                output.refuse(item)
                spooled.rows.append({"source": item.source, "error": str(item)})
            else:
                kept += 1
                spooled.rows.append({"source": item.source, "id": item.id, "spooled": True})
    except StoreError as failed:
        output.refuse(failed)
        spooled.lost = True
        lost = [_source(item) for item in rest]
        spooled.rows += ({"source": source, "error": f"not kept: {failed}"} for source in lost)
    if lost:
        shown = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN:,} more" if len(lost) > SHOWN else "")
        output.note(f"nor are the {len(lost):,} after it: {shown}")
    if kept:
        output.note(
            f"{'nothing is lost: ' if not spooled.lost else ''}{kept:,} kept in {spool.place(target)}\n"
            f"when the server is back, store them with: {_flush(session)}"
        )


def _source(item: Item) -> str:
    return item if isinstance(item, str) else item.source


def remind(session: Session) -> None:
    """Say that documents wait for this store, where some do."""
    target = session.target
    if target is None:
        return
    from receipts.workflows import spool

    waiting = spool.count(target)
    if waiting:
        output.note(f"{waiting:,} kept earlier still wait for this store; store them with: {_flush(session)}")


def _flush(session: Session) -> str:
    """The command that drains the spool of the store that this command was given."""
    from receipts.store.address import address

    if not session.asks_store:
        return "receipts flush"
    named = session.server.url if session.server is not None else address(session.store_url)
    return f"receipts --store '{named}' flush"
