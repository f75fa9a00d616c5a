"""What the index says otherwise of receipts than their documents: what an audit looks for in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from receipts.axes.configuration import Configuration
from receipts.axes.signature import Signature
from receipts.store.integrity.index_audit import Placed, Soundness
from receipts.store.tables import configurations, facets, placements, signatures
from receipts.store.write.listing import LISTED, Listed


class Read(NamedTuple):
    """A receipt by its number, as its document is read now; ``signed`` is None where it has no signature."""

    number: int
    outcome: str
    ran: Configuration
    listed: Listed
    signed: Signature | None


class Amiss(NamedTuple):
    """Numbers of receipts that the index does not hold, has placed elsewhere, or under other signatures; and of
    configurations that say what none of their receipts ran."""

    missing: tuple[int, ...]
    elsewhere: tuple[int, ...]
    signed: tuple[int, ...]
    configurations: tuple[int, ...]


def amiss(connection: Connection, soundness: Soundness, batch: Sequence[Read]) -> Amiss:
    """What the index says otherwise of some receipts than their documents; what another catalogue read is passed by."""
    numbers = [item.number for item in batch]
    query = (
        select(
            placements.c.receipt,
            configurations.c.seq,
            configurations.c.catalogue,
            configurations.c.whole,
            *(placements.c[name] for name in LISTED),
        )
        .join(configurations, configurations.c.seq == placements.c.configuration)
        .join(facets, facets.c.digest == placements.c.facet)
        .where(placements.c.receipt.in_(numbers))
    )
    rows = {row[0]: row[1:] for row in connection.execute(query)}
    held = {item.number: item for item in batch if item.number in rows and rows[item.number][1] == item.ran.catalogue}
    elsewhere = [
        number
        for number, item in held.items()
        if bytes(rows[number][2]) != item.ran.whole or tuple(rows[number][3:]) != tuple(item.listed.row.values())
    ]
    placed = [Placed(rows[number][0], item.ran) for number, item in held.items()]
    return Amiss(
        tuple(number for number in numbers if number not in rows),
        tuple(elsewhere),
        tuple(_signed_otherwise(connection, list(held.values()))),
        tuple(item.number for item in soundness.unsound(connection, placed)),
    )


def _signed_otherwise(connection: Connection, batch: Sequence[Read]) -> Iterator[int]:
    """Receipts with another signature than theirs. What a lane's list of features decides is not held against it."""
    columns = (signatures.c[name] for name in ("receipt", "outcome", "signature", "micro_batch", "sequence_length"))
    query = select(*columns).where(signatures.c.receipt.in_([item.number for item in batch]))
    there = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
    for item in batch:
        made = item.signed
        said = (made.signature, made.micro_batch, made.sequence_length) if made is not None else None
        expected = (item.outcome, *said) if said is not None else None
        if there.get(item.number) != expected:
            yield item.number
