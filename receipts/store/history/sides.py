"""The receipts that verdicts speak of, in the order in which each verdict has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from receipts.store.tables import claim_subjects, receipts, subjects

Sides = Mapping[int, list[tuple[str, Any]]]
SidesOf = Callable[[Connection, Sequence[int]], Sides]


def sides_of(connection: Connection, verdicts: Sequence[int]) -> Sides:
    """Sides and ids by the numbers of verdicts, at most a few hundred; an id is None where the receipt is gone."""
    query = (
        select(subjects.c.verdict, subjects.c.side, receipts.c.id)
        .outerjoin(receipts, receipts.c.seq == subjects.c.receipt)
        .where(subjects.c.verdict.in_(verdicts))
        .order_by(subjects.c.verdict, subjects.c.position)
    )
    return _grouped(connection.execute(query))


def sides_of_claims(connection: Connection, verdicts: Sequence[int]) -> Sides:
    """The same of verdicts on claims."""
    table = claim_subjects
    query = select(table.c.verdict, table.c.side, table.c.receipt).where(table.c.verdict.in_(verdicts))
    return _grouped(connection.execute(query.order_by(table.c.verdict, table.c.position)))


SIDES: Final[Mapping[str, SidesOf]] = {"verdicts": sides_of, "claim_verdicts": sides_of_claims}


def _grouped(rows: Any) -> Sides:
    grouped: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for number, side, receipt in rows:
        grouped[number].append((side, receipt))
    return grouped
