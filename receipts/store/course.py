"""The course of one shape: its best launches of each day, and the best before.

A shape is what `receipts.store.ran.SHAPE` names; a part that is None is not stated. Which launches hold under the
present rules is for the caller to judge; those that were not valid when they came in are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from receipts.store.ran import RAN, SHAPE
from receipts.store.rows import Entry, entries, entry, standing
from receipts.store.store import Store
from receipts.store.tables import receipts

MOST: Final = 3  # launches of a day, and of the time before
_RATE: Final = receipts.c.tokens_per_second_per_chip


class Days(NamedTuple):
    """The best launches of each day from a moment on, and the best that ran before it, both with the best first."""

    days: tuple[Entry, ...]
    before: tuple[Entry, ...]


def days(store: Store, shape: Mapping[str, Any], since: datetime, until: datetime) -> Days:
    """Launches of a shape with the highest rates a chip, the highest `MOST` of each day (UTC). Raises StoreError."""
    with store._reading() as connection:
        return Days(tuple(_by_day(connection, shape, since, until)), tuple(_before(connection, shape, since)))


def _clauses(shape: Mapping[str, Any]) -> tuple[ColumnElement[bool], ...]:
    return (
        *(receipts.c[name].is_not_distinct_from(shape[name]) for name in SHAPE if name != "lane"),
        receipts.c.lane == shape["lane"],
        receipts.c.kind == "training",
        receipts.c.outcome == "ok",
        receipts.c.status == "valid",
        receipts.c.rate_source == "steps",
        receipts.c.provenance.in_(["measured", "quoted"]),
        _RATE > 0,
        standing(),
    )


def _by_day(connection: Connection, shape: Mapping[str, Any], since: datetime, until: datetime) -> list[Entry]:
    day: ColumnElement[Any] = func.date(RAN)
    if connection.dialect.name == "postgresql":
        day = func.date(func.timezone("UTC", RAN))
    place = func.row_number().over(partition_by=day, order_by=[_RATE.desc(), receipts.c.seq])
    ranked = (
        select(receipts.c.seq, place.label("place"))
        .where(*_clauses(shape), since <= RAN, until >= RAN)
        .subquery("ranked")
    )
    query = entries().join(ranked, ranked.c.seq == receipts.c.seq).where(ranked.c.place <= MOST)
    return [entry(row) for row in connection.execute(query.order_by(_RATE.desc(), receipts.c.seq))]


def _before(connection: Connection, shape: Mapping[str, Any], since: datetime) -> list[Entry]:
    query = entries().where(*_clauses(shape), since > RAN).order_by(_RATE.desc(), receipts.c.seq).limit(MOST)
    return [entry(row) for row in connection.execute(query)]
