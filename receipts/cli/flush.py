"""Documents kept where a server does not answer: a submit keeps what is left, and ``receipts flush`` stores it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from receipts.base.errors import InputError, StoreError, Unreachable, UsageError
from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.receipt.load import Item
    from receipts.workflows.spool import Flushed, Pending

SHOWN = 5


@dataclass
class Spooling:
    """The rest of a submit: the exit code, 0 if nothing had to be kept, and a row for each document.

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
    """Around a submit: if the server cannot be reached, keep every document that it did not confirm.

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
        for text in waiting(session):
            output.note(text)


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


def waiting(session: Session) -> list[str]:
    """That documents wait for this store, where some do."""
    target = session.target
    if target is None:
        return []
    from receipts.workflows import spool

    count = spool.count(target)
    return [f"{count:,} kept earlier still wait for this store; store them with: {_flush(session)}"] if count else []


def _flush(session: Session) -> str:
    """The command that drains the spool of the store that this command was given."""
    from receipts.store.address import address

    if not session.asks_store:
        return "receipts flush"
    named = session.server.url if session.server is not None else address(session.store_url)
    return f"receipts --store '{named}' flush"


@verb("flush")
@click.option("--again", is_flag=True, help="Also retry documents that the store refused before.")
def command(session: Session, again: bool) -> Answer:
    """Store every document that was kept on this machine while the store's server was down.

    Examples:
      receipts flush
      receipts --store postgresql+psycopg://me@db/receipts flush
      receipts flush --again

    If a store's server does not answer, receipts submit keeps the documents on this machine: in the user's data folder,
    or in the folder that RECEIPTS_SPOOL names. Flushing twice, or twice at the same time, stores each document once.

    Exit codes: 0 all are stored, 2 some were refused and stay here with the reason, 4 the store still does not answer.
    """
    from receipts.workflows import spool

    target = session.target
    if target is None:
        return _elsewhere()
    done: list[Flushed] = []
    total = spool.count(target)
    progress = session.progress.of(total, answers=not session.as_json)
    for item in spool.flush(session.submit, target, again=again) if total or again else ():
        done.append(item)
        progress.at(len(done))
        if not session.as_json:
            progress.clear()
            _print(item)
    refused, torn = spool.waiting(target, refused=True), spool.damaged(target)
    data = {"flushed": [_as_data(item) for item in done], "waiting": spool.count(target), "refused": len(refused)}
    where = spool.place(target) / spool.REFUSED
    again_with = f"{len(refused)} refused: they are kept in {where}; try them again with: receipts flush --again"
    notes = [again_with] if refused else []
    notes += [f"{file}: it is damaged; look at it, then remove it" for file in torn]
    code = 2 if torn or any(item.refused for item in done) else 0
    return Answer(data, None if done else "nothing is waiting to be stored", code, tuple(notes))


def _elsewhere() -> Answer:
    """The store is a file, for which nothing ever waits: say for which others something does."""
    from receipts.workflows import spool

    others = spool.others()
    if others:
        counts = ", ".join(f"{number} for {store}" for store, number in others.items())
        raise UsageError(f"documents wait for another store ({counts}); name it with --store, with user and password")
    return Answer({"flushed": [], "waiting": 0, "refused": 0}, "nothing is waiting to be stored")


def _print(item: Flushed) -> None:
    from receipts.publish.submissions import outcome

    if item.outcome.error is not None:
        output.refuse(item.outcome.error)
    elif item.outcome.submitted is not None:
        output.show(outcome(item.outcome))


def _as_data(item: Flushed) -> dict[str, object]:
    submitted = item.outcome.submitted
    tree: dict[str, object] = {"id": item.waiting.id, "source": item.waiting.source, "kept_at": item.waiting.at}
    if submitted is None:
        return {**tree, "error": item.refused}
    return {**tree, "new": submitted.new, "status": submitted.status, "submitted_at": submitted.at.isoformat()}
