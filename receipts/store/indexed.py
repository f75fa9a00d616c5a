"""Conditions on axes, answered by the axis index: which of an axis' values meet them, and which receipts have those."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, false, select, true

from receipts.axes.difference import CODE
from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.receipt.maps import COMPLETE
from receipts.store.conditions import NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.index import column_text
from receipts.store.many import Lookup
from receipts.store.tables import axes, axis_values, placements, receipts

# More values than that in one statement cost more than reading what is asked for.
_MOST_VALUES: Final = 1000
# Leaves of an entry of an open map, which stand in documents alone.
_INNER: Final = (".value", ".version", ".before_runtime", ".editable")


def axis(path: str) -> str | None:
    """The axis of a leaf whose every value stands in the index; None where that of another leaf may hide it."""
    head, _, key = path.partition(".")
    if head in OPEN_MAPS:
        return axis_of(path) if key and key != COMPLETE and not path.endswith(_INNER) else None
    found = axis_of(path)
    known = any(leaf.path == path for leaf in axis_leaves())
    # A commit is left out of the index where the digest over the imported files is stated, and the digest never is.
    return found if known and (found != "code" or path == CODE[0]) else None


class Wanted(NamedTuple):
    """A condition as the index reads it: values of which a receipt has one, or, where it is not ``has``, has none."""

    values: tuple[int, ...]
    has: bool

    @property
    def clause(self) -> ColumnElement[bool]:
        """It in SQL, asked of each receipt."""
        if not self.values:
            return false() if self.has else true()
        # With a limit it stays a question to each receipt, and the first few of many are found without the others:
        # PostgreSQL would make a list of all that meet an EXISTS.
        one = _having([self]).where(placements.c.receipt == receipts.c.seq).limit(1).correlate(receipts)
        found = one.scalar_subquery()
        return found.is_not(None) if self.has else found.is_(None)


def wanted(connection: Connection, axis: str, path: str, item: Condition) -> Wanted | None:
    """What a condition on a leaf asks of its axis; None where too many values meet it."""
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        found = Wanted(_values(connection, axis, path, None), item.operator == "!=")
    elif item.operator == "!=":
        found = Wanted(_values(connection, axis, path, Condition(item.name, "=", item.value)), False)
    else:
        found = Wanted(_values(connection, axis, path, item), True)
    return found if len(found.values) <= _MOST_VALUES else None


def _having(asked: Sequence[Wanted]) -> Select[Any]:
    """Numbers of receipts that have a value of each; the first one leads."""
    query = select(placements.c.receipt)
    for item in asked:
        one = axes.alias()
        query = query.join(one, one.c.configuration == placements.c.configuration).where(one.c.value.in_(item.values))
    return query


def _values(connection: Connection, axis: str, path: str, item: Condition | None) -> tuple[int, ...]:
    """Numbers of the axis' values that state the leaf and, where one is asked, meet the condition."""
    # An axis such as the learning rate has many values, most of them numbers.
    equal = number(item.value) if item is not None and item.operator == "=" and not is_pattern(item) else None
    rows = _OF_AXIS.read(connection, [(column_text(axis),)])
    stated = ((seq, json.loads(text).get(path)) for seq, text in rows if equal is None or not _other(path, text, equal))
    if item is None:
        return tuple(seq for seq, value in stated if value is not None)
    return tuple(
        seq
        for seq, value in stated
        if value is not None
        and (float(value) == equal if equal is not None and type(value) in (int, float) else meets(value, item))
    )


def _other(path: str, text: str, equal: float) -> bool:
    """Whether an axis' JSON says another number of a leaf, and nothing else: to see that takes no reading of JSON."""
    start = f'{{"{path}":'
    try:
        return text.startswith(start) and float(text[len(start) : -1]) != equal
    except ValueError:
        return False


_OF_AXIS: Final = Lookup([axis_values.c.axis], [axis_values.c.seq, axis_values.c.value])
