"""Shapes that launches of a lane reached or failed at: how often, on how many days and hosts, and the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, asc, bindparam, desc, distinct, func, literal, select

from receipts.axes.shape import ShapeKey
from receipts.judging.facts import ReachedShape
from receipts.metrics.registry import Taint
from receipts.store.entries import cut, safe, standing
from receipts.store.query import samples
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import receipts

_KEY: Final = ShapeKey._fields
SIZE: Final = ("chips", "sequence_length", "micro_batch", "depth")
# Launches that are looked at from either end of the index: enough to tell two days or two hosts apart.
_LOOKED_AT: Final = 50
FEWEST: Final = 3  # launches below which days and hosts make no difference


class ShapeOutcomes(NamedTuple):
    """One shape of a lane with how its launches ended. A part that is None was not stated.

    ``outcome`` is ``ok`` or ``oom``; ``launches`` ended so, on so many ``days`` (UTC) and ``hosts`` that are stated.
    ``last`` is the id of the newest of them, which started at ``at``.
    """

    key: ShapeKey
    accelerator: str | None
    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    outcome: str
    class_: str | None
    phase: str | None
    launches: int
    days: int
    hosts: int
    last: str
    at: datetime


def reached(
    connection: Connection, lane: str, since: datetime | None = None, until: datetime | None = None
) -> list[ShapeOutcomes]:
    """Every shape that measured training of a lane sustained, or ran out of memory at; withdrawn receipts are left out.

    What is no sample of the rate was no good launch, and its failure is a failure all the same. ``since`` and
    ``until`` bound when launches started, the latter left out.
    """
    keys = [receipts.c[name] for name in (*_KEY, "accelerator", *SIZE, "outcome")]
    keys += [receipts.c.failure_class, receipts.c.failure_phase]
    day = engine_of(connection).day(receipts.c.started)
    query = (
        select(
            *keys,
            func.count(),
            func.count(distinct(day)),
            func.count(distinct(receipts.c.host)),
            func.max(receipts.c.seq).label("newest"),
        )
        .where(
            receipts.c.lane == cut(safe(lane)),
            receipts.c.kind == "training",
            receipts.c.outcome.in_(["ok", "oom"]),
            receipts.c.provenance == "measured",
            receipts.c.geometry.is_not(None),
            samples.unspoilt(Taint.RATE) | (receipts.c.outcome == "oom"),
            standing(),
        )
        .group_by(*keys)
    )
    if since is not None:
        query = query.where(receipts.c.started >= since)
    if until is not None:
        query = query.where(receipts.c.started < until)
    rows = [tuple(row) for row in connection.execute(query)]
    newest = select(receipts.c.seq, receipts.c.id, receipts.c.started).where(
        receipts.c.seq.in_([row[-1] for row in rows])
    )
    known = {seq: (name, at) for seq, name, at in connection.execute(newest)}
    return [ShapeOutcomes._make([ShapeKey(*row[:2]), *row[2:-1], *known[row[-1]]]) for row in rows]


def of_kind(row: Any = receipts) -> tuple[ColumnElement[bool], ...]:
    """Training of a lane, a geometry and a layout that ended well; `given` has what they are."""
    constant = (row.c.kind == literal("training"), row.c.outcome == literal("ok"))
    return (*constant, *(row.c[name] == bindparam(name) for name in ("lane", *_KEY)))


def counted(row: Any = receipts) -> tuple[ColumnElement[bool], ...]:
    """Those of a kind that show what a shape can: measured, a sample of the rate, and standing."""
    return (*of_kind(row), row.c.provenance == literal("measured"), samples.unspoilt(Taint.RATE, row), standing(row))


def given(lane: str, key: ShapeKey) -> dict[str, Any]:
    """A kind as parameters."""
    return {"lane": cut(safe(lane)), **key._asdict()}


def _ends(direction: Any) -> SqlStatement:
    """Launches of a shape that count, from one end of the index that covers the order."""
    order = ("tainted", "accelerator", "global_batch", "path_answer", "started")
    return SqlStatement(
        select(receipts.c.started, receipts.c.host)
        .where(*counted(), *(receipts.c[name] == bindparam(name) for name in SIZE))
        .order_by(*(direction(receipts.c[name]) for name in order))
        .limit(_LOOKED_AT)
    )


_FIRST: Final = _ends(asc)
_LAST: Final = _ends(desc)


def spread(
    connection: Connection, lane: str, key: ShapeKey, shapes: Sequence[ReachedShape]
) -> tuple[ReachedShape, ...]:
    """The shapes with the days and hosts of their launches, where there are enough launches for that to matter."""
    return tuple(_spread(connection, lane, key, item) if item.launches >= FEWEST else item for item in shapes)


def _spread(connection: Connection, lane: str, key: ShapeKey, shape: ReachedShape) -> ReachedShape:
    wanted = {**given(lane, key), **{name: getattr(shape, name) for name in SIZE}}
    good = [*_FIRST.all(connection, wanted), *_LAST.all(connection, wanted)]
    return shape._replace(
        days=len({started.date() for started, _ in good}),
        hosts=len({host for _, host in good if host is not None}),
    )
