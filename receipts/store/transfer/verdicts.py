"""Verdicts on their way from one store to another: on receipts, on comparisons and on claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, insert, select

from receipts.store.history.sides import sides_of, sides_of_claims
from receipts.store.packing import CODEC, pack, unpack
from receipts.store.tables import claim_subjects, claim_verdicts, claims, purges, receipts, subjects, verdicts
from receipts.store.transfer.origins import Row, TakenRows, insert_rows, record_origins, to_add


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


def on_receipts(connection: Connection, rows: Sequence[Any]) -> Iterator[VerdictRow]:
    """Rows of `verdicts`, at most a few hundred."""
    sides = sides_of(connection, [row.seq for row in rows])
    for row in rows:
        document = unpack(row.codec, row.body, f"verdict {row.seq}")
        given = (row.kind, row.status, row.metric, None, row.rules, row.judge, row.judged_at)
        yield VerdictRow(row.seq, *given, document, tuple(sides[row.seq]))


def on_claims(connection: Connection, rows: Sequence[Any]) -> Iterator[VerdictRow]:
    """Rows of `claim_verdicts`, at most a few hundred."""
    sides = sides_of_claims(connection, [row.seq for row in rows])
    for row in rows:
        document = unpack(row.codec, row.body, f"verdict {row.seq} on claim {row.claim}")
        given = ("claim", row.status, None, row.claim, row.rules, row.judge, row.at)
        yield VerdictRow(row.seq, *given, document, tuple(sides[row.seq]))


def take_comparisons(connection: Connection, store: str, batch: Sequence[VerdictRow]) -> tuple[int, int]:
    """Take in verdicts on receipts that are here; those on any other are left out.

    Gives how many were new, and how many were left out.
    """
    wanted = {receipt for item in batch for _, receipt in item.subjects}
    query = select(receipts.c.id, receipts.c.seq).where(receipts.c.id.in_(wanted))
    numbers: dict[str, int] = {row.id: row.seq for row in connection.execute(query)}
    judged = [item for item in batch if all(receipt in numbers for _, receipt in item.subjects)]
    new = take_verdicts(connection, store, judged, numbers, list(numbers.values()))
    return new, len(batch) - len(judged)


def take_verdicts(
    connection: Connection, store: str, batch: Sequence[VerdictRow], numbers: Mapping[str, int], known: Sequence[int]
) -> int:
    """Write verdicts that are not there yet; ``known`` are receipts that may have them. Gives how many were new."""
    there: dict[tuple[Any, ...], int] = {}
    if known:
        spoken = select(subjects.c.verdict).where(subjects.c.receipt.in_(known))
        at = {item.at.astimezone(UTC) for item in batch}
        query = select(verdicts).where(verdicts.c.seq.in_(spoken), verdicts.c.judged_at.in_(at))
        there = {item.key: item.number for item in on_receipts(connection, connection.execute(query).all())}
    new = list({item.key: item for item in batch if item.key not in there}.values())
    rows = [{"kind": item.kind, "metric": item.metric, "judged_at": item.at} for item in new]
    there |= _written(connection, verdicts, subjects, new, rows, numbers)
    record_origins(connection, store, "verdicts", {item.number: there[item.key] for item in batch})
    return len(new)


def take_claim_verdicts(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Verdicts on claims that are here, but for those that stood on a receipt that was purged here."""
    batch = [_on_claim(row) for row in rows]
    known = set(
        connection.execute(select(claims.c.id).where(claims.c.id.in_({row["claim"] for row in rows}))).scalars()
    )
    stood_on = {receipt for item in batch for _, receipt in item.subjects}
    gone = set(connection.execute(select(purges.c.receipt).where(purges.c.receipt.in_(stood_on))).scalars())
    coming: dict[str | None, list[VerdictRow]] = defaultdict(list)
    for item in batch:
        if item.about in known and not any(receipt in gone for _, receipt in item.subjects):
            coming[item.about].append(item)
    here: dict[str | None, list[VerdictRow]] = defaultdict(list)
    query = select(claim_verdicts).where(claim_verdicts.c.claim.in_(list(coming))).order_by(claim_verdicts.c.seq)
    for item in on_claims(connection, connection.execute(query).all()):
        here[item.about].append(item)
    new = [
        item
        for claim, group in coming.items()
        for item in to_add(here[claim], group, lambda one: one.key, lambda one: one.at.astimezone(UTC))
    ]
    there = {item.key: item.number for group in here.values() for item in group}
    there |= _written(
        connection, claim_verdicts, claim_subjects, new, [{"claim": item.about, "at": item.at} for item in new]
    )
    taken = [item for group in coming.values() for item in group]
    record_origins(connection, store, "claim_verdicts", {item.number: there[item.key] for item in taken})
    return TakenRows(len(new))


def _on_claim(row: Row) -> VerdictRow:
    sides = tuple((item["side"], item["receipt"]) for item in row["subjects"])
    given = ("claim", row["status"], None, row["claim"], row["rules"], row["judge"], row["judged_at"])
    return VerdictRow(row["number"], *given, row["document"].encode(), sides)


def _written(
    connection: Connection,
    table: Table,
    sides: Table,
    new: Sequence[VerdictRow],
    columns: Sequence[Row],
    numbers: Mapping[str, int] | None = None,
) -> dict[tuple[Any, ...], int]:
    """Write verdicts with what one of the two tables has of its own; gives their numbers by key.

    ``numbers`` are those of the receipts, where subjects refer to them by number.
    """
    rows = [
        {**own, "status": item.status, "rules": item.rules, "judge": item.judge, "codec": CODEC, "body": body}
        for item, own in zip(new, columns, strict=True)
        for body in [pack(item.document)]
    ]
    inserted = insert_rows(connection, table, rows)
    about = [
        {"verdict": seq, "position": at, "side": side, "receipt": receipt if numbers is None else numbers[receipt]}
        for seq, item in zip(inserted, new, strict=True)
        for at, (side, receipt) in enumerate(item.subjects)
    ]
    if about:
        connection.execute(insert(sides), about)
    return {item.key: seq for item, seq in zip(new, inserted, strict=True)}
