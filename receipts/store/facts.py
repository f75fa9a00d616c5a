"""What rules may know of the other receipts in the store, fetched for them as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from receipts.accelerators import find as find_accelerator
from receipts.receipt import Parsed
from receipts.rule import Facts, Shape
from receipts.store.rows import PATHS, cut, standing
from receipts.store.tables import receipts, supersessions

FAILED: Final = ("oom", "crash", "hang", "nan")
_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "depth")
_CONFIGURATION: Final = (*_SHAPE, "global_batch", "context")
_MOST_FAILURES: Final = 100


def facts_of_new(connection: Connection, parsed: Parsed) -> Facts:
    """Facts for judging a receipt that is coming in: nothing can have superseded it but what its submission tells."""
    return Facts(
        shapes=tuple(_shapes(connection, parsed.receipt.run.lane)), failures=tuple(_failures(connection, parsed))
    )


def facts(connection: Connection, group: Sequence[Parsed]) -> Facts:
    """Facts for judging these receipts, stored or not: which are superseded, and what their lane sustained.

    Shapes and failures are those of one lane; for receipts of several lanes there are none.
    """
    lanes = {item.receipt.run.lane for item in group}
    shapes: tuple[Shape, ...] = ()
    failures: tuple[str, ...] = ()
    if len(lanes) == 1:
        shapes = tuple(_shapes(connection, lanes.pop()))
        failures = tuple(dict.fromkeys(item for one in group for item in _failures(connection, one)))
    return Facts(superseded=_superseded(connection, group), shapes=shapes, failures=failures)


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


_SHAPES: Final = (
    select(
        receipts.c.chips,
        receipts.c.sequence_length,
        receipts.c.micro_batch,
        receipts.c.depth,
        func.count().label("launches"),
    )
    .where(
        receipts.c.lane == bindparam("lane"),
        receipts.c.kind == "training",
        receipts.c.outcome == "ok",
        receipts.c.provenance == "measured",
        receipts.c.status != "invalid",
        standing(),
    )
    .group_by(receipts.c.chips, receipts.c.sequence_length, receipts.c.micro_batch, receipts.c.depth)
)


def _shapes(connection: Connection, lane: str) -> Iterator[Shape]:
    """Shapes that the lane's launches sustained: measured training that ended well, is not invalid, and stands."""
    for row in connection.execute(_SHAPES, {"lane": cut(lane)}):
        yield Shape(row.chips, row.sequence_length, row.micro_batch, row.depth, row.launches)


_FAILURES: Final = (
    select(receipts.c.id)
    .where(
        receipts.c.lane == bindparam("lane"),
        receipts.c.kind == bindparam("kind"),
        receipts.c.outcome.in_(FAILED),
        receipts.c.launch != bindparam("launch"),
        *(receipts.c[name] == bindparam(name) for name in _SHAPE),
        standing(),
    )
    .order_by(receipts.c.started.desc())
    .limit(_MOST_FAILURES)
)


def _failures(connection: Connection, parsed: Parsed) -> list[str]:
    """Ids of launches of the lane that failed at the same shape, newest first; none where a part of it is unstated."""
    values = _values(parsed, _SHAPE)
    if any(value is None for value in values.values()):
        return []
    run = parsed.receipt.run
    given = {**values, "lane": cut(run.lane), "kind": run.kind, "launch": run.launch}
    return list(connection.execute(_FAILURES, given).scalars())


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
