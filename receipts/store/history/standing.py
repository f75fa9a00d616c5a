"""What happens to receipts after they are stored: retracted, purged, pinned. Each is a row that is added."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from receipts.base.errors import ConflictError, UsageError
from receipts.store.database import By
from receipts.store.entries import entry_with_id
from receipts.store.sql import engine_of
from receipts.store.tables import (
    claim_subjects,
    claim_verdicts,
    documents,
    pins,
    purges,
    receipts,
    subjects,
    supersessions,
    verdicts,
)
from receipts.store.write import index

_PIN: Final = re.compile(r"^[A-Za-z][A-Za-z0-9._-]{0,99}$")


class Supersession(NamedTuple):
    """A receipt that no longer stands; `successor` is None where it was retracted. Ids, and time in UTC."""

    receipt: str
    successor: str | None
    reason: str
    at: datetime
    actor: str | None = None


class Pin(NamedTuple):
    """A named reference at some time; `receipt` is None where the name was taken away."""

    name: str
    receipt: str | None
    note: str | None
    at: datetime
    actor: str | None = None


def retract(connection: Connection, by: By, receipt_id: str, reason: str) -> None:
    """Withdraw a receipt without a successor. Raises NotFound, ConflictError where it no longer stands."""
    entry_with_id(connection, receipt_id)
    _need(reason, "retract")
    query = select(supersessions).where(supersessions.c.receipt == receipt_id).order_by(supersessions.c.seq.desc())
    row = connection.execute(query).first()
    if row is not None:
        how = f"superseded by {row.successor[:12]}" if row.successor else "retracted"
        raise ConflictError(f"{receipt_id[:12]} was {how} on {row.at:%Y-%m-%d} already: {row.reason}")
    connection.execute(insert(supersessions).values(receipt=receipt_id, successor=None, reason=reason, **by._asdict()))


def purge(connection: Connection, receipt_id: str, reason: str, by: By) -> None:
    """Erase a receipt, its bytes, and every verdict that speaks of it; a tombstone with id and reason stays.

    A verdict quotes the document, and so does the reason for which the receipt superseded another.
    """
    from receipts.store.integrity.seals import keep_leaves  # a purge alone needs it, and every command opens a store

    _need(reason, "purge")
    engine_of(connection).lock(connection, alone=True)  # no verdict on it may come in meanwhile, nor a seal
    number = select(receipts.c.seq).where(receipts.c.id == receipt_id).scalar_subquery()
    spoken = select(subjects.c.verdict).where(subjects.c.receipt == number)
    claimed = select(claim_subjects.c.verdict).where(claim_subjects.c.receipt == receipt_id)
    superseding = select(supersessions.c.seq).where(supersessions.c.successor == receipt_id)
    doomed = {"receipts": select(number), "verdicts": spoken, "claim_verdicts": claimed, "supersessions": superseding}
    going = {what: list(connection.execute(query.distinct()).scalars()) for what, query in doomed.items()}
    keep_leaves(connection, receipt_id, {**going, "columns": going["receipts"]})
    connection.execute(insert(purges).values(receipt=receipt_id, reason=reason, **by._asdict()))
    connection.execute(delete(verdicts).where(verdicts.c.seq.in_(spoken)))
    connection.execute(delete(claim_verdicts).where(claim_verdicts.c.seq.in_(claimed)))
    index.purge(connection, going["receipts"])
    connection.execute(delete(documents).where(documents.c.receipt == number))
    connection.execute(delete(receipts).where(receipts.c.id == receipt_id))
    query = select(supersessions.c.receipt).where(supersessions.c.successor == receipt_id)
    replaced = list(connection.execute(query).scalars())
    if replaced:
        connection.execute(delete(supersessions).where(supersessions.c.successor == receipt_id))
        reason_left = "superseded by a receipt that was purged"
        rows = [{"receipt": item, "successor": receipt_id, "reason": reason_left, **by._asdict()} for item in replaced]
        connection.execute(insert(supersessions), rows)


def _need(reason: str, verb: str) -> None:
    if not reason.strip():
        raise UsageError(f'say why: receipts {verb} ID --reason "…"')


def all_supersessions(connection: Connection) -> list[Supersession]:
    """Every supersession and retraction, in the order in which they were said."""
    query = select(*(supersessions.c[name] for name in Supersession._fields)).order_by(supersessions.c.seq)
    return [Supersession._make(row) for row in connection.execute(query)]


def pin(connection: Connection, by: By, name: str, receipt_id: str | None, note: str | None = None) -> Pin:
    """Point ``@name`` at a receipt, or, with None, take the name away. Raises NotFound, UsageError."""
    if receipt_id is not None:
        entry_with_id(connection, receipt_id)
    bare = name.removeprefix("@")
    if not _PIN.match(bare):
        raise UsageError(f"{name!r} is no name for a pin; write @ and a letter, then letters, digits, . _ or -")
    placed = Pin(bare, receipt_id, note, by.at, by.actor)
    connection.execute(insert(pins).values(name=bare, receipt=receipt_id, note=note, **by._asdict()))
    return placed


def pin_history(connection: Connection, name: str | None = None) -> list[Pin]:
    """What one pin, or every pin, has pointed at, oldest first."""
    query = select(*(pins.c[name] for name in Pin._fields)).order_by(pins.c.seq)
    if name is not None:
        query = query.where(pins.c.name == name.removeprefix("@"))
    return [Pin._make(row) for row in connection.execute(query)]


def current_pins(connection: Connection) -> dict[str, Pin]:
    """Each pin that is set, by its name without the @."""
    last = {item.name: item for item in pin_history(connection)}
    return {name: item for name, item in sorted(last.items()) if item.receipt is not None}
