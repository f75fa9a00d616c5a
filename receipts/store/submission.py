"""Taking receipts in: new, known, or in conflict; with bytes, verdict, indexes and whom they supersede.

`World` is all that is stored around receipts that come in and can decide what becomes of them. On PostgreSQL a submit
takes two round trips however many receipts there are: everything is asked in one, and written in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, case, null, or_, select

from receipts.axes.configuration import Configuration
from receipts.axes.shape import Signature
from receipts.base.environment import same_principal
from receipts.base.errors import ConflictError
from receipts.judging.verdict import ReceiptVerdict
from receipts.metrics import Launch
from receipts.store import index
from receipts.store.entries import CODEC, VerdictColumns, pack, promoted, standing
from receipts.store.index import IndexedReceipt
from receipts.store.query import outcomes
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Ask, Row, Rows, SqlStatement
from receipts.store.tables import configurations, documents, purges, receipts, subjects, supersessions, verdicts
from receipts.store.verdicts import verdict_row


class RelatedReceipt(NamedTuple):
    """A stored receipt that can decide what becomes of another; `superseded` is None where it stands."""

    id: str
    launch: str
    generation: int
    supersedes: str | None
    supersedes_reason: str | None
    submitted_at: datetime
    status: str
    actor: str | None
    superseded: int | None


class PurgedReceipt(NamedTuple):
    """The tombstone of a receipt that was erased."""

    id: str
    reason: str
    at: datetime


_SUPERSEDED = case((standing(), null()), else_=0)
# All that can decide what becomes of receipts: themselves, their launches, whom they replace, and the actor who said
# they replace them before they came; and the tombstones of receipts.
_RELATED: Final = SqlStatement(
    lambda engine: select(
        *(receipts.c[name] for name in RelatedReceipt._fields[:-1]), _SUPERSEDED.label("superseded")
    ).where(
        or_(
            engine.among_named(receipts.c.id, "ids"),
            engine.among_named(receipts.c.launch, "launches"),
            engine.among_named(receipts.c.supersedes, "named"),
        )
    )
)
_PURGED: Final = SqlStatement(
    lambda engine: select(purges.c.receipt, purges.c.reason, purges.c.at).where(
        engine.among_named(purges.c.receipt, "new")
    )
)
_CONFIGURED: Final = SqlStatement(
    lambda engine: select(configurations.c.whole, configurations.c.seq).where(
        engine.among_named(configurations.c.digest, "digests")
    )
)


class World:
    """What is stored around some receipts, and, as they are decided one by one, those of them that came before."""

    def __init__(self, neighbours: Iterable[RelatedReceipt], purged: Iterable[Row]) -> None:
        self._by_id: dict[str, RelatedReceipt] = {}
        self._by_launch: dict[str, list[str]] = {}
        self._by_target: dict[str, list[str]] = {}
        self.purged = {row[0]: PurgedReceipt(*row) for row in purged}
        for one in neighbours:
            self.add(one)

    def add(self, one: RelatedReceipt) -> None:
        """Take in a receipt, which those that are decided after it meet."""
        self._by_id[one.id] = one
        self._by_launch.setdefault(one.launch, []).append(one.id)
        if one.supersedes is not None:
            self._by_target.setdefault(one.supersedes, []).append(one.id)

    def take(
        self,
        row: Mapping[str, Any],
        actor: str | None,
        generation: int,
        replaced: Iterable[RelatedReceipt],
        *,
        stands: bool,
    ) -> None:
        """Take in a new receipt by its row, and that it replaced others."""
        for other in replaced:
            self.no_longer_stands(other.id)
        given = (row["id"], row["launch"], generation, row["supersedes"], row["supersedes_reason"])
        self.add(RelatedReceipt(*given, row["submitted_at"], row["status"], actor, None if stands else 0))

    def no_longer_stands(self, receipt_id: str) -> None:
        """Take note that a receipt was superseded or retracted."""
        self._by_id[receipt_id] = self._by_id[receipt_id]._replace(superseded=0)

    def get(self, receipt_id: str) -> RelatedReceipt | None:
        """The receipt of an id; None where it is not stored."""
        return self._by_id.get(receipt_id)

    def related(self, row: Mapping[str, Any]) -> list[RelatedReceipt]:
        """Receipts of this launch or of the one that it names, the one whose id it names, and who names this one."""
        launch, target = row["launch"], row["supersedes"]
        ids = dict.fromkeys(self._by_launch.get(launch, ()))
        if target is not None:
            ids |= dict.fromkeys([target, *self._by_launch.get(target, ())])
        ids |= dict.fromkeys([*self._by_target.get(row["id"], ()), *self._by_target.get(launch, ())])
        return [self._by_id[name] for name in ids if name in self._by_id]


def replaced_by(row: Mapping[str, Any], related: Sequence[RelatedReceipt]) -> list[RelatedReceipt]:
    """Those around a receipt that it replaces: of its launch, the one of the id that it names, or those that stand."""
    target, launch = row["supersedes"], row["launch"]
    own = (other for other in related if other.launch == launch)
    return [other for other in own if target == other.id or (target == launch and other.superseded is None)]


def replacing(row: Mapping[str, Any], related: Sequence[RelatedReceipt]) -> list[RelatedReceipt]:
    """Receipts of its launch that came earlier and said that they replace this one by its id."""
    return [other for other in related if other.supersedes == row["id"] and other.launch == row["launch"]]


def ask_related(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[Ask]:
    """What to ask for the neighbours of the rows of receipts, those that are stored among them, and for tombstones."""
    ids, launches = [row["id"] for row in rows], [row["launch"] for row in rows]
    targets = [row["supersedes"] for row in rows if row["supersedes"] is not None]
    values = engine_of(connection).values
    related = {"ids": values(ids + targets), "launches": values(launches + targets), "named": values(ids + launches)}
    return [(_RELATED, related), (_PURGED, {"new": values(ids)})]


class Submitted(NamedTuple):
    """What became of a receipt that the store holds. `new` is False where the same bytes were there already.

    `status` is the one it was given when it was first stored; `at` when that was, in UTC. `superseded` are the ids
    that this receipt replaced just now. `stands` is False where something superseded or retracted it. `undecided` are
    receipts of other launches that it says that it replaces; it takes a person to withdraw them.
    """

    id: str
    new: bool
    at: datetime
    status: str
    superseded: tuple[str, ...] = ()
    stands: bool = True
    undecided: tuple[str, ...] = ()


class Prepared(NamedTuple):
    """A judged receipt, ready to be written: nothing that takes time is left for inside the transaction.

    It holds values alone, so that another process can prepare it. ``size`` is that of the document in bytes.
    """

    source: str
    row: dict[str, Any]
    size: int
    body: bytes
    verdict: dict[str, Any]
    configuration: Configuration
    signature: Signature | None = None


def prepare(launch: Launch, verdict: ReceiptVerdict) -> Prepared:
    """Pack a receipt's bytes and lift its columns."""
    parsed, now = launch.parsed, datetime.now(UTC)
    row = promoted(launch, VerdictColumns.by(verdict), now)
    return Prepared(
        source=parsed.source,
        row=row,
        size=len(parsed.raw),
        body=pack(parsed.raw),
        verdict=verdict_row(verdict, now),
        configuration=launch.settings.configuration(parsed, launch.lane),
        signature=outcomes.signature_of(launch),
    )


_RECEIPT: Final = SqlStatement.insert(receipts, numbered=True)
_DOCUMENT: Final = SqlStatement.insert(documents)
_VERDICT: Final = SqlStatement.insert(verdicts, numbered=True)
_SUBJECT: Final = SqlStatement.insert(subjects)
_SUPERSESSION: Final = SqlStatement.insert(supersessions)


def take(
    connection: Connection, items: Sequence[Prepared], actor: str, *, decides: bool = False
) -> list[Submitted | ConflictError]:
    """Store receipts in their order, in a transaction that this begins and, on PostgreSQL, ends.

    Gives, for each, what became of it, or why it is refused, which leaves the others alone. Only an actor who
    ``decides`` replaces a receipt of another one.
    """
    if not items:
        return []
    # What is stored around them is asked for in one round trip, which takes the lock. Numbers for the row and the
    # verdict of each are given out before anything is written, so that every row can be written at once.
    engine, rows = engine_of(connection), [item.row for item in items]
    asks: list[Ask] = [
        *engine.asks_locked(alone=any(row["supersedes"] is not None for row in rows)),
        *ask_related(connection, rows),
        (_CONFIGURED, {"digests": engine.values(sorted({item.configuration.digest for item in items}))}),
        engine.numbers((receipts, verdicts), len(rows)),
    ]
    *_, existing, purged, configured, given = engine.together(connection, asks)
    world, numbers = World((RelatedReceipt(*row) for row in existing), purged), iter(given)
    placed: dict[bytes, int] = {bytes(whole): seq for whole, seq in configured}
    new: list[_New] = []
    outcomes: list[Submitted | ConflictError] = []
    for item in items:
        try:
            outcomes.append(_decide(world, item, numbers, new, actor, decides=decides))
        except ConflictError as error:
            outcomes.append(error)
    if new:
        unknown = [one.item.configuration for one in new if one.item.configuration.whole not in placed]
        if unknown:
            placed |= index.numbers(connection, unknown)
        engine.write(connection, _rows(new, placed, actor), end=True)
    return outcomes


class _New(NamedTuple):
    """A receipt to write, with its numbers and what it supersedes, or what superseded it before it came."""

    item: Prepared
    seq: int
    verdict: int
    generation: int
    supersessions: list[dict[str, Any]]


def _decide(
    world: World, item: Prepared, numbers: Iterator[Sequence[int]], new: list[_New], actor: str, *, decides: bool
) -> Submitted:
    """What becomes of a receipt; adds it to those that are to be written where it is new. Raises ConflictError."""
    row = item.row
    gone = world.purged.get(row["id"])
    if gone is not None:
        raise ConflictError(
            f"{item.source}: {gone.id[:12]} was purged on {gone.at:%Y-%m-%d} "
            f"({gone.reason}) and does not come back; submit a document without what had to go"
        )
    known = world.get(row["id"])
    if known is not None:
        return Submitted(known.id, False, known.submitted_at, known.status, stands=known.superseded is None)
    related = world.related(row)
    replaced = replaced_by(row, related)
    later = [other for other in replacing(row, related) if same_principal(other.actor, actor)]
    for other in replaced if not decides else ():
        # A document alone takes nobody else's receipt away: that is for a person to decide.
        if other.superseded is None and not same_principal(other.actor, actor):
            raise ConflictError(
                f"{item.source}: it says that it replaces {other.id[:12]}, which {other.actor} submitted, and not "
                f'{actor}. To replace it: receipts submit --supersede "the reason", by a person or token that decides'
            )
    if not later:
        _refuse_second(related, item, replaced)
    generation = 1 + max((other.generation for other in related if other.launch == row["launch"]), default=-1)
    statements = [
        {"receipt": other.id, "successor": row["id"], "reason": row["supersedes_reason"], "at": row["submitted_at"]}
        for other in replaced
    ]
    statements += [
        {"receipt": row["id"], "successor": other.id, "reason": other.supersedes_reason, "at": row["submitted_at"]}
        for other in later
    ]
    receipt, verdict = next(numbers)
    new.append(_New(item, receipt, verdict, generation, statements))
    world.take(row, actor, generation, replaced, stands=not later)
    # Receipts of other launches that it says that it replaces: that is for a person to decide.
    target, launch = item.row["supersedes"], item.row["launch"]
    others = (other for other in related if other.launch != launch and other.superseded is None)
    return Submitted(
        id=row["id"],
        new=True,
        at=row["submitted_at"],
        status=row["status"],
        superseded=tuple(other.id for other in replaced),
        stands=not later,
        undecided=tuple(other.id for other in others if target in (other.id, other.launch)),
    )


def _refuse_second(neighbours: Sequence[RelatedReceipt], item: Prepared, replaced: Sequence[RelatedReceipt]) -> None:
    """A launch has at most one receipt that is not withdrawn; one that arrives superseded is not a second."""
    gone = {other.id for other in replaced}
    own = (other for other in neighbours if other.launch == item.row["launch"] and other.superseded is None)
    other = next((other for other in own if other.id not in gone), None)
    if other is not None:
        whose = f"which {other.actor} submitted, " if other.actor else ""
        raise ConflictError(
            f"{item.source}: launch {other.launch} has a receipt with other bytes, {other.id[:12]}, "
            f"{whose}and nothing stored is overwritten. Where this one replaces it, submit it with "
            f'--supersede "the reason", or state in the document:\n'
            f'  "supersedes": {{"target": "{other.id}", "reason": "…"}}   (in run)\n'
            f"Where it is another launch, give it its own run.launch."
        )


def _rows(new: Sequence[_New], placed: Mapping[bytes, int], actor: str) -> list[Rows]:
    """Rows of every table, parents before what refers to them."""
    # Two writers that bring the same receipts meet at them in one order, and never wait for each other in a circle.
    ordered = sorted(new, key=lambda one: one.item.row["id"])
    indexed = [
        IndexedReceipt(one.seq, item.row["started"], item.row["outcome"], item.configuration, item.signature)
        for one in new
        for item in [one.item]
    ]
    return [
        (_RECEIPT, [{**one.item.row, "seq": one.seq, "generation": one.generation, "actor": actor} for one in ordered]),
        (
            _DOCUMENT,
            [{"receipt": one.seq, "codec": CODEC, "size": one.item.size, "body": one.item.body} for one in new],
        ),
        (_VERDICT, [{**one.item.verdict, "seq": one.verdict} for one in new]),
        (_SUBJECT, [{"verdict": one.verdict, "position": 0, "side": "receipt", "receipt": one.seq} for one in new]),
        *index.rows(indexed, placed),
        (_SUPERSESSION, [{**statement, "actor": actor} for one in new for statement in one.supersessions]),
    ]
