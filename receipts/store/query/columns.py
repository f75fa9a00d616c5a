"""Conditions on columns of `receipts`: which column a name means, and whether a value in it meets a condition."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from math import isnan
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, true

from receipts.axes.inputs import PREFIX
from receipts.base.errors import NotFound, UsageError, near
from receipts.receipt.leaves import find_leaf, leaves
from receipts.store.entries import COLUMNS, PATHS, safe
from receipts.store.query.conditions import COMPARE, NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.tables import receipts

# Columns that have an index of their own.
NAMES: Final = ("id", "launch", "label", "actor", "supersedes", "witness_for", "host", "context", "revision")
_TIMES: Final = ("started", "finished", "submitted_at")
_LARGEST: Final = 2**63 - 1  # that a column holds
_LAST: Final = "\U0010ffff"
_PATTERN: Final = re.compile(r"[*?\[]")
_PROMOTED: Final = {
    "run.started": "started",
    "run.finished": "finished",
    "schema_version": "schema_version",
    "path": "path_answer",
    "submitted": "submitted_at",
}


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


def prefix(pattern: str) -> str:
    """What every text begins with that meets a pattern."""
    return _PATTERN.split(pattern, maxsplit=1)[0]


def begins(target: ColumnElement[Any], start: str) -> ColumnElement[bool]:
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
            self.column in NAMES
            and self.item.operator == "="
            and not self._of_absence
            and bool(prefix(self.item.value))
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
            start = safe(prefix(self.item.value))
            return begins(column, start) if equal and start and self.column in NAMES else true()
        if self.item.operator == "!=":
            other: ColumnElement[bool] = column.is_distinct_from(self._value)
            return other
        compared: ColumnElement[bool] = COMPARE[self.item.operator](column, self._value)
        return compared


def typed(column: str, item: Condition) -> Any:
    """The value that a condition compares a column with. Raises UsageError for one that the column cannot have."""
    if column in _TIMES:
        return _moment(item)
    kind = receipts.c[column].type.python_type
    if kind is str:
        _refuse_surrogates(item.value)
        return safe(_accelerator(item.value) if column == "accelerator" else item.value)
    value = number(item.value)
    if value is None or isnan(value) or (kind is int and not value.is_integer()):
        what, such = ("fraction", "0.3") if column == "mfu" else ("whole number" if kind is int else "number", "8")
        raise UsageError(f"{item}: {item.name} is a {what}; write {item.name}{item.operator}{such}")
    return max(-_LARGEST, min(int(value), _LARGEST)) if kind is int else value


def _refuse_surrogates(text: str) -> None:
    """No column can hold such a text; an engine would say so in its own words."""
    text.encode()


def _accelerator(value: str) -> str:
    from receipts.receipt.accelerators import find_accelerator

    known = find_accelerator(value)
    return known.key if known else value


def _moment(item: Condition) -> datetime:
    try:
        moment = datetime.fromisoformat(item.value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # of no calendar, or of none in UTC
        raise UsageError(f"{item}: write a time such as {item.name}{item.operator}2026-03-01") from None
