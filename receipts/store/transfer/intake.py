"""Taking in another store: receipts with what was stated about them, verdicts, and by `Receiver` all rows.

Each batch is one transaction, whole or not at all. What is here already is left as it is and is no error, so that an
import that was stopped is continued by doing it again. Every row that both stores hold is recorded in `origins`, so
that the other store's seals can be held against it. Verdicts are on receipts, on comparisons and on claims.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Table, insert, select

from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store import index
from receipts.store.documents import CODEC, pack, unpack
from receipts.store.entries import VerdictColumns, promoted
from receipts.store.index import IndexedReceipt
from receipts.store.sql import engine_of
from receipts.store.store import Store
from receipts.store.submission import RelatedReceipt, World, ask_related, replaced_by, replacing, rival
from receipts.store.tables import (
    claim_subjects,
    claim_verdicts,
    claims,
    documents,
    purges,
    receipts,
    subjects,
    verdicts,
)
from receipts.store.transfer import foreign_rows
from receipts.store.transfer import foreign_rows as intake_rows
from receipts.store.transfer.foreign_rows import (
    Row,
    TakenRows,
    append_rows,
    insert_rows,
    record_origins,
    rows_here,
    to_add,
)
from receipts.store.verdicts import sides_of, sides_of_claims
from receipts.store.withdrawals import fallen as here_fallen


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
    there |= _written_verdicts(connection, verdicts, subjects, new, rows, numbers)
    record_origins(connection, store, "verdicts", {item.number: there[item.key] for item in batch})
    return len(new)


def take_claim_verdicts(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Verdicts on claims that are here, but for those that stood on a receipt that was purged here."""
    batch = [_claim_verdict_row(row) for row in rows]
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
    there |= _written_verdicts(
        connection, claim_verdicts, claim_subjects, new, [{"claim": item.about, "at": item.at} for item in new]
    )
    taken = [item for group in coming.values() for item in group]
    record_origins(connection, store, "claim_verdicts", {item.number: there[item.key] for item in taken})
    return TakenRows(len(new))


def _claim_verdict_row(row: Row) -> VerdictRow:
    sides = tuple((item["side"], item["receipt"]) for item in row["subjects"])
    given = ("claim", row["status"], None, row["claim"], row["rules"], row["judge"], row["judged_at"])
    return VerdictRow(row["number"], *given, row["document"].encode(), sides)


def _written_verdicts(
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


ERASED: Final = "superseded by a receipt that was purged"
ELSEWHERE: Final = "superseded by {successor}, which has not come along: {reason}"


class Arrival(NamedTuple):
    """A receipt on its way in, with the verdicts on it alone. `row` has its columns but for `seq` and `generation`."""

    number: int
    launch: Launch
    generation: int
    row: Mapping[str, Any]
    verdicts: tuple[VerdictRow, ...]

    @property
    def parsed(self) -> Parsed:
        """The receipt."""
        return self.launch.parsed


class Outcome(NamedTuple):
    """What became of a receipt: `new`, `known`, `purged` here before, or `refused` because of `why`."""

    id: str
    what: str
    why: str = ""


class IntakeResult(NamedTuple):
    """What became of a batch: of each receipt, and how many verdicts and supersessions are new."""

    fates: tuple[Outcome, ...]
    verdicts: int
    supersessions_added: int


def arrival(
    launch: Launch,
    number: int,
    generation: int,
    answer: VerdictColumns,
    at: datetime,
    actor: str | None,
    judgements: Iterable[VerdictRow],
) -> Arrival:
    """A receipt to be taken in: its columns are read from its bytes, under its lane; the rest is as given.

    Raises InputError where a time cannot be told in UTC.
    """
    return Arrival(number, launch, generation, {**promoted(launch, answer, at), "actor": actor}, tuple(judgements))


def take_receipts(
    connection: Connection,
    store: str,
    batch: Sequence[Arrival],
    statements: Mapping[str, Sequence[Row]],
    *,
    whole: bool = True,
) -> IntakeResult:
    """Take in a batch of receipts of the store of that id. ``statements`` is all that it says of standing, by receipt.

    A receipt whose launch has another valid one here is refused, and nothing of it is written. Of a store that
    is not exported ``whole`` some successor may never come: what it replaced is then withdrawn.
    """
    here = _Admission(connection, batch, statements, whole=whole)
    fates = [here.admit(item) for item in batch]
    admitted = [item for item, fate in zip(batch, fates, strict=True) if fate.what == "new"]
    if admitted:
        connection.execute(insert(receipts), [here.rows[item.parsed.id] for item in admitted])
    held = [item for item, fate in zip(batch, fates, strict=True) if fate.what in ("new", "known")]
    query = select(receipts.c.id, receipts.c.seq).where(receipts.c.id.in_([item.parsed.id for item in held]))
    numbers: dict[str, int] = {row.id: row.seq for row in connection.execute(query)}
    if admitted:
        connection.execute(
            insert(documents), [_document(numbers[item.parsed.id], item.parsed.raw) for item in admitted]
        )
        ids = [(item.parsed.id, item.launch) for item in admitted]
        index.add(
            connection, [IndexedReceipt.of(numbers[one], here.rows[one]["started"], launch) for one, launch in ids]
        )
    record_origins(connection, store, "receipts", {item.number: numbers[item.parsed.id] for item in held})
    supersessions_added = here.write_supersessions(store, [item.parsed.id for item in held])
    judged = [verdict for item in held for verdict in item.verdicts]
    known = [numbers[item.parsed.id] for item, fate in zip(batch, fates, strict=True) if fate.what == "known"]
    return IntakeResult(tuple(fates), take_verdicts(connection, store, judged, numbers, known), supersessions_added)


class _Admission:
    """What is here of a batch's receipts, launches and successors, kept up to date while the batch is admitted."""

    def __init__(
        self,
        connection: Connection,
        batch: Sequence[Arrival],
        statements: Mapping[str, Sequence[Row]],
        *,
        whole: bool,
    ) -> None:
        self._whole = whole
        self._connection = connection
        self._coming = statements
        self.rows: dict[str, dict[str, Any]] = {}
        self._extra: list[Row] = []
        asks = ask_related(connection, [item.row for item in batch])
        existing, purged = engine_of(connection).together(connection, asks)
        related = [RelatedReceipt(*row) for row in existing]
        self._about = [one.id for one in related if statements.get(one.id)]
        fallen = (one._replace(superseded=0) if _has_fallen(one.id, statements) else one for one in related)
        self._world = World(fallen, purged)
        ids = {item.parsed.id for item in batch}
        self._fallen = {*here_fallen(connection, ids), *(item for item in ids if _has_fallen(item, statements))}

    def admit(self, item: Arrival) -> Outcome:
        """Decide what becomes of one receipt, and if it is taken, remember it for those that follow."""
        own = item.parsed.id
        if self._world.get(own) is not None:
            return Outcome(own, "known")
        gone = self._world.purged.get(own)
        if gone is not None:
            return Outcome(own, "purged", f"{gone.reason}, {gone.at:%Y-%m-%d}")
        related = self._world.related(item.row)
        replaced, later = replaced_by(item.row, related), replacing(item.row, related)
        other = rival(item.row, related, replaced)
        if other is not None and own not in self._fallen and not later:
            return Outcome(
                own, "refused", f"launch {other.launch} has a receipt with other bytes here, {other.id[:12]}"
            )
        self._admitted(item, related, replaced, later)
        return Outcome(own, "new")

    def _admitted(
        self,
        item: Arrival,
        related: Sequence[RelatedReceipt],
        replaced: Sequence[RelatedReceipt],
        later: Sequence[RelatedReceipt],
    ) -> None:
        row, own = item.row, item.parsed.id
        taken = {other.generation for other in related if other.launch == row["launch"]}
        generation = item.generation if item.generation not in taken else max(taken) + 1
        self.rows[own] = {**row, "generation": generation}
        at, actor = datetime.now(UTC), row["actor"]
        reason = row["supersedes_reason"] or ""
        pairs = [(other.id, own, reason) for other in replaced]
        pairs += [(own, other.id, other.supersedes_reason or "") for other in later]
        names = ("receipt", "successor", "reason")
        self._extra += [{**dict(zip(names, pair, strict=True)), "at": at, "actor": actor} for pair in pairs]
        self._world.take(row, actor, generation, replaced, stands=not later and own not in self._fallen)

    def write_supersessions(self, store: str, held: Sequence[str]) -> int:
        """Write what both sides say of standing: of receipts that came, and of those here that they replace."""
        about = sorted({*held, *(item["receipt"] for item in self._extra), *self._about})
        here = rows_here(self._connection, "supersessions", about)
        coming = self._resolved(about)
        # What came over with another reason is the same row all the same.
        origin = [*itertools.chain(*coming.values()), *itertools.chain(*(self._coming.get(one, ()) for one in about))]
        for receipt in about:
            pairs = {item["successor"] for item in (*here[receipt], *coming[receipt])}
            extra = (item for item in self._extra if item["receipt"] == receipt)
            coming[receipt] += [item for item in extra if item["successor"] not in pairs]
        return append_rows(self._connection, store, "supersessions", here, coming, origin)

    def _resolved(self, about: Iterable[str]) -> dict[str, list[Row]]:
        """What the other store says of standing, without what a purge took from here, and without loose ends."""
        coming = {receipt: self._coming.get(receipt, ()) for receipt in about}
        successors = {item["successor"] for rows in coming.values() for item in rows if item["successor"]}
        erased = self._present(purges.c.receipt, successors)
        there = erased | self._present(receipts.c.id, successors)
        return {receipt: [self._one(item, erased, there) for item in rows] for receipt, rows in coming.items()}

    def _one(self, item: Row, erased: set[str], there: set[str]) -> Row:
        successor = item["successor"]
        if successor in erased:
            return {**item, "reason": ERASED}
        if successor is None or successor in there or self._whole:
            return item
        return {**item, "successor": None, "reason": ELSEWHERE.format(successor=successor[:12], reason=item["reason"])}

    def _present(self, column: Any, wanted: set[str]) -> set[str]:
        return set(self._connection.execute(select(column).where(column.in_(wanted))).scalars())


def _has_fallen(receipt: str, statements: Mapping[str, Sequence[Row]]) -> bool:
    """Whether the last that another store says of a receipt is that it no longer stands."""
    rows = statements.get(receipt, ())
    return len(rows) > 0 and rows[-1]["successor"] != receipt


def _document(seq: int, raw: bytes) -> dict[str, Any]:
    return {"receipt": seq, "codec": CODEC, "size": len(raw), "body": pack(raw)}


T = TypeVar("T")


class Receiver:
    """A store that takes in what another store exported, all of it or a part; ``other`` is that store's id.

    Every method is one transaction, and doing it again changes nothing. Raises StoreError.
    """

    def __init__(self, store: Store, other: str, *, whole: bool) -> None:
        self._store = store
        self._whole = whole
        self._other = other

    def receipts(self, batch: Sequence[Arrival], statements: Mapping[str, Sequence[Row]]) -> IntakeResult:
        """Receipts with the verdicts on each alone; see `intake.take`."""
        return self._write(
            lambda connection: take_receipts(connection, self._other, batch, statements, whole=self._whole)
        )

    def verdicts(self, batch: Sequence[VerdictRow]) -> tuple[int, int]:
        """Verdicts on several receipts: how many are new, and how many were left out."""
        return self._write(lambda connection: take_comparisons(connection, self._other, batch))

    def rows(self, name: str, rows: Sequence[Row]) -> TakenRows:
        """Rows of any other dataset."""
        special = {
            "claims": intake_rows.take_claims,
            "claim_verdicts": take_claim_verdicts,
            "erased": foreign_rows.take_erased,
            "origins": foreign_rows.take_origins,
            "purges": intake_rows.take_purges,
            "seals": foreign_rows.take_seals,
        }
        take = special.get(name)
        if not rows:
            return TakenRows(0)
        if take is not None:
            return self._write(lambda connection: take(connection, self._other, rows))
        return self._write(lambda connection: intake_rows.take_plain(connection, self._other, name, rows))

    def _write(self, work: Callable[[Connection], T]) -> T:
        return self._store.database.write(work, alone=True)
