"""Taking receipts in: new, known already, or in conflict; with bytes, verdict, indexes and whom they supersede.

On PostgreSQL it takes two round trips however many there are: everything is asked in one, and written in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from receipts.axes.configuration import Configuration
from receipts.axes.signature import Signature
from receipts.base.environment import same_principal
from receipts.base.errors import ConflictError
from receipts.judging.verdict import ReceiptVerdict
from receipts.metrics import Launch
from receipts.store.entries import VerdictColumns, promoted
from receipts.store.history.verdicts import row_of
from receipts.store.packing import CODEC, pack
from receipts.store.query import signatures
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Rows, SqlStatement
from receipts.store.tables import documents, receipts, subjects, supersessions, verdicts
from receipts.store.write import index
from receipts.store.write.existing import RelatedReceipt, World, related, replaced_by, replacing, rival
from receipts.store.write.index import IndexedReceipt

__all__ = ["Prepared", "Submitted", "prepare", "take"]


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
        verdict=row_of(verdict, now),
        configuration=launch.settings.configuration(parsed, launch.lane),
        signature=signatures.signed(launch),
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
    world, placed, numbers = related(connection, [item.row for item in items], [item.configuration for item in items])
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
        engine_of(connection).write(connection, _rows(new, placed, actor), end=True)
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
    _refuse_purged(world, item)
    known = world.get(row["id"])
    if known is not None:
        return Submitted(known.id, False, known.submitted_at, known.status, stands=known.superseded is None)
    related = world.related(row)
    replaced = replaced_by(row, related)
    later = [other for other in replacing(row, related) if same_principal(other.actor, actor)]
    if not decides:
        _refuse_anothers(replaced, item, actor)
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
    return Submitted(
        id=row["id"],
        new=True,
        at=row["submitted_at"],
        status=row["status"],
        superseded=tuple(other.id for other in replaced),
        stands=not later,
        undecided=_of_others(related, item),
    )


def _refuse_purged(world: World, item: Prepared) -> None:
    gone = world.purged.get(item.row["id"])
    if gone is not None:
        raise ConflictError(
            f"{item.source}: {gone.id[:12]} was purged on {gone.at:%Y-%m-%d} "
            f"({gone.reason}) and does not come back; submit a document without what had to go"
        )


def _of_others(neighbours: Sequence[RelatedReceipt], item: Prepared) -> tuple[str, ...]:
    """Receipts of other launches that it says that it replaces: that is for a person to decide."""
    target, launch = item.row["supersedes"], item.row["launch"]
    others = (other for other in neighbours if other.launch != launch and other.superseded is None)
    return tuple(other.id for other in others if target in (other.id, other.launch))


def _refuse_anothers(replaced: Sequence[RelatedReceipt], item: Prepared, actor: str) -> None:
    """A document alone takes nobody else's receipt away: that is for a person to decide."""
    for other in replaced:
        if other.superseded is None and not same_principal(other.actor, actor):
            raise ConflictError(
                f"{item.source}: it says that it replaces {other.id[:12]}, which {other.actor} submitted, and not "
                f'{actor}. To replace it: receipts submit --supersede "the reason", by a person or token that decides'
            )


def _refuse_second(neighbours: Sequence[RelatedReceipt], item: Prepared, replaced: Sequence[RelatedReceipt]) -> None:
    """A launch has at most one receipt that is not withdrawn; one that arrives superseded is not a second."""
    other = rival(item.row, neighbours, replaced)
    if other is not None:
        raise ConflictError(
            f"{item.source}: launch {other.launch} has a receipt with other bytes, {other.id[:12]}, "
            f"{_by(other)}and nothing stored is overwritten. Where this one replaces it, submit it with "
            f'--supersede "the reason", or state in the document:\n'
            f'  "supersedes": {{"target": "{other.id}", "reason": "…"}}   (in run)\n'
            f"Where it is another launch, give it its own run.launch."
        )


def _by(other: RelatedReceipt) -> str:
    return f"which {other.actor} submitted, " if other.actor else ""


def _rows(new: Sequence[_New], placed: Mapping[bytes, int], actor: str) -> list[Rows]:
    """Rows of every table, parents before what refers to them."""
    # Two writers that bring the same receipts meet at them in one order, and never wait for each other in a circle.
    ordered = sorted(new, key=lambda one: one.item.row["id"])
    return [
        (_RECEIPT, [{**one.item.row, "seq": one.seq, "generation": one.generation, "actor": actor} for one in ordered]),
        (
            _DOCUMENT,
            [{"receipt": one.seq, "codec": CODEC, "size": one.item.size, "body": one.item.body} for one in new],
        ),
        (_VERDICT, [{**one.item.verdict, "seq": one.verdict} for one in new]),
        (_SUBJECT, [{"verdict": one.verdict, "position": 0, "side": "receipt", "receipt": one.seq} for one in new]),
        *index.rows([_indexed(one) for one in new], placed),
        (_SUPERSESSION, [{**statement, "actor": actor} for one in new for statement in one.supersessions]),
    ]


def _indexed(one: _New) -> IndexedReceipt:
    item = one.item
    return IndexedReceipt(one.seq, item.row["started"], item.row["outcome"], item.configuration, item.signature)
