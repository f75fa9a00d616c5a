"""How many receipts stand, by lane, status and outcome."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from sqlalchemy import func, select

from receipts.store.database import Database
from receipts.store.entries import standing
from receipts.store.tables import receipts

NAMES: Final = ("lane", "status", "outcome")


class FacetCounts(NamedTuple):
    """The newest receipt's number, and counts by each value of `NAMES`, the most frequent first."""

    newest: int
    by: dict[str, list[tuple[str, int]]]


def newest(database: Database) -> int:
    """The number of the newest receipt; 0 in an empty store."""
    with database.reading() as connection:
        return int(connection.execute(select(func.coalesce(func.max(receipts.c.seq), 0))).scalar_one())


def counts(database: Database) -> FacetCounts:
    """Counts of the receipts that stand. Reads every row: 60 ms at 100,000."""
    columns = [receipts.c[name] for name in NAMES]
    with database.reading() as connection:
        rows = connection.execute(select(*columns, func.count()).where(standing()).group_by(*columns)).all()
    by: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    for *values, count in rows:
        for name, value in zip(NAMES, values, strict=True):
            by[name][value] += count
    return FacetCounts(newest(database), {name: held.most_common() for name, held in by.items()})
