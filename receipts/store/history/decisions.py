"""What people decided on receipts, and documents that quote them; each is a row that is added, as in `withdrawals`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, insert, select

from receipts.base.errors import UsageError
from receipts.store.database import By
from receipts.store.entries import entry_with_id
from receipts.store.sql import engine_of
from receipts.store.tables import decisions as table
from receipts.store.tables import quotes as quoted

DECISIONS: Final = ("ship", "hold", "drop")


class Decision(NamedTuple):
    """What was decided on a receipt, and why. Time in UTC."""

    receipt: str
    decision: str
    reason: str
    at: datetime
    actor: str | None = None


class Quote(NamedTuple):
    """A place where a document quotes a receipt."""

    document: str
    receipt: str
    says: str | None
    at: datetime


def decide(connection: Connection, by: By, receipt_id: str, decision: str, reason: str) -> Decision:
    """Write down what was decided on a receipt: ship, hold or drop. Raises NotFound, UsageError."""
    if decision not in DECISIONS:
        raise UsageError(f"there is no decision {decision!r}; it is one of {', '.join(DECISIONS)}")
    if not reason.strip():
        raise UsageError('say why: receipts decide ID ship|hold|drop --reason "…"')
    entry_with_id(connection, receipt_id)
    row = Decision(receipt_id, decision, reason, by.at, by.actor)
    connection.execute(insert(table).values(**row._asdict()))
    return row


def decisions(connection: Connection, receipt_ids: Sequence[str] | None = None) -> list[Decision]:
    """Decisions on these receipts, or on all, oldest first; the last one of a receipt counts."""
    query = select(*(table.c[name] for name in Decision._fields)).order_by(table.c.seq)
    if receipt_ids is not None:
        query = query.where(table.c.receipt.in_(receipt_ids))
    return [Decision._make(row) for row in connection.execute(query)]


def quote(connection: Connection, by: By, document: str, receipts: Sequence[tuple[str, str | None]]) -> None:
    """Write down which receipts a document quotes, each as id and what it says; replaces its earlier reading."""
    rows = [Quote(document, receipt, sentence, by.at)._asdict() for receipt, sentence in receipts]
    nothing = [{"document": document, "receipt": None, "says": None, "at": by.at}]
    connection.execute(insert(quoted), rows or nothing)


def quotes(connection: Connection, *receipt_ids: str, until: datetime | None = None) -> list[Quote]:
    """Where documents quote some receipts, by the last reading of each document, or the last before a moment.

    In the order of documents.
    """
    # By number and not by time: a clock may go back.
    newest = select(func.max(quoted.c.seq)).group_by(quoted.c.document)
    if until is not None:
        newest = newest.where(quoted.c.at < until)
    last = select(quoted.c.document, quoted.c.at).where(quoted.c.seq.in_(newest)).subquery()
    query = (
        select(*(quoted.c[name] for name in Quote._fields))
        .join(last, (last.c.document == quoted.c.document) & (last.c.at == quoted.c.at))
        .where(engine_of(connection).among(quoted.c.receipt, list(dict.fromkeys(receipt_ids))))
        .order_by(quoted.c.document, quoted.c.receipt)
    )
    return [Quote._make(row) for row in connection.execute(query)]
