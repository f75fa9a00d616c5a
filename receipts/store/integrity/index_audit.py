"""Whether the axis index says of a configuration what the documents of its receipts give, and making it anew if not.

Rows that many receipts share are written once and read for ever: one that was edited or lost would answer wrongly for
all of them. Each configuration is held against the first of its receipts that is read, and looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, exists, func, select, update

from receipts.axes.configuration import AxisPart, Configuration
from receipts.store.entries import cut
from receipts.store.sql import engine_of
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axes, axis_values, configurations, facets, placements, receipts
from receipts.store.write import index
from receipts.store.write.index import OF_VALUE, Interned, by_sums, column_text, unpacked
from receipts.store.write.listing import OF_FACET, facet

_ROWS: Final = Lookup(
    [configurations.c.seq],
    [configurations.c[name] for name in ("seq", "digest", "lane", "anchor", "line", "whole", "members")],
)
_AXES: Final = Lookup([axes.c.value, axes.c.configuration], [axes.c.value, axes.c.configuration, axes.c.leave_one_out])


class Placed(NamedTuple):
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

    def strays(self, connection: Connection) -> bool:
        """Whether there are rows of configurations that are not there."""
        return bool(self._counts.keys() - set(connection.execute(select(configurations.c.seq)).scalars()))

    def unsound(self, connection: Connection, placed: Iterable[Placed]) -> list[Placed]:
        """Those of some configurations whose rows are not what was run in them, each the first time that it comes."""
        new = {item.number: item for item in placed if item.number <= self._last and item.number not in self._seen}
        self._seen.update(new)
        rows = {row[0]: row for row in _ROWS.read(connection, ((number,) for number in new))}
        # What lies in a configuration that it did not run has been moved, and says nothing of that one's rows.
        new = {number: item for number, item in new.items() if _whole(rows.get(number)) == item.ran.whole}
        values = _values(connection, {part for item in new.values() for part in item.ran.parts.values()})
        wanted = {number: _wanted(item, values) for number, item in new.items()}
        keys = sorted(key for found in wanted.values() for key in found or ())
        there = {(value, number): left for value, number, left in _AXES.read(connection, keys)}
        return [
            item
            for number, item in sorted(new.items())
            if not self._says(item, rows[number], wanted[number], there, values)
        ]

    def _says(
        self,
        item: Placed,
        row: Any,
        wanted: Mapping[tuple[int, int], int | None] | None,
        there: Mapping[tuple[int, int], int | None],
        values: Mapping[AxisPart, Interned],
    ) -> bool:
        _, digest, lane, anchor, line, _, members = row
        ran = item.ran
        return (
            wanted is not None
            and (digest, lane, anchor, line)
            == (ran.digest, cut(column_text(ran.lane)), column_text(ran.anchor), ran.line)
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
        by_key.setdefault((column_text(part.axis), part.digest), []).append(part)
    return {
        part: Interned(seq, bool(early))
        for seq, axis, digest, _twin, early, value in OF_VALUE.read(connection, by_key)
        for part in by_key[axis, digest]
        if part.value == value
    }


def _wanted(item: Placed, values: Mapping[AxisPart, Interned]) -> dict[tuple[int, int], int | None] | None:
    """The rows of `axes` that a configuration has, as value, number and what is left; None where a value is lost."""
    found = {}
    for part in item.ran.parts.values():
        value = values.get(part)
        if value is None:
            return None
        left = None if value.early and by_sums(item.ran, part.axis) else item.ran.without(part.axis)
        found[value.seq, item.number] = left
    return found


def mend(connection: Connection, unsound: Sequence[Placed]) -> None:
    """Write configurations anew, under new numbers, with all that is placed in them; the caller's transaction."""
    engine_of(connection).lock(connection, alone=True)
    for item in unsound:
        row = next(iter(_ROWS.read(connection, [(item.number,)])), None)
        if row is None:
            continue
        # Nobody takes it for the one that is written now.
        connection.execute(update(configurations).where(configurations.c.seq == item.number).values(whole=b""))
        number = index.numbers(connection, [item.ran])[item.ran.whole]
        moved = update(placements).where(placements.c.configuration == item.number).values(configuration=number)
        connection.execute(moved)
        members = _read(bytes(row[6]))
        index.drop_axes(connection, ((value, item.number) for value in members))
        connection.execute(delete(configurations).where(configurations.c.seq == item.number))


def _read(members: bytes) -> list[int]:
    """Numbers of values, however damaged they are: none is too large for a column."""
    return [number for number in unpacked(members) if number < 2**63]


def facets_amiss(connection: Connection) -> list[int]:
    """Digests of facets whose text is not what they are digests of."""
    rows = connection.execute(select(facets.c.digest, facets.c.value))
    return sorted(digest for digest, value in rows if _digest(value) != digest)


def _digest(value: str) -> int | None:
    import json

    try:
        made = facet(tuple(json.loads(value)))
    except (ValueError, TypeError):
        return None
    return made.digest if made.value == value else None


def mend_facets(connection: Connection, amiss: Iterable[int]) -> None:
    """Write facets anew from a receipt that has them; those that none has go."""
    engine_of(connection).lock(connection, alone=True)
    for digest in amiss:
        of = select(*(receipts.c[name] for name in OF_FACET)).join(placements, placements.c.receipt == receipts.c.seq)
        rows = connection.execute(of.where(placements.c.facet == digest).distinct())
        found = [made for made in (facet(tuple(row)) for row in rows) if made.digest == digest]
        at = facets.c.digest == digest
        connection.execute(update(facets).where(at).values(value=found[0].value) if found else delete(facets).where(at))


def sweep(connection: Connection) -> None:
    """Take out what nothing has: rows of configurations that are not there, and values of none."""
    engine_of(connection).lock(connection, alone=True)
    gone = ~exists().where(configurations.c.seq == axes.c.configuration)
    connection.execute(delete(axes).where(gone))
    connection.execute(delete(axis_values).where(~exists().where(axes.c.value == axis_values.c.seq)))
