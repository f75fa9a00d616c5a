"""The indexes: which configuration every receipt ran, its facet and its signature, rebuilt from its document.

Writing is made for many at once and for any number of writers: what is new is inserted in one fixed order, so that
two writers never wait for one another in a circle, and the second reads what the first one wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, exists, select

from receipts.axes.configuration import AxisPart, Configuration
from receipts.axes.signature import Signature
from receipts.metrics import Launch
from receipts.store import tables
from receipts.store.entries import cut, safe
from receipts.store.query import signatures
from receipts.store.sql import engine_of
from receipts.store.sql.lookup import Insertion, Lookup
from receipts.store.sql.statement import Rows, SqlStatement
from receipts.store.tables import axes, axis_values, configurations, facets, placements, receipts
from receipts.store.write import listing as listed
from receipts.store.write.listing import ListingKeys

_OF_DIGEST: Final = Lookup(
    [configurations.c.digest], [configurations.c[name] for name in ("seq", "digest", "twin", "whole")]
)
OF_VALUE: Final = Lookup(
    [axis_values.c.axis, axis_values.c.digest],
    [axis_values.c[name] for name in ("seq", "axis", "digest", "twin", "value")],
)
_OLDEST: Final = SqlStatement(
    select(receipts.c.seq, placements.c.receipt)
    .outerjoin(placements, placements.c.receipt == receipts.c.seq)
    .order_by(receipts.c.seq)
    .limit(2)
)
MEMBERS: Final = Lookup([configurations.c.seq], [configurations.c[name] for name in ("seq", "whole", "members")])
CONFIGURED: Final = ("catalogue", "lane", "anchor", "line", "whole", "members")
_NEW_CONFIGURATIONS: Final = Insertion([configurations.c[name] for name in ("digest", "twin", *CONFIGURED)])
_NEW_VALUES: Final = Insertion([axis_values.c[name] for name in ("axis", "digest", "twin", "value")])
_AXIS: Final = SqlStatement.insert(axes)
_PLACEMENT: Final = SqlStatement.insert(placements)


class IndexedReceipt(NamedTuple):
    """What the indexes hold of a receipt, by its number; ``signature`` is None where it has none."""

    seq: int
    outcome: str
    configuration: Configuration
    listed: ListingKeys
    signature: Signature | None

    @classmethod
    def of(cls, seq: int, columns: Mapping[str, Any], launch: Launch) -> IndexedReceipt:
        """As its document is read now; ``columns`` are those of its row."""
        parsed = launch.parsed
        ran, keys = launch.settings.configuration(parsed, launch.lane), listed.listed(columns, parsed)
        return cls(seq, parsed.receipt.run.outcome, ran, keys, signatures.signed(launch))


def add(connection: Connection, placed: Sequence[IndexedReceipt]) -> None:
    """Write down what new receipts ran, in the transaction that stores them."""
    known = numbers(connection, [item.configuration for item in placed])
    engine_of(connection).write(connection, rows(placed, known), end=False)


def rows(placed: Sequence[IndexedReceipt], known: Mapping[bytes, int]) -> list[Rows]:
    """The rows of receipts; ``known`` are numbers of their configurations by their `whole`."""
    return [
        (
            _PLACEMENT,
            [
                {"receipt": item.seq, "configuration": known[item.configuration.whole], **item.listed.row}
                for item in placed
            ],
        ),
        (listed.INSERT, [facet._asdict() for facet in sorted({item.listed.facet for item in placed})]),
        (
            signatures.INSERT,
            [
                signatures.row_of(item.seq, item.outcome, item.signature)
                for item in placed
                if item.signature is not None
            ],
        ),
    ]


def numbers(connection: Connection, wanted: Iterable[Configuration]) -> dict[bytes, int]:
    """Numbers of configurations by their `whole`; those that are new are written with their values and axes."""
    waiting = sorted({item.whole: item for item in wanted}.values(), key=lambda item: (item.digest, item.whole))
    by_digest: dict[bytes, int] = {}
    values: dict[AxisPart, int] = {}
    while True:
        twins: dict[int, int] = {}
        for seq, digest, twin, whole in _OF_DIGEST.read(connection, {(item.digest,) for item in waiting}):
            by_digest[bytes(whole)] = seq
            twins[digest] = max(twin + 1, twins.get(digest, 0))
        waiting = [item for item in waiting if item.whole not in by_digest]
        if not waiting:
            return by_digest
        if not values:
            values = _interned(connection, {part for item in waiting for part in item.parts.values()})
        _write(connection, waiting, values, twins)


def _write(
    connection: Connection, new: Sequence[Configuration], values: dict[AxisPart, int], twins: dict[int, int]
) -> None:
    """Insert configurations, and the axes of those that no other writer inserted first."""
    by_key: dict[tuple[int, int], Configuration] = {}
    for item in new:
        twin = twins.setdefault(item.digest, 0)
        twins[item.digest] += 1
        by_key[item.digest, twin] = item
    stated = [(*key, *columns_of(item, values)) for key, item in by_key.items()]
    inserted = _NEW_CONFIGURATIONS.counted(connection, stated, by=2)
    rows = sorted(row for digest, twin, seq in inserted for row in axes_of(seq, by_key[digest, twin], values))
    named = [dict(zip(_AXIS.parameters, row, strict=True)) for row in rows]
    engine_of(connection).write(connection, [(_AXIS, named)], end=False)


def columns_of(item: Configuration, values: Mapping[AxisPart, int]) -> tuple[Any, ...]:
    """The columns `CONFIGURED` of a configuration; ``values`` are numbers of its parts."""
    return item.catalogue, cut(safe(item.lane)), safe(item.anchor), item.line, item.whole, members(item, values)


def axes_of(seq: int, item: Configuration, values: Mapping[AxisPart, int]) -> Iterator[tuple[int, int, int | None]]:
    """The rows of `axes` of the configuration of a number."""
    return ((values[part], seq, item.without(part.axis)) for part in item.parts.values())


def _interned(connection: Connection, wanted: Iterable[AxisPart]) -> dict[AxisPart, int]:
    """Numbers of axis values; those that are new are written."""
    waiting = sorted(wanted, key=lambda part: (safe(part.axis), part.digest, part.value))
    interned: dict[AxisPart, int] = {}
    while True:
        twins: dict[tuple[str, int], int] = {}
        known: dict[tuple[str, str], int] = {}
        keys = {(safe(part.axis), part.digest) for part in waiting}
        for seq, axis, digest, twin, value in OF_VALUE.read(connection, keys):
            known[axis, value] = seq
            twins[axis, digest] = max(twin + 1, twins.get((axis, digest), 0))
        interned |= {part: one for part in waiting if (one := known.get((safe(part.axis), part.value))) is not None}
        waiting = [part for part in waiting if part not in interned]
        if not waiting:
            return interned
        rows = []
        for part in waiting:
            key = (safe(part.axis), part.digest)
            rows.append((*key, twins.setdefault(key, 0), part.value))
            twins[key] += 1
        _NEW_VALUES.counted(connection, rows, by=2)


def purge(connection: Connection, seqs: Sequence[int]) -> None:
    """Take receipts out of the index that are about to be erased, as `forget` does.

    Where the oldest has no place, the index does not hold every receipt; the next oldest says so from then on.
    """
    oldest, *further = _OLDEST.all(connection, {})
    forget(connection, [*seqs, *(seq for seq, _ in further)] if oldest[0] in seqs and oldest[1] is None else seqs)


def forget(connection: Connection, seqs: Sequence[int]) -> None:
    """Take receipts out of the index, with every value that they alone had.

    The caller holds the lock alone, so that no writer places a receipt where one is taken out.
    """
    among = engine_of(connection).among
    query = select(placements.c.configuration, placements.c.facet).where(among(placements.c.receipt, list(seqs)))
    places = connection.execute(query).all()
    for table in (tables.signatures, placements):
        connection.execute(delete(table).where(among(table.c.receipt, list(seqs))))
    inhabited = exists().where(placements.c.configuration == configurations.c.seq)
    had = among(configurations.c.seq, sorted({row.configuration for row in places}))
    gone = members_of(connection, connection.execute(select(configurations.c.seq).where(had, ~inhabited)).scalars())
    values, empty = sorted(frozenset[int]().union(*gone.values())), list(gone)
    # What another row still has stays.
    listed_so = exists().where(placements.c.facet == facets.c.digest)
    held = exists().where(axes.c.value == axis_values.c.seq)
    for drop in (
        delete(facets).where(among(facets.c.digest, list({row.facet for row in places} - {None})), ~listed_so),
        delete(axes).where(among(axes.c.value, values), among(axes.c.configuration, empty)),
        delete(configurations).where(among(configurations.c.seq, empty)),
        delete(axis_values).where(among(axis_values.c.seq, values), ~held),
    ):
        connection.execute(drop)


def members(item: Configuration, values: Mapping[AxisPart, int]) -> bytes:
    """The numbers of a configuration's values, ascending, as varints of the gaps between them."""
    packed, last = bytearray(), 0
    for number in sorted(values[part] for part in item.parts.values()):
        gap, last = number - last, number
        while gap > 0x7F:
            packed.append(gap & 0x7F | 0x80)
            gap >>= 7
        packed.append(gap)
    return bytes(packed)


def unpacked(body: bytes) -> Iterator[int]:
    """The numbers that `members` packed."""
    number = shift = gap = 0
    for byte in body:
        gap |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            number += gap
            yield number
            shift = gap = 0


def members_of(connection: Connection, numbers: Iterable[int]) -> dict[int, frozenset[int]]:
    """Numbers of the values of some configurations."""
    rows = MEMBERS.read(connection, ((number,) for number in numbers))
    return {number: frozenset(unpacked(bytes(body))) for number, _whole, body in rows}
