"""The conditions of a list as what answers them: columns of receipts, the axis index, or documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from receipts.axes.difference import CODE
from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.receipt.document import COMPLETE
from receipts.store.entries import PATHS, safe
from receipts.store.query.columns import ColumnTest, column_of, path_of
from receipts.store.query.conditions import NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.query.neighbours import holds_all
from receipts.store.tables import axis_values

# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")
# More values than that in one statement cost more than reading what is asked for.
_MOST_VALUES: Final = 1000
# Leaves of an entry of an open map, which only documents hold.
_INNER: Final = (".value", ".version", ".before_runtime", ".editable")


class AxisTerm(NamedTuple):
    """Numbers of an axis' values of which a configuration has one, or, where it is not ``has``, has none."""

    values: frozenset[int]
    has: bool


class Terms(NamedTuple):
    """Conditions by what answers them. A condition on a column that is an axis as well is in both."""

    columns: tuple[ColumnTest, ...]
    axes: tuple[AxisTerm, ...]
    leaves: tuple[tuple[str, Condition], ...]


def resolve(connection: Connection, conditions: Sequence[Condition]) -> Terms:
    """The terms of conditions. Raises NotFound for a name that no leaf has, UsageError for a value out of type."""
    indexed = bool(conditions) and holds_all(connection)
    columns: list[ColumnTest] = []
    axes: list[AxisTerm] = []
    leaves: list[tuple[str, Condition]] = []
    for item in conditions:
        column = column_of(item.name)
        path = path_of(item.name) if column is None else PATHS.get(column, "")
        column = column or column_of(path)
        if column is not None:
            columns.append(ColumnTest(column, item))
        term = axis_term(connection, path, item) if indexed and (column is None or column in _NUMBERS) else None
        if term is not None:
            axes.append(term)
        elif column is None:
            leaves.append((path, item))
    return Terms(tuple(columns), tuple(axes), tuple(leaves))


def axis(path: str) -> str | None:
    """The axis of a leaf whose every value the index holds; None where that of another leaf may hide it."""
    head, _, key = path.partition(".")
    if head in OPEN_MAPS:
        return axis_of(path) if key and key != COMPLETE and not path.endswith(_INNER) else None
    of_leaf = axis_of(path)
    known = any(leaf.path == path for leaf in axis_leaves())
    # A commit is left out of the index where the digest over the imported files is stated, and the digest never is.
    return of_leaf if known and (of_leaf != "code" or path == CODE[0]) else None


def axis_term(connection: Connection, path: str, item: Condition) -> AxisTerm | None:
    """What a condition on a leaf asks of its axis; None where the index does not answer it, or too many values do."""
    of_leaf = axis(path)
    if of_leaf is None:
        return None
    has = item.operator != "!="
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        values, has = _values(connection, of_leaf, path, None), not has
    else:
        values = _values(connection, of_leaf, path, item if has else item._replace(operator="="))
    return AxisTerm(values, has) if len(values) <= _MOST_VALUES else None


def _values(connection: Connection, axis: str, path: str, item: Condition | None) -> frozenset[int]:
    """Numbers of the axis' values that state the leaf and, where one is asked, meet the condition."""
    # An axis such as the learning rate has many values, most of them numbers.
    equal = number(item.value) if item is not None and item.operator == "=" and not is_pattern(item) else None
    query = select(axis_values.c.seq, axis_values.c.value).where(axis_values.c.axis == safe(axis))
    meeting = set()
    for seq, text in connection.execute(query):
        if equal is not None and _is_other_number(path, text, equal):
            continue
        value = json.loads(text).get(path)
        if value is None:
            continue
        if item is None or (
            float(value) == equal if equal is not None and type(value) in (int, float) else meets(value, item)
        ):
            meeting.add(seq)
    return frozenset(meeting)


def _is_other_number(path: str, text: str, equal: float) -> bool:
    """Whether an axis' JSON says another number of a leaf, and nothing else: to see that takes no reading of JSON."""
    start = f'{{"{path}":'
    try:
        return text.startswith(start) and float(text[len(start) : -1]) != equal
    except ValueError:
        return False
