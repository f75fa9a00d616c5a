"""Failures that came back: failed launches that share a signature, with what each of them cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from receipts.store.entries import standing
from receipts.store.query.signatures import FAILED
from receipts.store.sql import engine_of
from receipts.store.tables import receipts, signatures


class Alike(NamedTuple):
    """A failed launch under its signature. Times in UTC; `finished` and `compile_seconds` as far as they are stated."""

    signature: str
    id: str
    label: str | None
    lane: str
    outcome: str
    phase: str | None
    class_: str | None
    started: datetime
    finished: datetime | None
    compile_seconds: float | None


def failed_alike(connection: Connection, ids: Sequence[str]) -> list[Alike]:
    """Failed launches that stand and share a signature with one of these, by signature, the oldest first.

    Memory that another process held says nothing of a signature, and is left out.
    """
    own = select(signatures.c.signature).join(receipts, receipts.c.seq == signatures.c.receipt)
    among = engine_of(connection).among
    names = sorted(set(connection.execute(own.where(among(receipts.c.id, list(ids)))).scalars()))
    columns = ("id", "label", "lane", "outcome", "failure_phase", "failure_class", "started", "finished")
    query = (
        select(signatures.c.signature, *receipts.c[columns], receipts.c.compile_seconds)
        .join(receipts, receipts.c.seq == signatures.c.receipt)
        .where(
            among(signatures.c.signature, names),
            signatures.c.outcome.in_(FAILED),
            receipts.c.failure_class.is_distinct_from("foreign_process"),
            receipts.c.provenance.in_(["measured", "quoted"]),
            standing(),
        )
        .order_by(signatures.c.signature, receipts.c.started, receipts.c.seq)
    )
    return [Alike._make(row) for row in connection.execute(query)]
