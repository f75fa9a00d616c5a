"""Stored launches that may replicate a receipt."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, select

from receipts.axes.configuration import Configuration
from receipts.metrics.reading import Taint
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find as find_accelerator
from receipts.store.entries import PATHS, cut, safe, standing
from receipts.store.query import samples
from receipts.store.query.neighbours import holds_lane
from receipts.store.tables import configurations, placements, receipts

_SPOILT: Final = ~samples.unspoilt(Taint.RATE)
_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth")


def candidates(connection: Connection, parsed: Parsed, own: Configuration, until: datetime | None = None) -> list[str]:
    """Ids of stored launches that may differ from this one in no axis; the caller compares them.

    ``own`` is its configuration: they are looked up where the axis index holds its lane; else what SQL can tell apart
    is left out. Those that ended as it did come first, of these what is a sample of the rate, and the newest: spoilt
    and failed launches, however many and new, keep no good one from being seen. Beside one that failed only such as
    failed alike. Those that ran after ``until`` are left out.
    """
    run = parsed.receipt.run
    alike = _in_index(own) if holds_lane(connection, own) else _in_columns(parsed, own)
    query = select(receipts.c.id).where(alike, receipts.c.kind == run.kind, receipts.c.launch != run.launch, standing())
    if run.outcome != "ok":
        query = query.where(receipts.c.outcome == run.outcome)
    if until is not None:
        query = query.where(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    query = query.order_by(receipts.c.outcome != run.outcome, _SPOILT, receipts.c.started.desc(), receipts.c.seq.desc())
    return list(connection.execute(query).scalars())


def _in_index(own: Configuration) -> ColumnElement[bool]:
    placed = select(placements.c.receipt).join(configurations, configurations.c.seq == placements.c.configuration)
    return receipts.c.seq.in_(placed.where(configurations.c.digest == own.digest, configurations.c.whole == own.whole))


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
