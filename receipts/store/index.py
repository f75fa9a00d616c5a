"""The indexes: which configuration every receipt ran, and its signature; both can be rebuilt from its document.

Writing is made for many at once and for any number of writers: what is new is inserted in one fixed order, so that
two writers never wait for one another in a circle, and the second reads what the first one wrote.

Audit: rows that many receipts share are written once and read for ever, so one that was edited or lost would answer
wrongly for all of them. Each configuration is held against the first of its receipts that is read, and looked at
once.

Rebuild: in batches, beside writers. It goes through the receipts as they came in, so that configurations get their
numbers in that order, as a submit gives them: by these the newest are known. The oldest alone comes last, since its
place says that all others have theirs. What is right already is left out, so that it can be stopped at any time and
started again; a receipt that comes in meanwhile is indexed by whoever submits it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, Select, delete, exists, func, select

from receipts.axes.catalogue import catalogue_of
from receipts.axes.configuration import AxisPart, Configuration
from receipts.axes.lane import Lanes
from receipts.axes.replicates import SettingsCache
from receipts.axes.shape import Signature
from receipts.base.errors import InputError, StoreError
from receipts.base.units import counted
from receipts.metrics import Launch
from receipts.receipt import Document, parse_again
from receipts.store import schema
from receipts.store.address import Address
from receipts.store.database import opened, reading, write
from receipts.store.entries import cut, safe, unpack
from receipts.store.query import outcomes
from receipts.store.sql import Insertion, Lookup, engine_of
from receipts.store.sql.statement import Rows, SqlStatement
from receipts.store.tables import (
    REBUILT,
    axes,
    axis_values,
    configurations,
    documents,
    placements,
    receipts,
    signatures,
)

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
        values = interned(connection, {part for item in new.values() for part in item.parts.values()})
        rows = [(*key, *columns_of(item, values)) for key, item in new.items()]
        inserted = _NEW_CONFIGURATIONS.counted(connection, rows, by=2)
        numbered = ((seq, every[digest, bytes(whole)]) for digest, whole, seq in inserted)
        written = sorted(row for seq, item in numbered for row in axes_of(seq, item, values))
        named = [dict(zip(_AXIS.parameters, row, strict=True)) for row in written]
        engine_of(connection).write(connection, [(_AXIS, named)], end=False)
        known |= _known(connection, _OF_WHOLE, new)
    return {whole: seq for (_, whole), seq in known.items()}


def interned(connection: Connection, wanted: Iterable[AxisPart]) -> dict[AxisPart, int]:
    """Numbers of axis values; those that are new are written."""
    every = {key_of(part): part for part in wanted}
    known = _known(connection, OF_VALUE, every)
    if new := sorted(every.keys() - known.keys()):
        _NEW_VALUES.counted(connection, [(*key, every[key].value) for key in new], by=2)
        known |= _known(connection, OF_VALUE, new)  # and those that another writer inserted first
    return {every[key]: seq for key, seq in known.items()}


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
    for table in (signatures, placements):
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


_VALUES: Final = Lookup(
    [axis_values.c.axis, axis_values.c.digest], [axis_values.c[name] for name in ("axis", "digest", "seq", "value")]
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
        placed = {item.seq: rows[item.seq].at for item in whole}
        columns = [signatures.c[name] for name in ("outcome", "signature", "micro_batch", "sequence_length")]
        signed = select(signatures.c.receipt, *columns).where(signatures.c.receipt.in_([item.seq for item in held]))
        there = {row[0]: tuple(row[1:]) for row in self._connection.execute(signed)}
        # What a lane's list of features decides is not held against it.
        expected = {
            item.seq: (item.outcome, own.signature, own.micro_batch, own.sequence_length)
            for item in held
            if (own := item.signature) is not None
        }
        # What lies in a configuration that it did not run has been moved, and says nothing of that one's rows.
        read = {rows[item.seq].seq: (rows[item.seq], item.configuration) for item in reversed(whole)}
        return IndexFaults(
            tuple(item.seq for item in batch if item.seq not in rows),
            tuple(item.seq for item in held if placed.get(item.seq) != instant(item.started)),
            tuple(item.seq for item in held if there.get(item.seq) != expected.get(item.seq)),
            tuple(self._unsound({number: read[number] for number in read.keys() - self._seen})),
        )

    def _unsound(self, new: Mapping[int, tuple[Any, Configuration]]) -> list[int]:
        """Numbers of configurations whose rows are not what was run in them."""
        self._seen.update(new)
        by_key = {key_of(part): part for _, read in new.values() for part in read.parts.values()}
        values = {  # what the index has under another text is not there
            by_key[axis, bytes(digest)]: seq
            for axis, digest, seq, value in _VALUES.read(self._connection, by_key)
            if by_key[axis, bytes(digest)].value == value
        }
        # What a value that is lost would have is not known.
        whole = {number for number, (_, read) in new.items() if values.keys() >= set(read.parts.values())}
        wanted = {number: set(axes_of(number, new[number][1], values)) for number in whole}
        there = set(_AXES.read(self._connection, sorted(row[:2] for rows in wanted.values() for row in rows)))

        def holds(number: int, row: Any, read: Configuration) -> bool:
            written = tuple(getattr(row, name) for name in CONFIGURED)
            return (
                number in whole
                and row.digest == read.digest
                and written == columns_of(read, values)
                and self._counts.get(number, 0) == len(wanted[number])
                and wanted[number] <= there
            )

        return [number for number, (row, read) in sorted(new.items()) if not holds(number, row, read)]


WINDOW: Final = 2000
BATCH: Final = 100  # receipts whose rows are written in one transaction: a writer beside it waits for no more
Progress = Callable[[int, int], None]


class Reindexed(NamedTuple):
    """What was made anew: receipts that were looked at, those that were placed, and those whose bytes are damaged."""

    store: str
    receipts: int
    placed: int
    damaged: tuple[str, ...]


class Coverage(NamedTuple):
    """Receipts that the axis index does not hold, and those that it holds as they were read before."""

    missing: int
    outdated: int

    @property
    def problem(self) -> str:
        """What is wrong and what to do, in a sentence; empty where nothing is."""
        parts = []
        if self.missing:
            parts.append(f"the axis index does not hold {counted(self.missing, 'receipt')}")
        if self.outdated:
            held = counted(self.outdated, "receipt")
            parts.append(f"it holds {held} under an older catalogue of axes or another lane file")
        return f"{', and '.join(parts)}; run: receipts db reindex" if parts else ""


class _Row(NamedTuple):
    """A receipt with the catalogue under which the index holds it; None where it does not."""

    seq: int
    id: str
    lane: str
    started: datetime
    catalogue: int | None


def coverage(address: Address, lanes: Lanes) -> Coverage:
    """How much of a store its axis index does not hold as it would be read now."""
    with opened(address) as engine, reading(engine) as connection:
        counts = (select(func.count()).select_from(rows) for rows in (receipts, placements))
        held, placed = (connection.execute(query).scalar_one() for query in counts)
        query = (
            select(configurations.c.lane, configurations.c.catalogue, func.count())
            .join(placements, placements.c.configuration == configurations.c.seq)
            .group_by(configurations.c.lane, configurations.c.catalogue)
        )
        rows = connection.execute(query).all()
        outdated = sum(n for lane, catalogue, n in rows if catalogue != catalogue_of(lanes.of(lane)).digest)
        return Coverage(held - placed, outdated)


def reindex(address: Address, lanes: Lanes, *, everything: bool = False, progress: Progress | None = None) -> Reindexed:
    """Index every receipt that the axis index does not hold as it would be read now; with ``everything`` from nothing.

    From nothing, rows that many receipts share are right whatever was in them; until it has ended, lists are read from
    documents. ``progress`` is called with how many receipts of how many were looked at. Raises StoreError.
    """
    schema.must_exist(address)
    with opened(address) as engine:
        schema.ensure(engine, address, create=False)
        with reading(engine) as connection:
            total: int = connection.execute(select(func.count()).select_from(receipts)).scalar_one()
        seen = placed = 0
        damaged: list[str] = []
        if everything:
            write(engine, _clear)
        for rows in _windows(engine):
            outdated = [row for row in rows if row.catalogue != catalogue_of(lanes.of(row.lane)).digest]
            for start in range(0, len(outdated), BATCH):
                indexed = list(_indexed(engine, outdated[start : start + BATCH], lanes, damaged))
                placed += write(engine, partial(_replace, indexed=indexed))
            seen += len(rows)
            if progress is not None:
                progress(min(seen, total), total)
        return Reindexed(str(address), seen, placed, tuple(damaged))


def _clear(connection: Connection) -> None:
    """Take everything out of the indexes."""
    engine_of(connection).lock(connection, alone=True)
    for table in REBUILT:
        connection.execute(delete(table))


def _windows(engine: Engine) -> Iterator[list[_Row]]:
    """Receipts with where they are placed, in the order in which the store took them in; the oldest comes last."""
    query: Select[Any] = (
        select(*(receipts.c[name] for name in _Row._fields[:-1]), configurations.c.catalogue)
        .outerjoin(placements, placements.c.receipt == receipts.c.seq)
        .outerjoin(configurations, configurations.c.seq == placements.c.configuration)
        .order_by(receipts.c.seq)
        .limit(WINDOW)
    )
    with reading(engine) as connection:
        oldest = last = connection.execute(select(func.min(receipts.c.seq))).scalar() or 0
    while rows := _read(engine, query.where(receipts.c.seq > last)):
        yield rows
        last = rows[-1].seq
    yield _read(engine, query.where(receipts.c.seq == oldest))


def _read(engine: Engine, query: Select[Any]) -> list[_Row]:
    with reading(engine) as connection:
        return [_Row(*row) for row in connection.execute(query)]


def _indexed(engine: Engine, rows: Sequence[_Row], lanes: Lanes, damaged: list[str]) -> Iterator[IndexedReceipt]:
    """What receipts ran, read from their documents outside of any transaction that writes."""
    query = select(documents.c.receipt, documents.c.codec, documents.c.body).where(
        documents.c.receipt.in_([row.seq for row in rows])
    )
    with reading(engine) as connection:
        stored = {number: (codec, body) for number, codec, body in connection.execute(query)}
    session = SettingsCache()
    for row in rows:
        if row.seq not in stored:
            continue  # purged meanwhile
        try:
            parsed = parse_again(Document(unpack(*stored[row.seq], row.id[:12]), row.id[:12]))
        except (StoreError, InputError):
            damaged.append(row.id)
            continue
        launch = Launch(parsed, lanes.of(parsed.receipt.run.lane), session.settings(parsed))
        yield IndexedReceipt.of(row.seq, row.started, launch)


def _replace(connection: Connection, indexed: Sequence[IndexedReceipt]) -> int:
    """Write the rows of one batch anew; gives how many of it are still there."""
    # A configuration may become empty, even of receipts that lay nowhere when they were read: another may have placed
    # them since. Nobody may place a receipt in one while it is taken away.
    engine_of(connection).lock(connection, alone=True)
    query = select(receipts.c.seq).where(receipts.c.seq.in_([item.seq for item in indexed]))
    there = set(connection.execute(query).scalars())
    placed = [item for item in indexed if item.seq in there]
    forget(connection, list(there))
    add(connection, placed)
    return len(placed)
