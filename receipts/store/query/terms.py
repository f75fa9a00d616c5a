"""The conditions of a list in the words of the store's indexes: names, figures, texts, facets, values of axes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from receipts.store.entries import MOST_INDEXED, PATHS, cut
from receipts.store.query import axis_conditions
from receipts.store.query.axis_conditions import AxisTerm
from receipts.store.query.columns import ColumnTest, column_of, path_of, prefix, typed
from receipts.store.query.conditions import NOT_STATED, Condition, is_pattern, meets
from receipts.store.query.neighbours import holds_all
from receipts.store.sql.lookup import distinct_texts
from receipts.store.tables import FIGURES, facets, placements
from receipts.store.write.listing import COMMIT, OF_FACET, instant

# Columns that have an index of their own.
NAMES: Final = ("id", "launch", "label", "actor", "supersedes", "witness_for")
# Columns of `placements` that have an index of their own.
TEXTS: Final = ("revision", "context", "host")
# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")
# Distinct texts of a column that are read to find those that meet a pattern, and that may meet it: 5 ms.
_MOST_TEXTS: Final = 2000
_MOST_MEETING: Final = 200


class Bounds(NamedTuple):
    """The least and the most that a figure may be, both included."""

    least: float = -inf
    most: float = inf


class Terms(NamedTuple):
    """Conditions as indexes hold them, and as they are tested. What no index holds is absent from the first six.

    ``names`` are exact names or their beginnings, by column; ``placed`` values of columns of `placements`: texts, and
    digests of facets that meet all conditions on their columns; ``ended`` lanes and outcomes of these. ``time`` is
    in microseconds since 1970. ``columns`` are tests of a receipt's row, ``commits`` of its
    commit, and ``leaves`` of its document.
    """

    names: Mapping[str, Condition]
    time: Bounds
    figures: Mapping[str, Bounds]
    ended: Sequence[tuple[str, str]]
    placed: Mapping[str, frozenset[Any]]
    axes: tuple[AxisTerm, ...]
    columns: tuple[ColumnTest, ...]
    commits: tuple[Condition, ...]
    leaves: tuple[tuple[str, Condition], ...]


def resolve(connection: Connection, conditions: Sequence[Condition]) -> Terms:
    """The terms of conditions. Raises NotFound for a name that no leaf has, UsageError for a value out of type."""
    asked = [(column_of(item.name), item) for item in conditions]
    columns = [ColumnTest(column, item) for column, item in asked if column is not None]
    leaves = [(path_of(item.name), item) for column, item in asked if column is None]
    if not conditions or not holds_all(connection):
        return Terms(_names(columns), Bounds(), {}, (), {}, (), tuple(columns), (), tuple(leaves))
    texts: dict[str, frozenset[Any]] = {}
    commits: list[Condition] = []
    axes: list[AxisTerm] = []
    documents: list[tuple[str, Condition]] = []
    for test in columns:
        if test.column in TEXTS:
            _add_text(connection, texts, test.column, test.item)
        elif test.column in _NUMBERS:
            axes += _axis_terms(connection, PATHS[test.column], test.item)
    for path, item in leaves:
        if path == COMMIT and len(item.value) < MOST_INDEXED:
            commits.append(item)
            _add_text(connection, texts, "revision", item)
        elif terms := list(_axis_terms(connection, path, item)):
            axes += terms
        else:
            documents.append((path, item))
    meeting = _meeting_facets(connection, [test for test in columns if test.column in OF_FACET])
    figures = _bounds(columns)
    return Terms(
        names=_names(columns),
        time=figures.pop("started", Bounds()),
        figures=figures,
        ended=sorted({(values["lane"], values["outcome"]) for values in meeting.values()}),
        placed=({"facet": frozenset(meeting)} if any(test.column in OF_FACET for test in columns) else {}) | texts,
        axes=axis_conditions.merged(axes),
        columns=tuple(columns),
        commits=tuple(commits),
        leaves=tuple(documents),
    )


def _names(columns: Sequence[ColumnTest]) -> dict[str, Condition]:
    """Names that are given whole or by their beginning; the shortest list is the longest beginning."""
    names: dict[str, Condition] = {}
    for test in columns:
        item = test.item
        if test.column in NAMES and item.operator == "=" and item.value != NOT_STATED and prefix(item.value):
            names[test.column] = max(names.get(test.column, item), item, key=lambda one: len(prefix(one.value)))
    return names


def _bounds(columns: Sequence[ColumnTest]) -> dict[str, Bounds]:
    """Bounds on each figure and on the time. A condition that excludes its end is tested in the row as well."""
    bounds: dict[str, Bounds] = {}
    for test in columns:
        item = test.item
        bounded = test.column in FIGURES or test.column == "started"
        if not bounded or item.operator == "!=" or item.value == NOT_STATED or is_pattern(item):
            continue
        value = typed(test.column, item)
        value = instant(value) if test.column == "started" else value
        least, most = bounds.get(test.column, Bounds())
        if item.operator in ("=", ">", ">="):
            least = max(least, value)
        if item.operator in ("=", "<", "<="):
            most = min(most, value)
        bounds[test.column] = Bounds(least, most)
    return bounds


def _meeting_facets(connection: Connection, tests: Sequence[ColumnTest]) -> dict[int, dict[str, Any]]:
    """Facets that meet every condition on their columns: a store has some hundred."""
    rows = connection.execute(select(facets.c.digest, facets.c.value))
    every = {digest: dict(zip(OF_FACET, json.loads(text), strict=True)) for digest, text in rows}
    return {
        digest: values for digest, values in every.items() if all(test.meets(values[test.column]) for test in tests)
    }


def _axis_terms(connection: Connection, path: str, item: Condition) -> Iterator[AxisTerm]:
    axis = axis_conditions.axis(path)
    term = axis_conditions.axis_term(connection, axis, path, item) if axis is not None else None
    if term is not None:
        yield term


def _add_text(connection: Connection, texts: dict[str, frozenset[Any]], column: str, item: Condition) -> None:
    """Texts of a column that meet a condition, beside those before, where they are few enough to be looked up."""
    if item.operator != "=" or item.value == NOT_STATED:
        return
    if not is_pattern(item):
        meeting: frozenset[str] | None = frozenset([cut(item.value)])
    else:
        meeting = _texts_meeting(connection, column, item)
    if meeting is not None:
        texts[column] = meeting & texts.get(column, meeting)


def _texts_meeting(connection: Connection, column: str, item: Condition) -> frozenset[str] | None:
    """Texts that meet a pattern; None where they are too many to tell, or one of them is cut."""
    every = (
        connection.execute(distinct_texts(placements.c[column], prefix(item.value)).limit(_MOST_TEXTS)).scalars().all()
    )
    if len(every) == _MOST_TEXTS or any(len(text) >= MOST_INDEXED for text in every):
        return None
    meeting = frozenset(text for text in every if meets(text, item))
    return meeting if len(meeting) <= _MOST_MEETING else None
