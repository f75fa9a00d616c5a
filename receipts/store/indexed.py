"""Conditions on axes, answered by the axis index: which of an axis' values meet them, and which receipts have those."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, exists, false, func, not_, select, true

from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.receipt.maps import COMPLETE
from receipts.store.conditions import NOT_STATED, Condition, meets
from receipts.store.index import column_text
from receipts.store.tables import axes, axis_values, placements, receipts

# More values than that in one statement cost more than reading what is asked for.
_MOST_VALUES: Final = 1000
# Receipts up to which those that have a value are listed first; beyond, each receipt is asked for its value.
_FEW: Final = 2000
# Leaves of an entry of an open map, which stand in documents alone.
_INNER: Final = (".value", ".version", ".before_runtime", ".editable")


def axis(path: str) -> str | None:
    """The axis of a leaf whose every value stands in the index; None where that of another leaf may hide it."""
    head, _, key = path.partition(".")
    if head in OPEN_MAPS:
        return axis_of(path) if key and key != COMPLETE and not path.endswith(_INNER) else None
    found = axis_of(path)
    known = any(leaf.path == path for leaf in axis_leaves())
    return found if known and found != "code" else None


def clause(connection: Connection, axis: str, path: str, item: Condition) -> ColumnElement[bool] | None:
    """A condition on a leaf in SQL; None where too many values of its axis meet it."""
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        hits, wanted = _values(connection, axis, path, None), item.operator == "!="
    elif item.operator == "!=":
        hits, wanted = _values(connection, axis, path, Condition(item.name, "=", item.value)), False
    else:
        hits, wanted = _values(connection, axis, path, item), True
    if not hits:
        return false() if wanted else true()
    if len(hits) > _MOST_VALUES:
        return None
    having = select(placements.c.receipt).join(axes, axes.c.configuration == placements.c.configuration)
    having = having.where(axes.c.value.in_(hits))
    if wanted and _few(connection, having):
        return receipts.c.seq.in_(having)
    has = exists(having.where(placements.c.receipt == receipts.c.seq).correlate(receipts))
    return has if wanted else not_(has)


def _values(connection: Connection, axis: str, path: str, item: Condition | None) -> list[int]:
    """Numbers of the axis' values that state the leaf and, where one is asked, meet the condition."""
    query = select(axis_values.c.seq, axis_values.c.value).where(axis_values.c.axis == column_text(axis))
    found = []
    for seq, text in connection.execute(query):
        value = json.loads(text).get(path)
        if value is not None and (item is None or meets(value, item)):
            found.append(seq)
    return found


def _few(connection: Connection, having: Select[Any]) -> bool:
    counted = select(func.count()).select_from(having.limit(_FEW + 1).subquery())
    return connection.execute(counted).scalar_one() <= _FEW
