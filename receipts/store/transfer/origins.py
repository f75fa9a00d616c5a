"""What every row has that comes in from another store: content that is compared, and an origin that is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, insert, select

from receipts.store.schema import own_id
from receipts.store.tables import origins

T = TypeVar("T")
Row = Mapping[str, Any]


class TakenRows(NamedTuple):
    """What became of rows: how many are new, sentences for people, and conflicts, which left their rows out.

    `left` counts rows that were left out because they speak of a receipt that is neither here nor purged.
    """

    new: int
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: int = 0


def to_add(
    here: Sequence[T], coming: Sequence[T], same: Callable[[T], Any], rank: Callable[[T], Any] | None
) -> list[T]:
    """Rows to append so that all are here and the last one is the one that counts; none where nothing is new.

    What counts is the last by ``rank``, of equal ones the one that comes. Without a rank it is what counts here.
    """
    known = {same(item) for item in here}
    added: list[T] = []
    for item in coming:
        if same(item) not in known:
            known.add(same(item))
            added.append(item)
    if not added:
        return []
    everything = [*here, *coming]
    if rank is not None:
        best = max(range(len(everything)), key=lambda at: (rank(everything[at]), at))
    else:
        best = (len(here) or len(everything)) - 1
    return added if same(added[-1]) == same(everything[best]) else [*added, everything[best]]


def insert_rows(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert rows; gives their numbers in the same order."""
    if not rows:
        return []
    inserted = connection.execute(insert(table).returning(table.c.seq, sort_by_parameter_order=True), list(rows))
    return list(inserted.scalars())


def record_origins(connection: Connection, store: str, what: str, numbers: Mapping[int, int]) -> None:
    """Write down which rows here are rows of another store: numbers there to numbers here. Its own are no others'."""
    if not numbers or store == own_id(connection):
        return
    query = select(origins.c.number).where(
        origins.c.store == store, origins.c.what == what, origins.c.number.in_(list(numbers))
    )
    known = set(connection.execute(query).scalars())
    rows = [
        {"what": what, "here": here, "store": store, "number": number}
        for number, here in numbers.items()
        if number not in known
    ]
    if rows:
        connection.execute(insert(origins), rows)
