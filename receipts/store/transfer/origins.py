"""What every row has that comes in from another store: content that is compared, and an origin that is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, insert, select

from receipts.store.history.sides import sides_of
from receipts.store.packing import CODEC, pack, unpack
from receipts.store.schema import own_id
from receipts.store.tables import origins, receipts, subjects, verdicts

T = TypeVar("T")
Row = Mapping[str, Any]


class Came(NamedTuple):
    """What became of rows: how many are new, sentences for people, and conflicts, which left their rows out.

    `left` counts rows that were left out because they speak of a receipt that is neither here nor purged.
    """

    new: int
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: int = 0


class Judgement(NamedTuple):
    """A verdict under its number in the store that it comes from. `document` is its JSON, `subjects` sides and ids."""

    number: int
    kind: str
    status: str
    metric: str | None
    rules: str
    judge: str
    at: datetime
    document: bytes
    subjects: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What two verdicts have in common that are one."""
        given = (self.kind, self.status, self.metric, self.rules, self.judge, self.at.astimezone(UTC))
        return (*given, sha256(self.document).digest(), self.subjects)


def to_add(
    here: Sequence[T], coming: Sequence[T], same: Callable[[T], Any], rank: Callable[[T], Any] | None
) -> list[T]:
    """Rows to append so that all are here and the last one is the one that counts; none where nothing is new.

    What counts is the last by ``rank``, of equal ones the one that comes. Without a rank it is what counts here.
    """
    known = {same(item) for item in here}
    added: list[T] = []
    for item in coming:
        if same(item) not in known:
            known.add(same(item))
            added.append(item)
    if not added:
        return []
    everything = [*here, *coming]
    if rank is not None:
        best = max(range(len(everything)), key=lambda at: (rank(everything[at]), at))
    else:
        best = (len(here) or len(everything)) - 1
    return added if same(added[-1]) == same(everything[best]) else [*added, everything[best]]


def take_verdicts(connection: Connection, store: str, batch: Sequence[Judgement]) -> tuple[int, int]:
    """Take in verdicts on receipts that are here; those on any other are left out.

    Gives how many were new, and how many were left out.
    """
    wanted = {receipt for item in batch for _, receipt in item.subjects}
    query = select(receipts.c.id, receipts.c.seq).where(receipts.c.id.in_(wanted))
    numbers: dict[str, int] = {row.id: row.seq for row in connection.execute(query)}
    judged = [item for item in batch if all(receipt in numbers for _, receipt in item.subjects)]
    new = judge(connection, store, judged, numbers, list(numbers.values()))
    return new, len(batch) - len(judged)


def judge(
    connection: Connection, store: str, batch: Sequence[Judgement], numbers: Mapping[str, int], known: Sequence[int]
) -> int:
    """Write verdicts that are not there yet; ``known`` are receipts that may have them. Gives how many were new."""
    there = _verdicts_on(connection, known, {item.at.astimezone(UTC) for item in batch}) if known else {}
    fresh: dict[tuple[Any, ...], Judgement] = {item.key: item for item in batch if item.key not in there}
    new = list(fresh.values())
    rows = [
        {
            **{name: getattr(item, name) for name in ("kind", "status", "metric", "rules", "judge")},
            "judged_at": item.at,
            "codec": CODEC,
            "body": pack(item.document),
        }
        for item in new
    ]
    inserted = insert_rows(connection, verdicts, rows)
    about = [
        {"verdict": seq, "position": position, "side": side, "receipt": numbers[receipt]}
        for seq, item in zip(inserted, new, strict=True)
        for position, (side, receipt) in enumerate(item.subjects)
    ]
    if about:
        connection.execute(insert(subjects), about)
    there |= {item.key: seq for item, seq in zip(new, inserted, strict=True)}
    come_from(connection, store, "verdicts", {item.number: there[item.key] for item in batch})
    return len(new)


def _verdicts_on(connection: Connection, numbers: Sequence[int], at: set[datetime]) -> dict[tuple[Any, ...], int]:
    """Verdicts on these receipts that were given at these times, by what makes two of them one."""
    spoken = select(subjects.c.verdict).where(subjects.c.receipt.in_(numbers))
    query = select(verdicts).where(verdicts.c.seq.in_(spoken), verdicts.c.judged_at.in_(at))
    rows = connection.execute(query).all()
    of = sides_of(connection, [row.seq for row in rows])
    verdict_numbers = {}
    for row in rows:
        given = (row.kind, row.status, row.metric, row.rules, row.judge, row.judged_at)
        document = unpack(row.codec, row.body, f"verdict {row.seq}")
        verdict_numbers[Judgement(row.seq, *given, document, tuple(of[row.seq])).key] = row.seq
    return verdict_numbers


def insert_rows(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert rows; gives their numbers in the same order."""
    if not rows:
        return []
    inserted = connection.execute(insert(table).returning(table.c.seq, sort_by_parameter_order=True), list(rows))
    return list(inserted.scalars())


def come_from(connection: Connection, store: str, what: str, numbers: Mapping[int, int]) -> None:
    """Write down which rows here are rows of another store: numbers there to numbers here. Its own are no others'."""
    if not numbers or store == own_id(connection):
        return
    query = select(origins.c.number).where(
        origins.c.store == store, origins.c.what == what, origins.c.number.in_(list(numbers))
    )
    known = set(connection.execute(query).scalars())
    rows = [
        {"what": what, "here": here, "store": store, "number": number}
        for number, here in numbers.items()
        if number not in known
    ]
    if rows:
        connection.execute(insert(origins), rows)
