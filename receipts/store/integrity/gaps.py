"""Gaps between numbers: what tells that a row was deleted before a seal held it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from receipts.store.integrity.leaves import KINDS
from receipts.store.integrity.seals import last_sealed
from receipts.store.tables import erased

# Tables from which only a purge takes rows away.
TABLES: Final = ("receipts", "verdicts", "supersessions", "pins", "claims", "claim_verdicts", "decisions")
_SHOWN: Final = 5


class Gap(NamedTuple):
    """How many numbers have no row, and the first few of them."""

    missing: int
    first: tuple[int, ...]


def gap(connection: Connection, store: str | None, what: str) -> Gap:
    """Numbers after the last seal, up to the last row, that have no row and that no purge erased."""
    number, last = KINDS[what].number, last_sealed(connection, store, what)
    query = select(erased.c.number).where(erased.c.store == store, erased.c.what == what, erased.c.number > last)
    known = {last, *connection.execute(select(number).where(number > last)).scalars()}
    known.update(connection.execute(query).scalars())
    count, first = 0, list[int]()
    for before, after in pairwise(sorted(known)):
        count += after - before - 1
        first += range(before + 1, min(after, before + 1 + _SHOWN - len(first)))
    return Gap(count, tuple(first))
