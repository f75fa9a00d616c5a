"""What the index says otherwise of receipts than their documents: what an audit looks for in it.

Rows that many receipts share are written once and read for ever: one that was edited or lost would answer wrongly for
all of them. Each configuration is held against the first of its receipts that is read, and looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from receipts.axes.configuration import AxisPart, Configuration
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axes, axis_values, configurations, placements, signatures
from receipts.store.write import index
from receipts.store.write.index import CONFIGURED, IndexedReceipt

_VALUES: Final = Lookup(
    [axis_values.c.axis, axis_values.c.digest],
    [axis_values.c[name] for name in ("axis", "digest", "seq", "value")],
)
_AXES: Final = Lookup([axes.c.value, axes.c.configuration], [axes.c.value, axes.c.configuration, axes.c.leave_one_out])


class IndexFaults(NamedTuple):
    """Numbers of receipts that the index does not hold, has placed elsewhere, or under other signatures; and of
    configurations that say what none of their receipts ran."""

    missing: tuple[int, ...]
    elsewhere: tuple[int, ...]
    signed: tuple[int, ...]
    configurations: tuple[int, ...]


class IndexAudit:
    """Held against documents, over one state of the index: of configurations each is looked at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        counted = select(axes.c.configuration, func.count()).group_by(axes.c.configuration)
        self._counts: dict[int, int] = {row[0]: row[1] for row in connection.execute(counted)}
        self._seen: set[int] = set()

    def __repr__(self) -> str:
        return f"IndexAudit({len(self._seen)} of {len(self._counts)} looked at)"

    def faults(self, batch: Sequence[IndexedReceipt]) -> IndexFaults:
        """What the index says otherwise of receipts than their documents; what another catalogue read is passed by."""
        columns = [configurations.c[name] for name in ("digest", "whole", *CONFIGURED)]
        query = (
            select(placements.c.receipt, placements.c.at, configurations.c.seq, *columns)
            .join(configurations, configurations.c.seq == placements.c.configuration)
            .where(placements.c.receipt.in_([item.seq for item in batch]))
        )
        rows = {row.receipt: row for row in self._connection.execute(query)}
        known = [item for item in batch if item.seq in rows]
        held = [item for item in known if rows[item.seq].catalogue == item.configuration.catalogue]
        whole = [item for item in held if bytes(rows[item.seq].whole) == item.configuration.whole]
        own = {item.seq: rows[item.seq].at for item in whole}
        # What lies in a configuration that it did not run has been moved, and says nothing of that one's rows.
        read = {rows[item.seq].seq: (rows[item.seq], item.configuration) for item in reversed(whole)}
        return IndexFaults(
            tuple(item.seq for item in batch if item.seq not in rows),
            tuple(item.seq for item in held if own.get(item.seq) != index.instant(item.started)),
            tuple(_signed_otherwise(self._connection, held)),
            tuple(self._unsound({number: read[number] for number in read.keys() - self._seen})),
        )

    def _unsound(self, new: Mapping[int, tuple[Any, Configuration]]) -> list[int]:
        """Numbers of configurations whose rows are not what was run in them."""
        self._seen.update(new)
        values = _values(self._connection, {part for _, read in new.values() for part in read.parts.values()})
        # What a value that is lost would have is not known.
        whole = {number for number, (_, read) in new.items() if values.keys() >= set(read.parts.values())}
        wanted = {number: set(index.axes_of(number, new[number][1], values)) for number in whole}
        there = set(_AXES.read(self._connection, sorted(row[:2] for rows in wanted.values() for row in rows)))

        def holds(number: int, row: Any, read: Configuration) -> bool:
            written = tuple(getattr(row, name) for name in CONFIGURED)
            return (
                number in whole
                and row.digest == read.digest
                and written == index.columns_of(read, values)
                and self._counts.get(number, 0) == len(wanted[number])
                and wanted[number] <= there
            )

        return [number for number, (row, read) in sorted(new.items()) if not holds(number, row, read)]


def _values(connection: Connection, parts: Iterable[AxisPart]) -> dict[AxisPart, int]:
    """Numbers of axis values as the index has them; what it has under another text is not there."""
    by_key = {index.key_of(part): part for part in parts}
    return {
        by_key[axis, bytes(digest)]: seq
        for axis, digest, seq, value in _VALUES.read(connection, by_key)
        if by_key[axis, bytes(digest)].value == value
    }


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
