"""Receipts that are retracted or purged after they were stored. Each is a row that is added."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from receipts.base.errors import ConflictError, UsageError
from receipts.store.database import By
from receipts.store.entries import entry_with_id
from receipts.store.sql import engine_of
from receipts.store.tables import (
    claim_subjects,
    claim_verdicts,
    documents,
    purges,
    receipts,
    subjects,
    supersessions,
    verdicts,
)
from receipts.store.write import index


class Supersession(NamedTuple):
    """A receipt that no longer stands; `successor` is None where it was retracted. Ids, and time in UTC."""

    receipt: str
    successor: str | None
    reason: str
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
