"""Taking in receipts of another store with what was said of them, a batch a transaction, whole or not at all.

What is here already is left as it is and is no error, so that an import that was stopped is taken up by doing it again.
Every row that both stores hold is written down in `origins`, so that the other store's seals can be held against it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert, select

from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store.entries import VerdictColumns, promoted
from receipts.store.history.withdrawals import fallen as here_fallen
from receipts.store.packing import CODEC, pack
from receipts.store.sql import engine_of
from receipts.store.tables import documents, purges, receipts
from receipts.store.transfer.origins import Row, record_origins
from receipts.store.transfer.rows import append, rows_here
from receipts.store.transfer.verdicts import VerdictRow, take_verdicts
from receipts.store.write import index
from receipts.store.write.existing import RelatedReceipt, World, ask_related, replaced_by, replacing, rival
from receipts.store.write.index import IndexedReceipt

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


def take(
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
        fallen = (one._replace(superseded=0) if _fell(one.id, statements) else one for one in related)
        self._world = World(fallen, purged)
        ids = {item.parsed.id for item in batch}
        self._fallen = {*here_fallen(connection, ids), *(item for item in ids if _fell(item, statements))}

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
        return append(self._connection, store, "supersessions", here, coming, origin)

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


def _fell(receipt: str, statements: Mapping[str, Sequence[Row]]) -> bool:
    """Whether the last that another store says of a receipt is that it no longer stands."""
    rows = statements.get(receipt, ())
    return len(rows) > 0 and rows[-1]["successor"] != receipt


def _document(seq: int, raw: bytes) -> dict[str, Any]:
    return {"receipt": seq, "codec": CODEC, "size": len(raw), "body": pack(raw)}
