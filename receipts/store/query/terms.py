"""Terms: conditions by what answers them, columns of `receipts`, the axis index, or leaves that only documents hold.

A `ColumnTest` says whether a value in a column meets a condition; an `AxisTerm` has the axis values that meet one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import isnan
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, or_, select, true, union

from receipts.axes.difference import CODE
from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.axes.inputs import PREFIX
from receipts.base.errors import NotFound, UsageError, near
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import COMPLETE
from receipts.receipt.leaves import find_leaf, leaves
from receipts.store.entries import documents_of, safe
from receipts.store.entry import COLUMNS, PATHS
from receipts.store.query import COMPARE, NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.query.axis_index import holds_all
from receipts.store.sql import distinct_texts
from receipts.store.tables import axis_values, receipts

# Columns that have an index of their own.
INDEXED_NAMES: Final = ("id", "launch", "label", "actor", "supersedes", "witness_for", "host", "context", "revision")
_TIMES: Final = ("started", "finished", "submitted_at")
_MAX_INTEGER: Final = 2**63 - 1  # that a column holds
_LAST: Final = "\U0010ffff"
_PATTERN: Final = re.compile(r"[*?\[]")
_PROMOTED: Final = {"schema_version": "schema_version", "path": "path_answer", "submitted": "submitted_at"}


def column_of(name: str) -> str | None:
    """The column of that name, or that a leaf's path is promoted to."""
    if name in COLUMNS:
        return name
    return next((column for column, path in PATHS.items() if path == name), None) or _PROMOTED.get(name)


@lru_cache(maxsize=256)
def path_of(name: str) -> str:
    """The full path of a leaf: given whole, or by its last part where one leaf alone ends so. Raises NotFound."""
    if find_leaf(name) is not None or name.startswith(("path.", PREFIX)):
        return name
    ending = sorted({leaf.path for leaf in leaves() if leaf.path.split(".")[-1] == name and "[]" not in leaf.path})
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise NotFound(f"{name} is the end of {', '.join(ending)}; write one of them")
    hint = near(name, [*COLUMNS, *(leaf.path for leaf in leaves())])
    raise NotFound(f"there is no column or leaf {name!r}; see: receipts axes{hint}")


def pattern_prefix(pattern: str) -> str:
    """What every text begins with that meets a pattern."""
    return _PATTERN.split(pattern, maxsplit=1)[0]


def begins_with(target: ColumnElement[Any], start: str) -> ColumnElement[bool]:
    """Whether a text begins so, as a range that an index answers."""
    return and_(target >= start, target < start + _LAST)


class ColumnTest:
    """A condition on a column, with the value that it compares typed once. Raises UsageError where it cannot be."""

    def __init__(self, column: str, item: Condition) -> None:
        self.column = column
        self.item = item
        self.is_pattern = is_pattern(item)
        self._of_absence = item.value == NOT_STATED and item.operator in ("=", "!=")
        self._value = None if self.is_pattern or self._of_absence else typed(column, item)

    def __repr__(self) -> str:
        return f"ColumnTest({self.column!r}, {str(self.item)!r})"

    @property
    def is_name(self) -> bool:
        """Whether the column's own index answers it: a name that is given whole, or how it begins."""
        return (
            self.column in INDEXED_NAMES
            and self.item.operator == "="
            and not self._of_absence
            and bool(pattern_prefix(self.item.value))
        )

    def meets(self, value: Any) -> bool:
        """Whether a column's value meets it. What is not stated meets only ``!=`` and ``=-``."""
        if self.is_pattern or self._of_absence:
            return meets(value, self.item)
        if value is None:
            return self.item.operator == "!="
        return bool(COMPARE[self.item.operator](value, self._value))

    def clause(self, row: Any) -> ColumnElement[bool]:
        """`meets` in SQL; of a pattern only how it begins, which `is_name` is enough to look it up by."""
        column, equal = row.c[self.column], self.item.operator == "="
        if self._of_absence:
            absent: ColumnElement[bool] = column.is_(None) if equal else column.is_not(None)
            return absent
        if self.is_pattern:
            start = safe(pattern_prefix(self.item.value))
            return begins_with(column, start) if equal and start and self.column in INDEXED_NAMES else true()
        if self.item.operator == "!=":
            other: ColumnElement[bool] = column.is_distinct_from(self._value)
            return other
        compared: ColumnElement[bool] = COMPARE[self.item.operator](column, self._value)
        return compared


def typed(column: str, item: Condition) -> Any:
    """The value that a condition compares a column with. Raises UsageError for one that the column cannot have."""
    if column in _TIMES:
        try:
            moment = datetime.fromisoformat(item.value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):  # of no calendar, or of none in UTC
            raise UsageError(f"{item}: write a time such as {item.name}{item.operator}2026-03-01") from None
    kind = receipts.c[column].type.python_type
    if kind is str:
        item.value.encode()  # no column holds half a surrogate pair; an engine would say so in its own words
        known = find_accelerator(item.value) if column == "accelerator" else None
        return safe(known.key if known else item.value)
    value = number(item.value)
    if value is None or isnan(value) or (kind is int and not value.is_integer()):
        what, such = ("fraction", "0.3") if column == "mfu" else ("whole number" if kind is int else "number", "8")
        raise UsageError(f"{item}: {item.name} is a {what}; write {item.name}{item.operator}{such}")
    return max(-_MAX_INTEGER, min(int(value), _MAX_INTEGER)) if kind is int else value


NAMES: Final = ("host", "context", "revision", "model")  # of few values each, which an index has in order
NOTED: Final = 500  # of the newest receipts, whose notes are read


def naming(connection: Connection, word: str) -> ColumnElement[bool]:
    """Whether a word is in a name of a receipt, begins its id or launch, or is in its notes, in letters of any size.

    Each index is asked by itself: 20 ms at 100,000 receipts, where to read every row takes ten times as long.
    """
    number, low = receipts.c.seq, safe(word).lower()
    part = receipts.c.label.ilike if connection.dialect.name == "postgresql" else receipts.c.label.like
    escaped = re.sub("([%_/])", r"/\1", safe(word))
    ways: list[ColumnElement[bool]] = [part(f"%{escaped}%", escape="/")]
    ways += [begins_with(receipts.c[name], low) for name in ("id", "launch")]
    for name in NAMES:
        known = connection.scalars(distinct_texts(receipts.c[name])).all()
        ways.append(receipts.c[name].in_([text for text in known if low in text.lower()]))
    numbers = union(*(select(number).where(way) for way in ways))
    newest = connection.scalars(select(number).order_by(number.desc()).limit(NOTED)).all()
    noting = [
        seq
        for seq, raw in documents_of(connection, newest).items()
        if b'"notes"' in raw and low in json.dumps(json.loads(raw).get("notes"), ensure_ascii=False).lower()
    ]
    return or_(number.in_(numbers), number.in_(noting))


# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")
# More values than that in one statement cost more than reading what is asked for.
_MAX_VALUES: Final = 1000
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


def resolve_terms(connection: Connection, conditions: Sequence[Condition]) -> Terms:
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
    return AxisTerm(values, has) if len(values) <= _MAX_VALUES else None


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
