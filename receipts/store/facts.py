"""What rules may know of the other receipts in the store, fetched for them as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, func, literal, or_, select, tuple_

from receipts.accelerators import find as find_accelerator
from receipts.errors import StoreError
from receipts.receipt import Document, Parsed, parse_again
from receipts.rule import Facts, Shape
from receipts.store.packing import unpack
from receipts.store.rows import PATHS, cut, standing
from receipts.store.signatures import failed_before
from receipts.store.statement import Row, Statement
from receipts.store.tables import documents, receipts, supersessions

FAILED: Final = ("oom", "crash", "hang", "nan")
_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "depth")
_CONFIGURATION: Final = (*_SHAPE, "global_batch", "context")
_MOST_WITNESSES: Final = 20
# A few launches make a ceiling; how many more had its shape changes nothing, and counting them takes time.
MOST_COUNTED: Final = 10


def facts_of_new(connection: Connection, group: Sequence[Parsed]) -> list[Facts]:
    """Facts for judging each of several receipts that are coming in.

    Nothing can have superseded them yet but what their submission will tell, and a lane's shapes are asked for once.
    """
    shapes = {lane: tuple(_shapes(connection, lane)) for lane in {item.receipt.run.lane for item in group}}
    within = Facts.among(group)
    return [
        replace(
            _with_kin(connection, [item], within),
            shapes=shapes[item.receipt.run.lane],
            failures=tuple(failed_before(connection, item)),
        )
        for item in group
    ]


def facts(connection: Connection, group: Sequence[Parsed]) -> Facts:
    """Facts for judging these receipts, stored or not: which are superseded, and what their lane sustained.

    Shapes are those of one lane; for receipts of several lanes there are none.
    """
    lanes = {item.receipt.run.lane for item in group}
    shapes: tuple[Shape, ...] = ()
    if len(lanes) == 1:
        shapes = tuple(_shapes(connection, lanes.pop()))
    failures = tuple(dict.fromkeys(item for one in group for item in failed_before(connection, one)))
    known = Facts(superseded=_superseded(connection, group), shapes=shapes, failures=failures)
    return _with_kin(connection, group, known.beside(group))


_PACKED: Final = (
    select(receipts.c.id, documents.c.codec, documents.c.body)
    .join(documents, documents.c.receipt == receipts.c.seq)
    .order_by(receipts.c.seq.desc())
    .limit(_MOST_WITNESSES)
)
_WITNESSES: Final = Statement(
    _PACKED.where(receipts.c.witness_for.in_([bindparam("id"), bindparam("launch")]), standing())
)
_WITNESSED: Final = Statement(
    _PACKED.where(
        or_(
            receipts.c.id == bindparam("target"),
            and_(receipts.c.launch == bindparam("target"), standing()),
        )
    )
)


def _with_kin(connection: Connection, group: Sequence[Parsed], known: Facts) -> Facts:
    """Facts with the stored witnesses of these receipts, newest first, and the launches that they witness themselves.

    One look-up a receipt: a witness shows its own path, and no other is asked to witness it.
    """
    witnesses = {item.id: item for item in known.witnesses}
    witnessed = {item.id: item for item in known.witnessed}
    for item in group:
        run = item.receipt.run
        if run.witness_for is None:
            names = {"id": item.id, "launch": run.launch}
            witnesses.update((other.id, other) for other in map(_parsed, _WITNESSES.all(connection, names)))
        else:
            target = {"target": run.witness_for}
            witnessed.update((other.id, other) for other in map(_parsed, _WITNESSED.all(connection, target)))
    return replace(known, witnesses=tuple(witnesses.values()), witnessed=tuple(witnessed.values()))


def _parsed(row: Row) -> Parsed:
    receipt_id, codec, body = row
    document = Document(unpack(codec, body, receipt_id[:12]), receipt_id[:12])
    if document.id != receipt_id:
        raise StoreError(f"the bytes of {receipt_id[:12]} were changed in the store; restore a backup")
    return parse_again(document)


# Statements are made once: making one takes longer than running it.
_NAMED_BY: Final = select(receipts.c.id, receipts.c.launch, receipts.c.supersedes, receipts.c.supersedes_reason).where(
    receipts.c.supersedes.in_(bindparam("targets", expanding=True))
)
_SAID: Final = (
    select(supersessions.c.receipt, supersessions.c.successor, supersessions.c.reason)
    .where(supersessions.c.receipt.in_(bindparam("ids", expanding=True)))
    .order_by(supersessions.c.seq)
)


def _superseded(connection: Connection, group: Sequence[Parsed]) -> dict[str, tuple[str, str]]:
    """The last word on each receipt: said in the store, by a stored receipt that names it, or within the group."""
    found: dict[str, tuple[str, str]] = {}
    for item in group:
        replaces = item.receipt.run.supersedes
        for other in group if replaces else ():
            if replaces and other.id != item.id and replaces.target in (other.id, other.receipt.run.launch):
                found[other.id] = (item.id, replaces.reason)
    ids = [item.id for item in group]
    launches = {item.receipt.run.launch: item.id for item in group}
    for row in connection.execute(_NAMED_BY, {"targets": [*ids, *launches]}):
        named = row.supersedes if row.supersedes in ids else launches[row.supersedes]
        if row.id != named and row.launch != row.supersedes:
            found[named] = (row.id, row.supersedes_reason or "")
    for said in connection.execute(_SAID, {"ids": ids}):
        found[said.receipt] = (said.successor or "", said.reason)
    return found


_BOUNDS: Final = tuple(receipts.c[name] for name in ("chips", "sequence_length", "micro_batch", "depth"))
_OF_LANE: Final = (
    receipts.c.lane == bindparam("lane"),
    receipts.c.kind == "training",
    receipts.c.outcome == "ok",
)


def _next_shape() -> Select[Any]:
    """The first shape from given bounds on, in the index's order, with how many launches had it, up to a limit."""
    twin = receipts.alias("twin")
    counted = (
        select(literal(1))
        .where(
            *(twin.c[column.name] == column for column in (*_BOUNDS, receipts.c.lane)),
            twin.c.kind == "training",
            twin.c.outcome == "ok",
            twin.c.provenance == "measured",
            twin.c.status != "invalid",
            ~exists().where(supersessions.c.receipt == twin.c.id),
        )
        .limit(MOST_COUNTED)
        .correlate(receipts)
        .subquery()
    )
    launches = select(func.count()).select_from(counted).scalar_subquery()
    return (
        select(*_BOUNDS, launches.label("launches"))
        .where(
            *_OF_LANE,
            tuple_(*_BOUNDS) >= tuple_(*(bindparam(column.name, type_=column.type) for column in _BOUNDS)),
            *(column.is_not(None) for column in _BOUNDS),
        )
        .order_by(*_BOUNDS)
        .limit(1)
    )


_NEXT_SHAPE: Final = Statement(_next_shape())


def _shapes(connection: Connection, lane: str) -> Iterator[Shape]:
    """Shapes that the lane's launches sustained: measured training that ended well, is not invalid, and stands.

    One look-up a shape, however many launches had it: a lane has tens of shapes and may have a million launches.
    Shapes of which a part is unstated bound nothing and are left out.
    """
    at: dict[str, Any] = {"lane": cut(lane), **{column.name: -1 for column in _BOUNDS}}
    while rows := _NEXT_SHAPE.all(connection, at):
        chips, sequence_length, micro_batch, depth, launches = rows[0]
        if launches:
            yield Shape(chips, sequence_length, micro_batch, depth, launches)
        # `>=` the next depth rather than `>` this one, for which SQLite steps over every launch of this shape.
        at.update(chips=chips, sequence_length=sequence_length, micro_batch=micro_batch, depth=depth + 1)


def candidates(connection: Connection, parsed: Parsed) -> Iterator[str]:
    """Ids of launches that may replicate this one, newest first: what SQL can tell apart is left out.

    An axis that is unstated on one side only is unknown, so that such a receipt is no replicate either.
    """
    run = parsed.receipt.run
    query: Select[Any] = (
        select(receipts.c.id)
        .where(
            receipts.c.lane == cut(run.lane),
            receipts.c.kind == run.kind,
            receipts.c.outcome == run.outcome,
            receipts.c.launch != run.launch,
            *_same(_values(parsed, _CONFIGURATION)),
            standing(),
        )
        .order_by(receipts.c.started.desc(), receipts.c.seq.desc())
    )
    yield from list(connection.execute(query).scalars())


def _values(parsed: Parsed, columns: Sequence[str]) -> dict[str, Any]:
    values = {name: parsed.stated.get(PATHS[name]) for name in columns}
    known = find_accelerator(values["accelerator"]) if values.get("accelerator") else None
    if known is not None:
        values["accelerator"] = known.key
    return {name: cut(value) if name == "accelerator" else value for name, value in values.items()}


def _same(values: dict[str, Any]) -> list[ColumnElement[bool]]:
    # `IS NULL` rather than `IS NOT DISTINCT FROM`, which PostgreSQL answers without an index.
    return [
        receipts.c[name].is_(None) if value is None else receipts.c[name] == value for name, value in values.items()
    ]
