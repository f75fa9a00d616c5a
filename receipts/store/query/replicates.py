"""Stored launches that may replicate a receipt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from receipts.axes.configuration import Configuration
from receipts.metrics.registry import Taint
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.store.entries import METRICS, PATHS, cut, safe, standing
from receipts.store.query import samples
from receipts.store.query.neighbours import holds_lane
from receipts.store.tables import configurations, placements, receipts

FEW: Final = 100  # launches of other sessions that are read
_COLUMNS: Final = ("id", "launch", "label", "session", "host", "started", "outcome", "rate_source", *METRICS)
_SPOILT: Final = ~samples.unspoilt(Taint.RATE)
_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth")


class AlikeLaunch(NamedTuple):
    """A stored launch of a configuration by its columns; ``sound``: by its first verdict no offense spoils its rate."""

    id: str
    launch: str
    label: str | None
    session: str | None
    host: str | None
    started: datetime
    outcome: str
    sound: bool
    readings: Mapping[str, float | None]


class AlikeLaunches(NamedTuple):
    """Those in a span of time or of a declared session, and others, the newest; ``more`` were not read."""

    near: list[AlikeLaunch]
    others: list[AlikeLaunch]
    more: int


def alike(
    connection: Connection,
    parsed: Parsed,
    own: Configuration,
    span: tuple[datetime, datetime],
    sessions: Collection[str],
    until: datetime | None = None,
) -> AlikeLaunches:
    """Stored launches that may differ from this one in no axis, by their columns alone; no document is read."""
    conditions = _conditions(connection, parsed, own, until)
    near: ColumnElement[bool] = receipts.c.started.between(*span)
    if sessions:
        near = or_(near, receipts.c.session.in_(sorted(sessions)))
    query = select(*(receipts.c[name] for name in _COLUMNS), (~_SPOILT).label("sound")).where(*conditions)
    newest = query.where(~near).order_by(receipts.c.started.desc(), receipts.c.seq.desc()).limit(FEW)
    inside, others = (list(map(_alike_launch, connection.execute(one))) for one in (query.where(near), newest))
    more = 0
    if len(others) == FEW:
        every = connection.execute(select(func.count()).select_from(receipts).where(*conditions)).scalar_one()
        more = every - len(inside) - FEW
    return AlikeLaunches(inside, others, more)


def _alike_launch(row: Any) -> AlikeLaunch:
    *names, source = row[: -len(METRICS) - 1]
    readings = dict(zip(METRICS, row[-len(METRICS) - 1 : -1], strict=True)) if source in ("steps", None) else {}
    return AlikeLaunch._make((*names, bool(row[-1]), readings))


def _conditions(
    connection: Connection, parsed: Parsed, own: Configuration, until: datetime | None
) -> list[ColumnElement[bool]]:
    run = parsed.receipt.run
    placed = _in_index(own) if holds_lane(connection, own) else _in_columns(parsed, own)
    conditions = [placed, receipts.c.kind == run.kind, standing()]
    if run.outcome != "ok":
        conditions.append(receipts.c.outcome == run.outcome)
    if until is not None:
        conditions.append(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    return conditions


def candidates(connection: Connection, parsed: Parsed, own: Configuration, until: datetime | None = None) -> list[str]:
    """Ids of stored launches that may differ from this one in no axis; the caller compares them.

    ``own`` is its configuration: they are looked up where the axis index holds its lane; else what SQL can tell apart
    is left out. Those that ended as it did come first, of these what is a sample of the rate, and the newest: spoilt
    and failed launches, however many and new, keep no good one from being seen. Beside one that failed only such as
    failed alike. Those that ran after ``until`` are left out.
    """
    run = parsed.receipt.run
    query = select(receipts.c.id).where(*_conditions(connection, parsed, own, until), receipts.c.launch != run.launch)
    query = query.order_by(receipts.c.outcome != run.outcome, _SPOILT, receipts.c.started.desc(), receipts.c.seq.desc())
    return list(connection.execute(query).scalars())


def _in_index(own: Configuration) -> ColumnElement[bool]:
    placed = select(placements.c.receipt).join(configurations, configurations.c.seq == placements.c.configuration)
    known = [of for of in (own, own.plain) if of is not None]  # of launches from before inputs were recorded, too
    alike = [and_(configurations.c.digest == of.digest, configurations.c.whole == of.whole) for of in known]
    return receipts.c.seq.in_(placed.where(or_(*alike)))


def _in_columns(parsed: Parsed, own: Configuration) -> ColumnElement[bool]:
    """An axis that is unstated on one side only is unknown, so that such a receipt is no replicate either."""
    # A context fills what is unstated; if nothing is, it may be another one.
    names = (*_SHAPE, "context") if own.anchor is not None else _SHAPE
    values: dict[str, Any] = {name: parsed.stated.get(PATHS[name]) for name in names}
    known = find_accelerator(values["accelerator"]) if values["accelerator"] else None
    values["accelerator"] = known.key if known is not None else cut(values["accelerator"])
    # `IS NULL` rather than `IS NOT DISTINCT FROM`, which PostgreSQL answers without an index.
    same = (
        receipts.c[name].is_(None) if value is None else receipts.c[name] == value for name, value in values.items()
    )
    return and_(receipts.c.lane == cut(safe(own.lane)), *same)
