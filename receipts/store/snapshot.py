"""Reading a whole store, or part of it, in one state: what an export and everything like it needs.

Rows come in the order in which the store took them in and are fetched in chunks: a million receipts cost no more memory
than their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, Result, Select, Table, select

from receipts.store.documents import AT_ONCE, documents_of, unpack
from receipts.store.entries import entry_of, select_entries
from receipts.store.entry import Entry
from receipts.store.query.lists import Filters
from receipts.store.query.lists import find as find_rows
from receipts.store.store import Store
from receipts.store.tables import (
    HEAD,
    claim_verdicts,
    metadata,
    receipts,
    stores,
    subjects,
    supersessions,
    verdicts,
)
from receipts.store.verdicts import sides_of, sides_of_claims


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
