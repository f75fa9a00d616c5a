"""Stored verdicts of another rule set than the one in force, some at a time, and those that take their place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, insert, select

from receipts.store.history.verdicts import Verdict, row_of
from receipts.store.packing import unpack
from receipts.store.store import Store
from receipts.store.tables import claim_verdicts, documents, receipts, subjects, verdicts

AT_ONCE: Final = 200


class Scope(NamedTuple):
    """Which verdicts are looked at: of receipts or comparisons since a time, and of one rule set alone to be passed."""

    rules: str
    judge: str
    since: datetime | None = None


class Told(NamedTuple):
    """The last verdict on a receipt, with the receipt's bytes: what was said of it, and under which rule set."""

    number: int
    id: str
    lane: str
    raw: bytes
    rules: str
    document: dict[str, Any]


class Compared(NamedTuple):
    """The last verdict on a comparison, by its number."""

    number: int
    document: dict[str, Any]


def count(connection: Connection, scope: Scope) -> int:
    """How many receipts there are to look at, judged under the present rule set or not."""
    query = select(func.count()).select_from(receipts)
    query = query if scope.since is None else query.where(receipts.c.submitted_at >= scope.since)
    found: int = connection.execute(query).scalar_one()
    return found


def receipts_after(connection: Connection, after: int, scope: Scope) -> tuple[int | None, list[Told]]:
    """Of the next receipts after a number, those whose last verdict is of another rule set; and the last number.

    The number is None where there are no more.
    """
    query = select(receipts.c.seq, receipts.c.id, receipts.c.lane).where(receipts.c.seq > after)
    query = query if scope.since is None else query.where(receipts.c.submitted_at >= scope.since)
    rows = connection.execute(query.order_by(receipts.c.seq).limit(AT_ONCE)).all()
    if not rows:
        return None, []
    last = _last(connection, [row.seq for row in rows])
    stale = {number: row for number, row in last.items() if (row.rules, row.judge) != (scope.rules, scope.judge)}
    bodies = _documents(connection, list(stale))
    found = [
        Told(row.seq, row.id, row.lane, bodies[row.seq], stale[row.seq].rules, _json(stale[row.seq]))
        for row in rows
        if row.seq in stale and row.seq in bodies
    ]
    return rows[-1].seq, found


def _last(connection: Connection, numbers: Sequence[int]) -> dict[int, Any]:
    query = (
        select(subjects.c.receipt, *(verdicts.c[name] for name in ("seq", "rules", "judge", "codec", "body")))
        .join(verdicts, verdicts.c.seq == subjects.c.verdict)
        .where(subjects.c.receipt.in_(numbers), verdicts.c.kind == "receipt")
        .order_by(verdicts.c.seq)
    )
    return {row.receipt: row for row in connection.execute(query)}


def _documents(connection: Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    query = select(documents.c.receipt, documents.c.codec, documents.c.body).where(documents.c.receipt.in_(numbers))
    return {row.receipt: unpack(row.codec, row.body, f"document {row.receipt}") for row in connection.execute(query)}


def _json(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(unpack(row.codec, row.body, f"verdict {row.seq}"))
    return found


def comparisons(connection: Connection, scope: Scope) -> list[int]:
    """Numbers of comparisons whose last verdict is of another rule set, in the order in which they were given.

    One comparison is one pair of sides on one metric, with the same waivers and study.
    """
    query = select(verdicts).where(verdicts.c.kind == "comparison").order_by(verdicts.c.seq)
    last: dict[bytes, tuple[int, bool]] = {}
    for row in connection.execute(query.execution_options(yield_per=AT_ONCE)):
        of_now = (row.rules, row.judge) == (scope.rules, scope.judge)
        early = scope.since is not None and row.judged_at < scope.since
        last[_asked(_json(row))] = (row.seq, of_now or early)
    return sorted(number for number, passed in last.values() if not passed)


def _asked(document: dict[str, Any]) -> bytes:
    asked = [document[name] for name in ("a", "b", "metric", "waivers", "study")]
    return sha256(json.dumps(asked).encode()).digest()


def comparison(connection: Connection, number: int) -> Compared | None:
    """One stored comparison; None where it is gone, because a receipt of it was purged."""
    row = connection.execute(select(verdicts).where(verdicts.c.seq == number)).first()
    return None if row is None else Compared(number, _json(row))


def claims(connection: Connection, scope: Scope) -> Iterator[str]:
    """Claims whose last verdict is of another rule set, by id."""
    last = select(func.max(claim_verdicts.c.seq)).group_by(claim_verdicts.c.claim)
    query = select(claim_verdicts).where(claim_verdicts.c.seq.in_(last)).order_by(claim_verdicts.c.seq)
    for row in connection.execute(query):
        early = scope.since is not None and row.at < scope.since
        if not early and (row.rules, row.judge) != (scope.rules, scope.judge):
            yield row.claim


class Stale:
    """A store's verdicts of another rule set. Every method is one transaction. Raises StoreError."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    def __repr__(self) -> str:
        return f"Stale({self._store!r}, {self._scope!r})"

    def count(self) -> int:
        """How many receipts there are to look at, judged under the present rule set or not."""
        with self._store.database.reading() as connection:
            return count(connection, self._scope)

    def receipts(self) -> Iterator[list[Told]]:
        """Receipts with their last verdicts, where those are of another rule set, some at a time and maybe none."""
        after: int | None = -1
        while after is not None:
            with self._store.database.reading() as connection:
                after, found = receipts_after(connection, after, self._scope)
            yield found

    def comparisons(self) -> Iterator[Compared]:
        """The last verdict on each comparison, where it is of another rule set."""
        with self._store.database.reading() as connection:
            numbers = comparisons(connection, self._scope)
        for number in numbers:
            with self._store.database.reading() as connection:
                found = comparison(connection, number)
            if found is not None:
                yield found

    def claims(self) -> list[str]:
        """Ids of claims whose last verdict is of another rule set."""
        with self._store.database.reading() as connection:
            return list(claims(connection, self._scope))

    def record(self, given: Sequence[tuple[Verdict, int]]) -> None:
        """Keep verdicts on single receipts, each with the receipt's number."""
        self._store.database.write(lambda connection: record(connection, given, datetime.now(UTC)))


def record(connection: Connection, given: Sequence[tuple[Verdict, int]], at: datetime) -> None:
    """Keep verdicts on single receipts; one whose receipt was purged meanwhile is left out."""
    numbers = [number for _, number in given]
    there = set(connection.execute(select(receipts.c.seq).where(receipts.c.seq.in_(numbers))).scalars())
    kept = [(verdict, number) for verdict, number in given if number in there]
    if kept:
        made = insert(verdicts).returning(verdicts.c.seq, sort_by_parameter_order=True)
        seqs = connection.execute(made, [row_of(verdict, at) for verdict, _ in kept]).scalars()
        rows = [
            {"verdict": seq, "position": 0, "side": "receipt", "receipt": number}
            for seq, (_, number) in zip(seqs, kept, strict=True)
        ]
        connection.execute(insert(subjects), rows)
