"""Stored launches that may replicate a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, select

from receipts.axes.configuration import Configuration
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find as find_accelerator
from receipts.store.entries import PATHS, cut, safe, standing
from receipts.store.query import neighbours as near
from receipts.store.tables import receipts

_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "depth")
_CONFIGURATION: Final = (*_SHAPE, "global_batch", "context")


def candidates(
    connection: Connection, parsed: Parsed, ran: Configuration | None = None, until: datetime | None = None
) -> list[str]:
    """Ids of stored launches that may differ from this one in no axis; the caller compares them.

    Those that ended as it did come first, of these what is a sample of the rate, and the newest; of a launch that
    ended well also those that failed. Those that ran after ``until`` are left out. With ``ran``, its configuration,
    they are looked up where the axis index holds its lane; else what SQL can tell apart is left out.
    """
    if ran is not None and near.holds_lane_of(connection, ran):
        return near.alike(connection, ran, parsed, until)
    return _alike_in_columns(connection, parsed, ran, until)


def _alike_in_columns(
    connection: Connection, parsed: Parsed, ran: Configuration | None, until: datetime | None
) -> list[str]:
    """An axis that is unstated on one side only is unknown, so that such a receipt is no replicate either."""
    run = parsed.receipt.run
    # A context stands for what is unstated, and where nothing is, it may be another one.
    names = _CONFIGURATION if ran is None or ran.anchor is not None else (*_SHAPE, "global_batch")
    query: Select[Any] = (
        select(receipts.c.id)
        .where(
            receipts.c.lane == cut(safe(run.lane)),
            receipts.c.kind == run.kind,
            receipts.c.launch != run.launch,
            *_same(_values(parsed, names)),
            standing(),
        )
        .where(*near.not_after(run.outcome, until))
        .order_by(*near.best_first(run.outcome))
    )
    return list(connection.execute(query).scalars())


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
