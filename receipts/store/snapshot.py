"""Reading a whole store, or part of it, in one state: what an export needs, and what an audit looks at.

Rows come in the order in which the store took them in and are fetched in chunks: a million receipts cost no more memory
than their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Column, Connection, Result, Select, Table, exists, func, select
from sqlalchemy.exc import DBAPIError

from receipts.base.errors import StoreError
from receipts.store import seals as merkle
from receipts.store.entries import (
    AT_ONCE,
    VerdictColumns,
    documents_of,
    entry_of,
    json_body,
    readable_body,
    select_entries,
    unpack,
)
from receipts.store.entry import COLUMNS, Entry
from receipts.store.index import IndexAudit
from receipts.store.query.lists import Filters
from receipts.store.query.lists import find as find_rows
from receipts.store.seals import KINDS, Gap, Seal, SealRows, all_seals, gaps, held, last_sealed, leaf_content
from receipts.store.sql import engine_of
from receipts.store.tables import (
    HEAD,
    claim_verdicts,
    claims,
    documents,
    metadata,
    purges,
    receipts,
    seals,
    stores,
    subjects,
    supersessions,
    verdicts,
)
from receipts.store.verdicts import SIDES, sides_of, sides_of_claims

if TYPE_CHECKING:
    from receipts.store.store import Store


class Identity(NamedTuple):
    """Which store it is: its UUID, when it was made and by which version, and its schema's revision."""

    id: str
    created_at: datetime
    made_by: str
    revision: str


class ExportPlace(NamedTuple):
    """A receipt by number and id, with what decides where an export puts it. Times in UTC."""

    seq: int
    id: str
    lane: str
    ended: datetime


class Whole(NamedTuple):
    """A receipt with its bytes, and the last word on it where it no longer stands: successor or None, reason, time."""

    entry: Entry
    document: bytes
    superseded: tuple[str | None, str, datetime] | None


class VerdictRow(NamedTuple):
    """A verdict under its number in its store: `document` is its JSON, `subjects` are sides and ids in its order.

    `about` is the claim's id in a verdict on a claim, else None; only a comparison has a `metric`.
    """

    number: int
    kind: str
    status: str
    metric: str | None
    about: str | None
    rules: str
    judge: str
    at: datetime
    document: bytes
    subjects: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What two verdicts have in common that are one."""
        document = sha256(self.document).digest()
        return (*self[1:7], self.at.astimezone(UTC), document, self.subjects)


def verdict_rows(connection: Connection, rows: Sequence[Any], *, of_claims: bool = False) -> Iterator[VerdictRow]:
    """Rows of `verdicts`, or of `claim_verdicts`, at most a few hundred."""
    sides = (sides_of_claims if of_claims else sides_of)(connection, [row.seq for row in rows])
    for row in rows:
        claim = row.claim if of_claims else None
        kind, metric, at = ("claim", None, row.at) if of_claims else (row.kind, row.metric, row.judged_at)
        document = unpack(row.codec, row.body, f"verdict {row.seq}{f' on claim {claim}' if of_claims else ''}")
        given = (kind, row.status, metric, claim, row.rules, row.judge, at)
        yield VerdictRow(row.seq, *given, document, tuple(sides[row.seq]))


class Snapshot:
    """One state of a store, for as long as it is open; writers go on beside it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def identity(self) -> Identity:
        """Which store it is."""
        row = self._connection.execute(select(stores)).one()
        return Identity(row.id, row.created_at, row.made_by, HEAD)

    def places(self, filters: Filters | None = None) -> Iterator[ExportPlace]:
        """Receipts that meet the filters, standing or not unless told otherwise, in the order they were taken in."""
        if filters is not None:
            for entry in find_rows(self._connection, filters._replace(order="stored")):
                yield ExportPlace(entry.seq, entry.id, entry.lane, entry.finished or entry.started)
            return
        columns = (receipts.c.seq, receipts.c.id, receipts.c.lane, receipts.c.finished, receipts.c.started)
        for row in self._stream(select(*columns).order_by(receipts.c.seq)):
            yield ExportPlace(row.seq, row.id, row.lane, row.finished or row.started)

    def receipts(self, numbers: Sequence[int]) -> list[Whole]:
        """Receipts by their numbers, in the order of the numbers, at most a few hundred at once."""
        query = select_entries().where(receipts.c.seq.in_(numbers)).order_by(receipts.c.seq)
        rows = [entry_of(row) for row in self._connection.execute(query)]
        stored = documents_of(self._connection, numbers)
        gone = [row.id for row in rows if not row.stands]
        query = select(supersessions).where(supersessions.c.receipt.in_(gone)).order_by(supersessions.c.seq)
        # The last row of a receipt is the one that stays.
        standing = {row.receipt: (row.successor, row.reason, row.at) for row in self._connection.execute(query)}
        return [Whole(row, stored[row.seq], standing.get(row.id)) for row in rows]

    def verdicts(self, numbers: Sequence[int]) -> Iterator[VerdictRow]:
        """Verdicts on receipts of these numbers, each alone, oldest first."""
        spoken = select(subjects.c.verdict).where(subjects.c.receipt.in_(numbers))
        query = select(verdicts).where(verdicts.c.seq.in_(spoken), verdicts.c.kind == "receipt")
        rows = self._connection.execute(query.order_by(verdicts.c.seq)).all()
        yield from verdict_rows(self._connection, rows)

    def comparisons(self) -> Iterator[VerdictRow]:
        """Every verdict on several receipts, oldest first."""
        query = select(verdicts).where(verdicts.c.kind != "receipt").order_by(verdicts.c.seq)
        for rows in self._stream(query).partitions():
            yield from verdict_rows(self._connection, rows)

    def claim_verdicts(self) -> Iterator[VerdictRow]:
        """Every verdict on a claim, oldest first."""
        for rows in self._stream(select(claim_verdicts).order_by(claim_verdicts.c.seq)).partitions():
            yield from verdict_rows(self._connection, rows, of_claims=True)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Every row of one of the plain tables, in its key's order, columns by name."""
        table: Table = metadata.tables[name]
        names = [str(column.name) for column in table.columns]
        for row in self._stream(select(table).order_by(*table.primary_key.columns)):
            yield dict(zip(names, row, strict=True))

    def _stream(self, query: Select[Any]) -> Result[Any]:
        return self._connection.execution_options(yield_per=AT_ONCE).execute(query)


@contextmanager
def snapshot(store: Store) -> Iterator[Snapshot]:
    """One state of a store, on both engines, however long the reading takes. Raises StoreError."""
    with store.database.snapshot() as connection:
        yield Snapshot(connection)


# Where the ids of a table are; those of purged receipts are in their tombstones.
_IDS: Final = {"receipts": (receipts.c.id, purges.c.receipt), "claims": (claims.c.id,), "purges": (purges.c.receipt,)}
# What reading a damaged row raises: the driver, a type that holds something else, or the unpacking.
_DAMAGE: Final = (DBAPIError, StoreError, ValueError, TypeError, OverflowError)


class Unreadable(NamedTuple):
    """A row that cannot be read, by its table and number."""

    table: str
    number: int
    why: str


class ReceiptRecord(NamedTuple):
    """A receipt as it is kept. `columns` are those of its row, `raw` its bytes or why there are none.

    `answer` and `rules` are those of its first verdict, None where it has none that can be read.
    """

    number: int
    id: str
    columns: Mapping[str, Any]
    raw: bytes | None
    why: str
    size: int | None
    answer: VerdictColumns | None
    rules: str | None


class VerdictRecord(NamedTuple):
    """A verdict as it is kept: what its row says, its body or why it cannot be read, and its subjects in order."""

    table: str
    number: int
    row: Mapping[str, Any]
    body: Mapping[str, Any] | None
    why: str
    subjects: tuple[tuple[str, str | None], ...]


class Dangling(NamedTuple):
    """A row that names what is not there."""

    table: str
    number: int
    names: str


class Inspection:
    """One state of a store, open for reading. Nothing here raises for a row that is damaged: it is given as such."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.store: str | None = connection.execute(select(stores.c.id)).scalars().first()

    def __repr__(self) -> str:
        return f"Inspection({self.store!r})"

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        rows: int = self._connection.execute(select(func.count()).select_from(table)).scalar_one()
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """How many receipts, verdicts and seals there are."""
        return {table.name: self.count(table) for table in (receipts, verdicts, claim_verdicts, seals, purges)}

    def receipts(self) -> Iterator[ReceiptRecord | Unreadable]:
        """Every receipt in the order of their numbers."""
        columns = [receipts.c[name] for name in COLUMNS]
        query = select(*columns, documents.c.codec, documents.c.size, documents.c.body)
        query = query.outerjoin(documents, documents.c.receipt == receipts.c.seq)
        yield from self._each(query, receipts.c.seq, self._kept)

    def _kept(self, rows: Sequence[Any]) -> Iterator[ReceiptRecord]:
        query = (
            select(subjects.c.receipt, verdicts.c.status, verdicts.c.rules, verdicts.c.codec, verdicts.c.body)
            .join(verdicts, verdicts.c.seq == subjects.c.verdict)
            .where(verdicts.c.kind == "receipt", subjects.c.receipt.in_([row[0] for row in rows]))
            .order_by(verdicts.c.seq)
        )
        first: dict[int, tuple[VerdictColumns, str]] = {}
        for number, status, rules, codec, body in self._connection.execute(query):
            if number not in first:
                first[number] = VerdictColumns.of(status, json_body(codec, body)[0] or {}), rules
        for row in rows:
            columns = dict(zip(COLUMNS, row[: len(COLUMNS)], strict=True))
            codec, size, body = row[len(COLUMNS) :]
            raw, why = (None, "its document is not there") if body is None else readable_body(codec, body)
            yield ReceiptRecord(row[0], str(columns["id"]), columns, raw, why, size, *first.get(row[0], (None, None)))

    def verdicts(self) -> Iterator[VerdictRecord | Unreadable]:
        """Every verdict on receipts and comparisons, then every one on claims, in the order of their numbers."""
        for table in (verdicts, claim_verdicts):
            yield from self._each(select(*table.c), table.c.seq, partial(self._given, table))

    def _given(self, table: Table, rows: Sequence[Any]) -> Iterator[VerdictRecord]:
        sides = SIDES[table.name](self._connection, [row.seq for row in rows])
        for row in rows:
            body, why = json_body(row.codec, row.body)
            values = {name: value for name, value in row._mapping.items() if name != "body"}
            yield VerdictRecord(table.name, row.seq, values, body, why, tuple(sides[row.seq]))

    def dangling(self) -> Iterator[Dangling]:
        """Rows that name a receipt or a claim which is neither there nor has a tombstone."""
        for table in metadata.tables.values():
            for column in table.columns:
                if "of" in column.info:
                    gone = (~exists().where(key == column) for key in _IDS[column.info["of"]])
                    query = select(table.c.seq, column).where(column.is_not(None), *gone).order_by(table.c.seq)
                    for number, name in self._connection.execute(query):
                        yield Dangling(table.name, number, str(name))

    @property
    def index(self) -> IndexAudit:
        """What the axis index, facets and signatures hold, to be held against documents."""
        return IndexAudit(self._connection)

    def raised(self) -> Iterator[str]:
        """Ids of receipts that are there and have a tombstone."""
        query = select(receipts.c.id).join(purges, purges.c.receipt == receipts.c.id)
        yield from self._connection.execute(query).scalars()

    def seals(self) -> Iterator[SealRows | Unreadable]:
        """Every seal with what is there of its rows."""
        for one in list(all_seals(self._connection)):
            if one.what not in KINDS:
                yield Unreadable("seals", one.seq, f"it is over {one.what}, and no table of that name is sealed")
                continue
            try:
                yield held(self._connection, one)
            except _DAMAGE as error:
                yield Unreadable("seals", one.seq, _words(error))

    def missing(self, one: SealRows) -> list[int]:
        """Numbers of a seal's range that have no row: those that were taken away are among them."""
        there = {item.number for item in one.leaves}
        return [number for number in range(one.seal.first, one.seal.last + 1) if number not in there]

    def unsealed(self) -> int:
        """How many receipts and verdicts came since the last seal, as far as their numbers tell."""
        total = 0
        for what in ("receipts", "verdicts", "claim_verdicts"):
            after = last_sealed(self._connection, what)
            query = select(func.count()).select_from(KINDS[what].table).where(KINDS[what].number > after)
            total += self._connection.execute(query).scalar_one()
        return total

    def gaps(self) -> dict[str, Gap]:
        """Numbers that no seal held yet and that have no row, by table; see `numbers_skip`."""
        return gaps(self._connection)

    @property
    def numbers_skip(self) -> bool:
        """Whether the engine leaves gaps of its own between numbers."""
        return engine_of(self._connection).numbers_skip

    def proof(self, receipt: str) -> tuple[Seal, list[merkle.ProofStep]] | None:
        """The seal that holds a receipt, and the way from its leaf to the root; None where no seal holds it."""
        number = self._connection.execute(select(receipts.c.seq).where(receipts.c.id == receipt)).scalar()
        for one in all_seals(self._connection, "receipts"):
            if number is None or not one.first <= number <= one.last:
                continue
            there = held(self._connection, one).leaves
            at = next((place for place, item in enumerate(there) if item.number == number), None)
            if at is not None:
                return one, merkle.proof([item.digest for item in there], at)
        return None

    def log(self) -> list[bytes]:
        """Digests of the seals, in order: the leaves of the log that checkpoints are of."""
        return [merkle.leaf(item) for item in self.sealed()]

    def sealed(self) -> list[bytes]:
        """What the leaf of each seal is the digest of, in order."""
        return [leaf_content("seals", item[1:]) for item in all_seals(self._connection)]

    def _each(
        self, query: Select[Any], number: Column[int], make: Callable[[Sequence[Any]], Iterator[Any]]
    ) -> Iterator[Any]:
        """Rows in the order of their numbers, some at a time; where some cannot be read, one at a time."""
        numbered, after = select(number).order_by(number).limit(AT_ONCE), -1
        while numbers := self._connection.execute(numbered.where(number > after)).scalars().all():
            yield from self._some(query, number, numbers, make)
            after = numbers[-1]

    def _some(
        self,
        query: Select[Any],
        number: Column[int],
        numbers: Sequence[int],
        make: Callable[[Sequence[Any]], Iterator[Any]],
    ) -> Iterator[Any]:
        rows = query.where(number >= numbers[0], number <= numbers[-1]).order_by(number)
        try:
            yield from list(make(self._connection.execute(rows).all()))
        except _DAMAGE as error:
            if engine_of(self._connection).ends_on_error(error):
                raise
            if len(numbers) == 1:
                yield Unreadable(str(number.table), numbers[0], _words(error))
            for one in numbers if len(numbers) > 1 else ():
                yield from self._some(query, number, [one], make)


def _words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())
