"""The course of one shape: its best launches of each day, and the best before.

A shape is what `query.reports.SHAPE` names; a part that is None is not stated. Which launches hold under the present
rules is for the caller to judge; those whose rate was not valid when they came in are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, case, func, null, select

from receipts.metrics.reading import Taint
from receipts.store.entries import Entry, entries, entry_of, standing
from receipts.store.query import samples
from receipts.store.query.reports import RESULT, SHAPE
from receipts.store.sql import engine_of
from receipts.store.store import Store
from receipts.store.tables import receipts

MOST: Final = 5  # launches of a day, and of the time before, that are looked at
_RATE: Final = receipts.c.tokens_per_second_per_chip


class Days(NamedTuple):
    """The best launches of each day from a moment on, and the best that ran before it, both with the best first."""

    days: tuple[Entry, ...]
    before: tuple[Entry, ...]


def days(store: Store, shape: Mapping[str, Any], since: datetime, until: datetime) -> Days:
    """Launches of a shape with the highest rates a chip: of the first `MOST` of each day (UTC) those that stand.

    A day is that on which a launch started. Raises StoreError.
    """
    with store.database.reading() as connection:
        rows = list(_ranked(connection, shape, since, until))
    ends = [(row.finished or row.started, row) for row in rows]
    return Days(
        tuple(row for end, row in ends if since <= end <= until), tuple(row for end, row in ends if end < since)[:MOST]
    )


def _ranked(connection: Connection, shape: Mapping[str, Any], since: datetime, until: datetime) -> Iterator[Entry]:
    day = engine_of(connection).day(receipts.c.started)
    alike = (
        *(receipts.c[name].is_not_distinct_from(shape[name]) for name in SHAPE if name != "lane"),
        receipts.c.lane == shape["lane"],
        *RESULT,
        samples.valid(Taint.RATE),
    )
    order = (_RATE.desc(), receipts.c.seq)
    # One walk over the shape's launches: those before the first moment count as one day.
    of_day = case((receipts.c.started < since, null()), else_=day)
    place = func.row_number().over(partition_by=of_day, order_by=order)
    ranked = select(receipts.c.seq, place.label("place")).where(*alike, until >= receipts.c.started).subquery("ranked")
    # Only the few that are left are checked for withdrawal: for every launch of a year it costs more than all the rest.
    numbers = select(ranked.c.seq).where(ranked.c.place <= MOST).scalar_subquery()
    query = entries().where(receipts.c.seq.in_(numbers), standing()).order_by(*order)
    yield from (entry_of(row) for row in connection.execute(query))
