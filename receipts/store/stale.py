"""Stored verdicts that are judged again, some at a time, and those that take their place.

A last verdict is *settled*, and passed by, if it is of the rule set in force, a seal holds it, and the verdict before
it, if it is of the same rule set, has the same status. Anything else may be a verdict that nobody judged: a row that
was written into the database after the judge's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from receipts.base.errors import StoreError
from receipts.store.entries import AT_ONCE, documents_of, unpack
from receipts.store.seals import last_sealed
from receipts.store.store import Store
from receipts.store.tables import claim_verdicts, receipts, subjects, verdicts
from receipts.store.verdicts import Verdict, add_verdict


class Scope(NamedTuple):
    """Which verdicts are looked at: of receipts or comparisons since a time, and of one rule set alone to be passed."""

    rules: str
    judge: str
    since: datetime | None = None

    def settled(self, verdict: Any, before: Any, sealed: int) -> bool:
        """Whether a last verdict is settled, by its row and the one before it; ``sealed`` is the last sealed number."""
        of_now = (verdict.rules, verdict.judge) == (self.rules, self.judge)
        same = before is None or verdict.rules != before.rules or verdict.status == before.status
        return of_now and same and verdict.seq <= sealed


class LastVerdict(NamedTuple):
    """The last verdict on a receipt, with the receipt's bytes: its document."""

    number: int
    id: str
    lane: str
    raw: bytes
    document: dict[str, Any]


class LastComparison(NamedTuple):
    """The last verdict on a comparison, by its number."""

    number: int
    document: dict[str, Any]


class _Row(NamedTuple):
    """What is held of a verdict while the next is read."""

    seq: int
    status: str
    rules: str
    judge: str
    at: datetime


def _json(row: Any) -> dict[str, Any]:
    document = json.loads(unpack(row.codec, row.body, f"verdict {row.seq}"))
    if not isinstance(document, dict) or not {"status", "rules", "judge"} <= document.keys():
        raise StoreError(f"row {row.seq} of verdicts is no verdict; see: receipts audit")
    return document


def _identity(document: dict[str, Any]) -> bytes:
    parts = [document[name] for name in ("a", "b", "metric", "waivers", "study")]
    return sha256(json.dumps(parts).encode()).digest()


class Stale:
    """A store's verdicts that are not settled. Every method is one transaction. Raises StoreError."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    def __repr__(self) -> str:
        return f"Stale({self._store!r}, {self._scope!r})"

    def count(self) -> int:
        """How many receipts there are to look at, judged under the present rule set or not."""
        query = select(func.count()).select_from(receipts)
        query = query if self._scope.since is None else query.where(receipts.c.submitted_at >= self._scope.since)
        with self._store.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def receipts(self) -> Iterator[list[LastVerdict]]:
        """Receipts with their last verdicts, where those are not settled, some at a time and maybe none."""
        query = select(receipts.c.seq, receipts.c.id, receipts.c.lane).order_by(receipts.c.seq).limit(AT_ONCE)
        if self._scope.since is not None:
            query = query.where(receipts.c.submitted_at >= self._scope.since)
        columns = (verdicts.c[name] for name in ("seq", "status", "rules", "judge", "codec", "body"))
        of_receipts = (
            select(subjects.c.receipt, *columns)
            .join(verdicts, verdicts.c.seq == subjects.c.verdict)
            .where(verdicts.c.kind == "receipt")
            .order_by(verdicts.c.seq)
        )
        after = -1
        while True:
            with self._store.database.reading() as connection:
                rows = connection.execute(query.where(receipts.c.seq > after)).all()
                if not rows:
                    return
                last: dict[int, tuple[Any, Any]] = {}  # the last verdict on each receipt, and the one before it
                for row in connection.execute(of_receipts.where(subjects.c.receipt.in_([row.seq for row in rows]))):
                    last[row.receipt] = row, last.get(row.receipt, (None, None))[0]
                sealed, settled = last_sealed(connection, "verdicts"), self._scope.settled
                stale = {number: row for number, (row, before) in last.items() if not settled(row, before, sealed)}
                bodies = documents_of(connection, list(stale))
            yield [
                LastVerdict(row.seq, row.id, row.lane, bodies[row.seq], _json(stale[row.seq]))
                for row in rows
                if row.seq in stale and row.seq in bodies
            ]
            after = rows[-1].seq

    def comparisons(self) -> Iterator[LastComparison]:
        """The last verdict on each comparison, where it is not settled, in the order in which they were given.

        One comparison is one pair of sides on one metric, with the same waivers and study.
        """
        query = select(verdicts).where(verdicts.c.kind == "comparison").order_by(verdicts.c.seq)
        with self._store.database.reading() as connection:
            sealed = last_sealed(connection, "verdicts")
            rows = connection.execute(query.execution_options(yield_per=AT_ONCE))
            given = (
                (_identity(_json(row)), _Row(row.seq, row.status, row.rules, row.judge, row.judged_at)) for row in rows
            )
            numbers = sorted(row.seq for _, row in self._unsettled(given, sealed))
        for number in numbers:
            with self._store.database.reading() as connection:
                row = connection.execute(select(verdicts).where(verdicts.c.seq == number)).first()
            if row is not None:  # gone where a receipt of it was purged
                yield LastComparison(number, _json(row))

    def claims(self) -> list[str]:
        """Ids of claims whose last verdict is not settled."""
        columns = (claim_verdicts.c[name] for name in ("claim", "seq", "status", "rules", "judge", "at"))
        with self._store.database.reading() as connection:
            sealed = last_sealed(connection, "claim_verdicts")
            rows = connection.execute(select(*columns).order_by(claim_verdicts.c.seq))
            return [claim for claim, _ in self._unsettled(((claim, _Row(*row)) for claim, *row in rows), sealed)]

    def _unsettled(self, given: Iterable[tuple[Any, _Row]], sealed: int) -> list[tuple[Any, _Row]]:
        """The last of some verdicts by what they are on, those alone that are not settled."""
        last: dict[Any, tuple[_Row, _Row | None]] = {}
        for about, row in given:
            last[about] = row, last[about][0] if about in last else None
        since, settled = self._scope.since, self._scope.settled
        return [
            (about, row)
            for about, (row, before) in last.items()
            if (since is None or row.at >= since) and not settled(row, before, sealed)
        ]

    def record(self, given: Sequence[tuple[Verdict, int]]) -> None:
        """Keep verdicts on single receipts, by their numbers; one whose receipt was purged meanwhile is left out."""
        at, numbers = datetime.now(UTC), [number for _, number in given]

        def work(connection: Connection) -> None:
            there = set(connection.execute(select(receipts.c.seq).where(receipts.c.seq.in_(numbers))).scalars())
            for verdict, number in given:
                if number in there:
                    add_verdict(connection, verdict, [("receipt", number)], at)

        self._store.database.write(work)
