"""Taking in receipts of another store with what was said of them, a batch a transaction, whole or not at all.

What is here already is left as it is and is no error, so that an import that was stopped is taken up by doing it again.
Every row that both stores hold is written down in `origins`, so that the other store's seals can be held against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert, or_, select

from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store.entries import Answer, promoted
from receipts.store.packing import CODEC, pack
from receipts.store.query import signatures
from receipts.store.sql import engine_of
from receipts.store.tables import documents, purges, receipts, supersessions
from receipts.store.transfer.origins import Judgement, come_from, insert_rows, judge, to_add
from receipts.store.write import index
from receipts.store.write.listing import listed

PURGED: Final = "superseded by a receipt that was purged"
ELSEWHERE: Final = "superseded by {successor}, which has not come along: {reason}"


class Saying(NamedTuple):
    """That a receipt no longer stands, under its number in the store that it comes from. Time in UTC."""

    number: int
    receipt: str
    successor: str | None
    reason: str
    at: datetime
    actor: str | None = None


class Arrival(NamedTuple):
    """A receipt on its way in, with the verdicts on it alone. `row` has its columns but for `seq` and `generation`."""

    number: int
    launch: Launch
    generation: int
    row: Mapping[str, Any]
    verdicts: tuple[Judgement, ...]

    @property
    def parsed(self) -> Parsed:
        """The receipt."""
        return self.launch.parsed


class Fate(NamedTuple):
    """What became of a receipt: `new`, `known`, `purged` here before, or `refused` because of `why`."""

    id: str
    what: str
    why: str = ""


class Taken(NamedTuple):
    """What became of a batch: of each receipt, and how many verdicts and supersessions are new."""

    fates: tuple[Fate, ...]
    verdicts: int
    sayings: int


def arrival(
    launch: Launch,
    number: int,
    generation: int,
    answer: Answer,
    at: datetime,
    actor: str | None,
    said: Iterable[Judgement],
) -> Arrival:
    """A receipt to be taken in: its columns are read from its bytes, under its lane; the rest is as given.

    Raises InputError where a time cannot be told in UTC.
    """
    return Arrival(number, launch, generation, {**promoted(launch, answer, at), "actor": actor}, tuple(said))


class _Known(NamedTuple):
    """A receipt that is here and may decide what becomes of another."""

    id: str
    seq: int
    launch: str
    generation: int
    supersedes: str | None
    reason: str | None


def take(
    connection: Connection,
    store: str,
    batch: Sequence[Arrival],
    said: Mapping[str, Sequence[Saying]],
    *,
    whole: bool = True,
) -> Taken:
    """Take in a batch of receipts of the store of that id. ``said`` is all that it says of standing, by receipt.

    A receipt whose launch has another one here that stands is refused, and nothing of it is written. Of a store that
    is not exported ``whole`` some successor may never come: what it replaced is then withdrawn.
    """
    engine_of(connection).lock(connection, alone=True)
    here = _Here(connection, batch, said, whole=whole)
    fates = [here.admit(item) for item in batch]
    admitted = [item for item, fate in zip(batch, fates, strict=True) if fate.what == "new"]
    if admitted:
        connection.execute(insert(receipts), [here.rows[item.parsed.id] for item in admitted])
        query = select(receipts.c.id, receipts.c.seq).where(receipts.c.id.in_([item.parsed.id for item in admitted]))
        made: dict[str, int] = {row.id: row.seq for row in connection.execute(query)}
        here.numbers |= made
        connection.execute(insert(documents), [_document(made[item.parsed.id], item.parsed.raw) for item in admitted])
        index.add(
            connection,
            [
                index.Placed(
                    made[item.parsed.id],
                    item.launch.settings.configuration(item.parsed, item.launch.lane),
                    listed(here.rows[item.parsed.id], item.parsed),
                )
                for item in admitted
            ],
        )
        for item in admitted:
            signed = signatures.signed(item.launch)
            signatures.write(connection, made[item.parsed.id], item.row["outcome"], signed)
    held = [item for item, fate in zip(batch, fates, strict=True) if fate.what in ("new", "known")]
    come_from(connection, store, "receipts", {item.number: here.numbers[item.parsed.id] for item in held})
    sayings = here.say(store, [item.parsed.id for item in held])
    judged = [verdict for item in held for verdict in item.verdicts]
    known = [here.numbers[item.parsed.id] for item, fate in zip(batch, fates, strict=True) if fate.what == "known"]
    return Taken(tuple(fates), judge(connection, store, judged, here.numbers, known), sayings)


class _Here:
    """What is here of a batch's receipts, launches and successors, kept up to date while the batch is admitted."""

    def __init__(
        self, connection: Connection, batch: Sequence[Arrival], said: Mapping[str, Sequence[Saying]], *, whole: bool
    ) -> None:
        self._whole = whole
        self._connection = connection
        self._coming = said
        self.rows: dict[str, dict[str, Any]] = {}
        self._extra: list[Saying] = []
        ids = {item.parsed.id for item in batch}
        launches = {item.row["launch"] for item in batch}
        targets = {item.row["supersedes"] for item in batch} - {None}
        self._by_id: dict[str, _Known] = {}
        self._by_launch: dict[str, list[_Known]] = defaultdict(list)
        self._naming: dict[str, list[_Known]] = defaultdict(list)
        for known in self._around(ids, launches, targets):
            self._add(known)
        self.numbers = {known.id: known.seq for known in self._by_id.values()}
        gone = select(purges.c.receipt, purges.c.reason, purges.c.at).where(purges.c.receipt.in_(ids))
        self._purged = {row.receipt: row for row in connection.execute(gone)}
        query = select(supersessions.c.receipt).where(supersessions.c.receipt.in_({*ids, *self._by_id}))
        self._fallen = {
            *connection.execute(query).scalars(),
            *(item for item in {*ids, *self._by_id} if said.get(item)),
        }

    def _around(self, ids: set[str], launches: set[str], targets: set[str]) -> Iterable[_Known]:
        table = receipts.c
        columns = (table.id, table.seq, table.launch, table.generation, table.supersedes, table.supersedes_reason)
        named = or_(
            table.id.in_(ids | targets), table.launch.in_(launches | targets), table.supersedes.in_(ids | launches)
        )
        return (_Known(*row) for row in self._connection.execute(select(*columns).where(named)))

    def _add(self, known: _Known) -> None:
        self._by_id[known.id] = known
        self._by_launch[known.launch].append(known)
        if known.supersedes is not None:
            self._naming[known.supersedes].append(known)

    def admit(self, item: Arrival) -> Fate:
        """Decide what becomes of one receipt, and if it is taken, remember it for those that follow."""
        own, launch, target = item.parsed.id, item.row["launch"], item.row["supersedes"]
        if own in self._by_id:
            return Fate(own, "known")
        gone = self._purged.get(own)
        if gone is not None:
            return Fate(own, "purged", f"{gone.reason}, {gone.at:%Y-%m-%d}")
        heralds = [other for other in self._naming.get(own, ()) if other.launch == launch]
        replaced = self._replaced(target, launch)
        if own not in self._fallen and not heralds:
            for other in self._by_launch.get(launch, ()):
                if other.id not in self._fallen and other not in replaced:
                    return Fate(own, "refused", f"launch {launch} has a receipt with other bytes here, {other.id[:12]}")
        self._let_in(item, replaced, heralds)
        return Fate(own, "new")

    def _replaced(self, target: str | None, launch: str) -> list[_Known]:
        """Those of its own launch that a receipt replaces: the one of that id, or those that stand."""
        own = self._by_launch.get(launch, ())
        return [one for one in own if target == one.id or (target == launch and one.id not in self._fallen)]

    def _let_in(self, item: Arrival, replaced: Sequence[_Known], heralds: Sequence[_Known]) -> None:
        own, launch = item.parsed.id, item.row["launch"]
        taken = {other.generation for other in self._by_launch.get(launch, ())}
        generation = item.generation if item.generation not in taken else max(taken) + 1
        self.rows[own] = {**item.row, "generation": generation}
        at, actor = datetime.now(UTC), item.row["actor"]
        reason = item.row["supersedes_reason"] or ""
        self._extra += [Saying(0, other.id, own, reason, at, actor) for other in replaced]
        self._extra += [Saying(0, own, other.id, other.reason or "", at, actor) for other in heralds]
        self._fallen.update(other.id for other in replaced)
        self._fallen.update([own] if heralds else [])
        self._add(_Known(own, 0, launch, generation, item.row["supersedes"], item.row["supersedes_reason"]))

    def say(self, store: str, held: Sequence[str]) -> int:
        """Write what both sides say of standing: of receipts that came, and of those here that they replace."""
        about = sorted(
            {*held, *(item.receipt for item in self._extra), *(i for i in self._by_id if self._coming.get(i))}
        )
        query = select(supersessions).where(supersessions.c.receipt.in_(about)).order_by(supersessions.c.seq)
        here: dict[str, list[Saying]] = defaultdict(list)
        for row in self._connection.execute(query):
            here[row.receipt].append(Saying(row.seq, row.receipt, row.successor, row.reason, row.at, row.actor))
        coming = self._resolved(about)
        new: list[Saying] = []
        for receipt in about:
            pairs = {item.successor for item in (*here[receipt], *coming[receipt])}
            coming[receipt] += [item for item in self._extra if item.receipt == receipt and item.successor not in pairs]
            new += to_add(here[receipt], coming[receipt], same=_saying, rank=lambda item: item.at)
        made = insert_rows(self._connection, supersessions, [_saying_row(item) for item in new])
        origin = {item.number: seq for item, seq in zip(new, made, strict=True) if item.number}
        known = {_saying(item): item.number for receipt in about for item in here[receipt]}
        origin |= {
            item.number: known[_saying(item)]
            for receipt in about
            for item in self._coming.get(receipt, ())
            if _saying(item) in known
        }
        come_from(self._connection, store, "supersessions", origin)
        return len(new)

    def _resolved(self, about: Iterable[str]) -> dict[str, list[Saying]]:
        """What the other store says of standing, without what a purge took from here, and without loose ends."""
        coming = {receipt: list(self._coming.get(receipt, ())) for receipt in about}
        successors = {item.successor for said in coming.values() for item in said if item.successor}
        erased = self._those(purges.c.receipt, successors)
        there = erased | self._those(receipts.c.id, successors)
        return {receipt: [self._one(item, erased, there) for item in said] for receipt, said in coming.items()}

    def _one(self, item: Saying, erased: set[str], there: set[str]) -> Saying:
        if item.successor in erased:
            return item._replace(reason=PURGED)
        if item.successor is None or item.successor in there or self._whole:
            return item
        told = ELSEWHERE.format(successor=item.successor[:12], reason=item.reason)
        return item._replace(successor=None, reason=told)

    def _those(self, column: Any, wanted: set[str]) -> set[str]:
        return set(self._connection.execute(select(column).where(column.in_(wanted))).scalars())


def _saying(item: Saying) -> tuple[Any, ...]:
    return (item.receipt, item.successor, item.reason, item.at.astimezone(UTC), item.actor)


def _saying_row(item: Saying) -> dict[str, Any]:
    given = item._asdict()
    del given["number"]
    return given


def _document(seq: int, raw: bytes) -> dict[str, Any]:
    return {"receipt": seq, "codec": CODEC, "size": len(raw), "body": pack(raw)}
