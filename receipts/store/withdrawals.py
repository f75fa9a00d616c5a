"""Receipts that are retracted, reinstated or purged after they were stored. Each is a row that is added."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from receipts.base.errors import ConflictError, UsageError
from receipts.store import index
from receipts.store.database import By
from receipts.store.entries import entry_with_id, standing
from receipts.store.sql import engine_of
from receipts.store.tables import (
    claim_subjects,
    claim_verdicts,
    documents,
    extracts,
    purges,
    receipts,
    subjects,
    supersessions,
    verdicts,
)

BY_PURGED: Final = "superseded by a receipt that was purged"


class Supersession(NamedTuple):
    """What was said of a receipt that stands no longer; `successor` is None where it was retracted, and itself where
    that was withdrawn. Ids, and time in UTC.
    """

    receipt: str
    successor: str | None
    reason: str
    at: datetime
    actor: str | None = None

    @property
    def how(self) -> str:
        """How the receipt fell, and when."""
        how = f"superseded by {self.successor[:12]}" if self.successor else "retracted"
        return f"{how} on {self.at:%Y-%m-%d}"

    def __str__(self) -> str:
        return f"{self.how}: {self.reason}"


def retract(connection: Connection, by: By, receipt_id: str, reason: str) -> None:
    """Withdraw a receipt without a successor. Raises NotFound, ConflictError where it no longer stands."""
    entry_with_id(connection, receipt_id)
    _need(reason, "retract")
    fell = fallen(connection, [receipt_id]).get(receipt_id)
    if fell is not None:
        raise ConflictError(f"{receipt_id[:12]} was {fell.how} already: {fell.reason}")
    connection.execute(insert(supersessions).values(receipt=receipt_id, successor=None, reason=reason, **by._asdict()))


def reinstate(connection: Connection, by: By, receipt_id: str, reason: str) -> None:
    """Withdraw the retraction of a receipt, by a row that names the receipt as its own successor.

    Raises NotFound, and ConflictError where it stands, was superseded, or its launch has another receipt since.
    """
    entry = entry_with_id(connection, receipt_id)
    _need(reason, "retract --withdraw")
    fell = fallen(connection, [receipt_id]).get(receipt_id)
    if fell is None:
        raise ConflictError(f"{receipt_id[:12]} stands: there is no retraction to withdraw")
    if fell.successor is not None:
        raise ConflictError(f"{receipt_id[:12]} was {fell}; only a retraction can be withdrawn")
    query = select(receipts.c.id).where(receipts.c.launch == entry.launch, receipts.c.id != receipt_id, standing())
    if (rival := connection.execute(query).scalars().first()) is not None:
        raise ConflictError(f"launch {entry.launch} has another receipt that stands, {rival[:12]}; retract that first")
    row = {"receipt": receipt_id, "successor": receipt_id, "reason": reason, **by._asdict()}
    connection.execute(insert(supersessions).values(**row))


def purge(connection: Connection, receipt_id: str, reason: str, by: By) -> None:
    """Erase a receipt, its bytes, and every verdict that speaks of it; a tombstone with id and reason stays.

    A verdict quotes the document, and so does the reason for which the receipt superseded another.
    """
    from receipts.store.seals import keep_leaves  # a purge alone needs it, and every command opens a store

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
    connection.execute(delete(extracts).where(extracts.c.receipt == number))
    connection.execute(delete(receipts).where(receipts.c.id == receipt_id))
    others = supersessions.c.receipt != receipt_id
    query = select(supersessions.c.receipt).where(supersessions.c.successor == receipt_id, others)
    replaced = list(connection.execute(query).scalars())
    connection.execute(delete(supersessions).where(supersessions.c.successor == receipt_id))
    if replaced:
        rows = [{"receipt": item, "successor": receipt_id, "reason": BY_PURGED, **by._asdict()} for item in replaced]
        connection.execute(insert(supersessions), rows)


def _need(reason: str, verb: str) -> None:
    if not reason.strip():
        raise UsageError(f'say why: receipts {verb} ID --reason "…"')


def fallen(connection: Connection, ids: Iterable[str] | None = None) -> dict[str, Supersession]:
    """The last word on each of some receipts, or of all, that no longer stands."""
    query = select(*(supersessions.c[name] for name in Supersession._fields)).order_by(supersessions.c.seq)
    if ids is not None:
        query = query.where(engine_of(connection).among(supersessions.c.receipt, list(ids)))
    last = {row.receipt: Supersession._make(row) for row in connection.execute(query)}
    return {name: item for name, item in last.items() if item.successor != name}


def all_supersessions(connection: Connection) -> list[Supersession]:
    """Every supersession and retraction, in the order in which they were said."""
    query = select(*(supersessions.c[name] for name in Supersession._fields)).order_by(supersessions.c.seq)
    return [Supersession._make(row) for row in connection.execute(query)]
