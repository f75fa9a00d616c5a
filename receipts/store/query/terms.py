"""The conditions of a list as what answers them: columns of receipts, the axis index, or documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from receipts.store.entries import PATHS
from receipts.store.query.axis_conditions import AxisTerm, axis_term
from receipts.store.query.columns import ColumnTest, column_of, path_of
from receipts.store.query.conditions import Condition
from receipts.store.query.neighbours import holds_all

# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")


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
