"""Taking a receipt in: new, known already, or in conflict; with its bytes, its verdict and whom it supersedes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, literal, or_, select, union_all

from receipts.axes.configuration import Configuration, configuration
from receipts.errors import ConflictError
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.signature import Signature
from receipts.store import index, signatures
from receipts.store.packing import CODEC, pack
from receipts.store.rows import promoted
from receipts.store.statement import Statement
from receipts.store.tables import documents, purges, receipts, supersessions
from receipts.store.verdicts import add, packed
from receipts.verdict import ReceiptVerdict


class Submitted(NamedTuple):
    """What became of a receipt that the store holds. `new` is False where the same bytes were there already.

    `status` is the one it was given when it was first stored; `at` when that was, in UTC. `superseded` are the ids
    that this receipt replaced just now. `stands` is False where something superseded or retracted it.
    """

    id: str
    new: bool
    at: datetime
    status: str
    superseded: tuple[str, ...] = ()
    stands: bool = True


class Prepared(NamedTuple):
    """A judged receipt, ready to be written: nothing that takes time is left for inside the transaction."""

    parsed: Parsed
    verdict: ReceiptVerdict
    row: dict[str, Any]
    body: bytes
    judged: bytes
    configuration: Configuration
    signature: Signature | None = None


def prepare(launch: Launch, verdict: ReceiptVerdict) -> Prepared:
    """Pack a receipt's bytes and lift its columns."""
    row = promoted(launch, verdict, datetime.now(UTC))
    signature = signatures.signed(launch.parsed, launch.lane)
    ran = configuration(launch.parsed, launch.lane)
    return Prepared(launch.parsed, verdict, row, pack(launch.parsed.raw), packed(verdict), ran, signature)


class Neighbour(NamedTuple):
    """A stored receipt that can decide what becomes of another; `said` is None where it stands."""

    id: str
    launch: str
    generation: int
    supersedes: str | None
    supersedes_reason: str | None
    submitted_at: datetime
    status: str
    said: int | None


_said = select(supersessions.c.seq).where(supersessions.c.receipt == receipts.c.id).limit(1).scalar_subquery()
# All that can decide what becomes of a receipt, in one round trip: itself, its launch, whom it replaces, and whoever
# said that they replace it before it came.
_FOUND = union_all(
    select(*(receipts.c[name] for name in Neighbour._fields[:-1]), _said.label("said")).where(
        or_(
            receipts.c.id.in_([bindparam("id"), bindparam("target")]),
            receipts.c.launch.in_([bindparam("launch"), bindparam("target")]),
            receipts.c.supersedes.in_([bindparam("id"), bindparam("launch")]),
        )
    ),
    select(
        purges.c.receipt,
        literal(""),
        literal(-1),
        literal(None),
        purges.c.reason,
        purges.c.at,
        literal("purged"),
        literal(None),
    ).where(purges.c.receipt == bindparam("id")),
)
_NEIGHBOURS: Final = Statement(_FOUND)
# Any number will do, so long as every version of the program takes the same one; schema.py takes another.
_KEY: Final = 0x7265636569707475
_ALONE: Final = select(func.pg_advisory_xact_lock(_KEY))
_TOGETHER: Final = select(func.pg_advisory_xact_lock_shared(_KEY))
_RECEIPT: Final = Statement.insert(receipts)
_DOCUMENT: Final = Statement.insert(documents)
_SUPERSESSION: Final = insert(supersessions)


def lock(connection: Connection, *, alone: bool) -> None:
    """Keep a receipt that replaces others apart from all that are just coming in, so that neither misses the other.

    SQLite has one writer anyway. On PostgreSQL writers pass side by side, and one that replaces waits for them.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_ALONE if alone else _TOGETHER)


def take(connection: Connection, item: Prepared) -> Submitted:
    """Store one receipt inside a transaction. Raises ConflictError before anything is written."""
    row = item.row
    ids = {"id": row["id"], "launch": row["launch"], "target": row["supersedes"]}
    found = [Neighbour(*other) for other in _NEIGHBOURS.all(connection, ids)]
    for other in found:
        if other.id == row["id"]:
            return _known(other, item)
    replaced = _replaced(found, item)
    _refuse_second(found, item, replaced)
    generation = 1 + max((other.generation for other in found if other.launch == row["launch"]), default=-1)
    seq = _RECEIPT.add(connection, {**row, "generation": generation})
    _DOCUMENT.run(connection, {"receipt": seq, "codec": CODEC, "size": len(item.parsed.raw), "body": item.body})
    add(connection, item.verdict, item.judged, [("receipt", seq)], row["submitted_at"])
    index.add(connection, [index.Placed(seq, item.configuration)])
    signatures.write(connection, seq, row["outcome"], item.signature)
    return _supersede(connection, item, found, replaced)


def _known(other: Neighbour, item: Prepared) -> Submitted:
    if other.status == "purged":
        raise ConflictError(
            f"{item.parsed.source}: {other.id[:12]} was purged on {other.submitted_at:%Y-%m-%d} "
            f"({other.supersedes_reason}) and does not come back; submit a document without what had to go"
        )
    return Submitted(other.id, False, other.submitted_at, other.status, stands=other.said is None)


def _replaced(found: Sequence[Neighbour], item: Prepared) -> list[Neighbour]:
    """The stored receipts that this one replaces: the one of that id, or those of that launch that stand.

    Raises ConflictError where two receipts would each replace the other.
    """
    target = item.row["supersedes"]
    if target is None:
        return []
    replaced = [other for other in found if target == other.id or (target == other.launch and other.said is None)]
    for other in replaced:
        if other.supersedes in (item.row["id"], item.row["launch"]) and other.launch != item.row["launch"]:
            raise ConflictError(
                f"{item.parsed.source}: run.supersedes names {target}, and {other.id[:12]} of it already supersedes "
                f"this launch; only one of two receipts can replace the other"
            )
    return replaced


def _heralds(found: Sequence[Neighbour], item: Prepared) -> list[Neighbour]:
    """Receipts that came earlier and said that they replace this one: by its id, or its launch from another launch."""
    row = item.row
    return [
        other
        for other in found
        if other.supersedes == row["id"] or (other.supersedes == row["launch"] and other.launch != row["launch"])
    ]


def _refuse_second(found: Sequence[Neighbour], item: Prepared, replaced: Sequence[Neighbour]) -> None:
    """A launch has at most one receipt that stands; one that comes superseded already is no second."""
    if _heralds(found, item):
        return
    gone = {other.id for other in replaced}
    for other in found:
        if other.launch == item.row["launch"] and other.said is None and other.id not in gone:
            raise ConflictError(
                f"{item.parsed.source}: launch {other.launch} has a receipt with other bytes, {other.id[:12]}, and "
                f"nothing stored is overwritten. Where this one replaces it, state in the document:\n"
                f'  "supersedes": {{"target": "{other.id}", "reason": "…"}}   (in run)\n'
                f"Where it is another launch, give it its own run.launch."
            )


def _supersede(
    connection: Connection, item: Prepared, found: Sequence[Neighbour], replaced: Sequence[Neighbour]
) -> Submitted:
    row = item.row
    said = [
        {"receipt": other.id, "successor": row["id"], "reason": row["supersedes_reason"], "at": row["submitted_at"]}
        for other in replaced
    ]
    heralds = _heralds(found, item)
    said += [
        {"receipt": row["id"], "successor": other.id, "reason": other.supersedes_reason, "at": row["submitted_at"]}
        for other in heralds
    ]
    if said:
        connection.execute(_SUPERSESSION, said)
    return Submitted(
        id=row["id"],
        new=True,
        at=row["submitted_at"],
        status=row["status"],
        superseded=tuple(other.id for other in replaced),
        stands=not heralds,
    )
