"""The indexes: which configuration every receipt ran, and its signature; both can be rebuilt from its document.

Writing is made for many at once and for any number of writers: what is new is inserted in one fixed order, so that
two writers never wait for one another in a circle, and the second reads what the first one wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, exists, select

from receipts.axes.configuration import AxisPart, Configuration
from receipts.axes.shape import Signature
from receipts.metrics import Launch
from receipts.store import tables
from receipts.store.entries import cut, safe
from receipts.store.query import outcomes
from receipts.store.sql import Insertion, Lookup, engine_of
from receipts.store.sql.statement import Rows, SqlStatement
from receipts.store.tables import axes, axis_values, configurations, placements, receipts

_OF_WHOLE: Final = Lookup(
    [configurations.c.digest, configurations.c.whole],
    [configurations.c.digest, configurations.c.whole, configurations.c.seq],
)
OF_VALUE: Final = Lookup(
    [axis_values.c.axis, axis_values.c.digest], [axis_values.c.axis, axis_values.c.digest, axis_values.c.seq]
)
_OLDEST: Final = SqlStatement(
    select(receipts.c.seq, placements.c.receipt)
    .outerjoin(placements, placements.c.receipt == receipts.c.seq)
    .order_by(receipts.c.seq)
    .limit(2)
)
NUMBERS: Final = Lookup([configurations.c.seq], [configurations.c[name] for name in ("seq", "whole", "value_numbers")])
CONFIGURED: Final = ("catalogue", "lane", "anchor", "line", "value_numbers")
_NEW_CONFIGURATIONS: Final = Insertion([configurations.c[name] for name in ("digest", "whole", *CONFIGURED)])
_NEW_VALUES: Final = Insertion([axis_values.c[name] for name in ("axis", "digest", "value")])
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_AXIS: Final = SqlStatement.insert(axes)
_PLACEMENT: Final = SqlStatement.insert(placements)


class IndexedReceipt(NamedTuple):
    """What the indexes hold of a receipt, by its number; ``signature`` is None where it has none."""

    seq: int
    started: datetime
    outcome: str
    configuration: Configuration
    signature: Signature | None

    @classmethod
    def of(cls, seq: int, started: datetime, launch: Launch) -> IndexedReceipt:
        """As its document is read now."""
        run = launch.parsed.receipt.run
        configuration = launch.settings.configuration(launch.parsed, launch.lane)
        return cls(seq, started, run.outcome, configuration, outcomes.signature_of(launch))


def instant(moment: datetime) -> int:
    """A moment as lists order by it: microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def add(connection: Connection, placed: Sequence[IndexedReceipt]) -> None:
    """Write down what new receipts ran, in the transaction that stores them."""
    known = numbers(connection, [item.configuration for item in placed])
    engine_of(connection).write(connection, rows(placed, known), end=False)


def rows(placed: Sequence[IndexedReceipt], known: Mapping[bytes, int]) -> list[Rows]:
    """The rows of receipts; ``known`` are numbers of their configurations by their `whole`."""
    where = [
        {"receipt": item.seq, "configuration": known[item.configuration.whole], "at": instant(item.started)}
        for item in placed
    ]
    signed = [
        outcomes.signature_row(item.seq, item.outcome, item.signature) for item in placed if item.signature is not None
    ]
    return [(_PLACEMENT, where), (outcomes.INSERT_SIGNATURE, signed)]


def numbers(connection: Connection, wanted: Iterable[Configuration]) -> dict[bytes, int]:
    """Numbers of configurations by their `whole`; those that are new are written with their values and axes."""
    every = {(item.digest, item.whole): item for item in wanted}
    known = _known(connection, _OF_WHOLE, every)
    new = {key: every[key] for key in sorted(every.keys() - known.keys())}
    if new:
        parts = {key_of(part): part for item in new.values() for part in item.parts.values()}
        interned = _known(connection, OF_VALUE, parts)
        if unknown := sorted(parts.keys() - interned.keys()):
            _NEW_VALUES.counted(connection, [(*key, parts[key].value) for key in unknown], by=2)
            interned |= _known(connection, OF_VALUE, unknown)  # and those that another writer inserted first
        values = {parts[key]: seq for key, seq in interned.items()}
        rows = [(*key, *columns_of(item, values)) for key, item in new.items()]
        inserted = _NEW_CONFIGURATIONS.counted(connection, rows, by=2)
        numbered = ((seq, every[digest, bytes(whole)]) for digest, whole, seq in inserted)
        written = sorted(row for seq, item in numbered for row in axes_of(seq, item, values))
        named = [dict(zip(_AXIS.parameters, row, strict=True)) for row in written]
        engine_of(connection).write(connection, [(_AXIS, named)], end=False)
        known |= _known(connection, _OF_WHOLE, new)
    return {whole: seq for (_, whole), seq in known.items()}


def _known(connection: Connection, lookup: Lookup, keys: Iterable[tuple[Any, bytes]]) -> dict[tuple[Any, bytes], int]:
    return {(one, bytes(digest)): seq for one, digest, seq in lookup.read(connection, keys)}


def key_of(part: AxisPart) -> tuple[str, bytes]:
    """The key of a value in the index: its axis, and SHA-256 of its text."""
    return safe(part.axis), sha256(part.value.encode()).digest()


def columns_of(item: Configuration, values: Mapping[AxisPart, int]) -> tuple[Any, ...]:
    """The columns `CONFIGURED` of a configuration; ``values`` are numbers of its parts."""
    return item.catalogue, cut(safe(item.lane)), safe(item.anchor), item.line, packed(item, values)


def axes_of(seq: int, item: Configuration, values: Mapping[AxisPart, int]) -> Iterator[tuple[int, int, int | None]]:
    """The rows of `axes` of the configuration of a number."""
    return ((values[part], seq, item.without(part.axis)) for part in item.parts.values())


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
    query = select(placements.c.configuration).where(among(placements.c.receipt, list(seqs)))
    left = sorted(set(connection.execute(query).scalars()))
    for table in (tables.signatures, placements):
        connection.execute(delete(table).where(among(table.c.receipt, list(seqs))))
    inhabited = exists().where(placements.c.configuration == configurations.c.seq)
    had = among(configurations.c.seq, left)
    gone = values_of(connection, connection.execute(select(configurations.c.seq).where(had, ~inhabited)).scalars())
    values, empty = sorted(frozenset[int]().union(*gone.values())), list(gone)
    # What another row still has stays.
    held = exists().where(axes.c.value == axis_values.c.seq)
    for drop in (
        delete(axes).where(among(axes.c.value, values), among(axes.c.configuration, empty)),
        delete(configurations).where(among(configurations.c.seq, empty)),
        delete(axis_values).where(among(axis_values.c.seq, values), ~held),
    ):
        connection.execute(drop)


def packed(item: Configuration, values: Mapping[AxisPart, int]) -> bytes:
    """The numbers of a configuration's values, ascending, as the column `value_numbers` has them."""
    numbers = sorted(values[part] for part in item.parts.values())
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpacked(body: bytes) -> tuple[int, ...]:
    """The numbers that `packed` packed."""
    count = len(body) // 4
    return struct.unpack(f"<{count}I", body[: 4 * count])  # an audit says where the row is damaged


def values_of(connection: Connection, numbers: Iterable[int]) -> dict[int, frozenset[int]]:
    """Numbers of the values of some configurations."""
    rows = NUMBERS.read(connection, ((number,) for number in numbers))
    return {number: frozenset(unpacked(bytes(body))) for number, _whole, body in rows}
