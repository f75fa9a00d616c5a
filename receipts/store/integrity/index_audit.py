"""What the index says otherwise of receipts than their documents: what an audit looks for in it.

Rows that many receipts share are written once and read for ever: one that was edited or lost would answer wrongly for
all of them. Each configuration is held against the first of its receipts that is read, and looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from receipts.axes.configuration import AxisPart, Configuration
from receipts.store.entries import cut, safe
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axes, configurations, facets, placements, signatures
from receipts.store.write import index
from receipts.store.write.index import OF_VALUE, IndexedReceipt, Interned, by_sums
from receipts.store.write.listing import LISTED, facet

_ROWS: Final = Lookup(
    [configurations.c.seq],
    [configurations.c[name] for name in ("seq", "digest", "lane", "anchor", "line", "whole", "members")],
)
_AXES: Final = Lookup([axes.c.value, axes.c.configuration], [axes.c.value, axes.c.configuration, axes.c.leave_one_out])


class IndexedConfiguration(NamedTuple):
    """A configuration by its number, and what a receipt that is placed there ran."""

    number: int
    ran: Configuration


class Soundness:
    """Configurations that were looked at, over one state of the index; what is written later is right."""

    def __init__(self, connection: Connection) -> None:
        counted = select(axes.c.configuration, func.count()).group_by(axes.c.configuration)
        self._counts: dict[int, int] = {row[0]: row[1] for row in connection.execute(counted)}
        last = select(func.coalesce(func.max(configurations.c.seq), 0))
        self._last: int = connection.execute(last).scalar_one()
        self._seen: set[int] = set()

    def __repr__(self) -> str:
        return f"Soundness({len(self._seen)} of {len(self._counts)} looked at)"

    def unsound(self, connection: Connection, placed: Iterable[IndexedConfiguration]) -> list[IndexedConfiguration]:
        """Those of some configurations whose rows are not what was run in them, each the first time that it comes."""
        new = {item.number: item for item in placed if item.number <= self._last and item.number not in self._seen}
        self._seen.update(new)
        rows = {row[0]: row for row in _ROWS.read(connection, ((number,) for number in new))}
        # What lies in a configuration that it did not run has been moved, and says nothing of that one's rows.
        new = {number: item for number, item in new.items() if _whole(rows.get(number)) == item.ran.whole}
        values = _values(connection, {part for item in new.values() for part in item.ran.parts.values()})
        wanted = {number: _wanted(item, values) for number, item in new.items()}
        keys = sorted(key for digests in wanted.values() for key in digests or ())
        there = {(value, number): left for value, number, left in _AXES.read(connection, keys)}
        return [
            item
            for number, item in sorted(new.items())
            if not self._agrees(item, rows[number], wanted[number], there, values)
        ]

    def _agrees(
        self,
        item: IndexedConfiguration,
        row: Any,
        wanted: Mapping[tuple[int, int], int | None] | None,
        there: Mapping[tuple[int, int], int | None],
        values: Mapping[AxisPart, Interned],
    ) -> bool:
        _, digest, lane, anchor, line, _, members = row
        ran = item.ran
        return (
            wanted is not None
            and (digest, lane, anchor, line) == (ran.digest, cut(safe(ran.lane)), safe(ran.anchor), ran.line)
            and bytes(members) == index.members(ran, dict(values))
            and self._counts.get(item.number, 0) == len(wanted)
            and all(key in there and there[key] == left for key, left in wanted.items())
        )


def _whole(row: Any) -> bytes | None:
    return None if row is None else bytes(row[5])


def _values(connection: Connection, parts: Iterable[AxisPart]) -> dict[AxisPart, Interned]:
    """Numbers of axis values as the index has them; what it has under another text is not there."""
    by_key: dict[tuple[Any, int], list[AxisPart]] = {}
    for part in parts:
        by_key.setdefault((safe(part.axis), part.digest), []).append(part)
    return {
        part: Interned(seq, bool(early))
        for seq, axis, digest, _twin, early, value in OF_VALUE.read(connection, by_key)
        for part in by_key[axis, digest]
        if part.value == value
    }


def _wanted(
    item: IndexedConfiguration, values: Mapping[AxisPart, Interned]
) -> dict[tuple[int, int], int | None] | None:
    """The rows of `axes` that a configuration has, as value, number and what is left; None where a value is lost."""
    digests = {}
    for part in item.ran.parts.values():
        value = values.get(part)
        if value is None:
            return None
        left = None if value.early and by_sums(item.ran, part.axis) else item.ran.without(part.axis)
        digests[value.seq, item.number] = left
    return digests


def facets_amiss(connection: Connection) -> list[int]:
    """Digests of facets whose text is not what they are digests of."""
    rows = connection.execute(select(facets.c.digest, facets.c.value))
    return sorted(digest for digest, value in rows if _digest(value) != digest)


def _digest(value: str) -> int | None:
    import json

    try:
        key = facet(tuple(json.loads(value)))
    except (ValueError, TypeError):
        return None
    return key.digest if key.value == value else None


class Amiss(NamedTuple):
    """Numbers of receipts that the index does not hold, has placed elsewhere, or under other signatures; and of
    configurations that say what none of their receipts ran."""

    missing: tuple[int, ...]
    elsewhere: tuple[int, ...]
    signed: tuple[int, ...]
    configurations: tuple[int, ...]


def amiss(connection: Connection, soundness: Soundness, batch: Sequence[IndexedReceipt]) -> Amiss:
    """What the index says otherwise of some receipts than their documents; what another catalogue read is passed by."""
    numbers = [item.seq for item in batch]
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
    held = {item.seq: item for item in batch if item.seq in rows and rows[item.seq][1] == item.configuration.catalogue}
    elsewhere = [
        number
        for number, item in held.items()
        if bytes(rows[number][2]) != item.configuration.whole
        or tuple(rows[number][3:]) != tuple(item.listed.row.values())
    ]
    placed = [IndexedConfiguration(rows[number][0], item.configuration) for number, item in held.items()]
    return Amiss(
        tuple(number for number in numbers if number not in rows),
        tuple(elsewhere),
        tuple(_signed_otherwise(connection, list(held.values()))),
        tuple(item.number for item in soundness.unsound(connection, placed)),
    )


def _signed_otherwise(connection: Connection, batch: Sequence[IndexedReceipt]) -> Iterator[int]:
    """Receipts with another signature than theirs. What a lane's list of features decides is not held against it."""
    columns = (signatures.c[name] for name in ("receipt", "outcome", "signature", "micro_batch", "sequence_length"))
    query = select(*columns).where(signatures.c.receipt.in_([item.seq for item in batch]))
    there = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
    for item in batch:
        own = item.signature
        expected = (item.outcome, own.signature, own.micro_batch, own.sequence_length) if own is not None else None
        if there.get(item.seq) != expected:
            yield item.seq
