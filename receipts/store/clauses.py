"""Conditions on columns: which column a name means, a condition in SQL, and whether a column's value meets one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from math import isnan
from typing import Any, Final

from sqlalchemy import ColumnElement, String, and_, or_

from receipts.base.errors import NotFound, UsageError, near
from receipts.receipt.catalogue import find as find_leaf
from receipts.receipt.catalogue import leaves
from receipts.store.conditions import COMPARE, NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.rows import COLUMNS, PATHS
from receipts.store.tables import receipts

Clause = ColumnElement[bool]
_TIMES: Final = ("started", "finished", "submitted_at")
_LAST: Final = "\U0010ffff"
_LARGEST: Final = 2**63 - 1  # that a column holds
_PATTERN: Final = re.compile(r"[*?\[]")


def column_of(name: str) -> str | None:
    """The column of that name, or that a leaf's path is promoted to."""
    if name in COLUMNS:
        return name
    return next((column for column, path in PATHS.items() if path == name), None) or _PROMOTED.get(name)


_PROMOTED: Final = {
    "run.started": "started",
    "run.finished": "finished",
    "schema_version": "schema_version",
    "path": "path_answer",
    "submitted": "submitted_at",
}


@lru_cache(maxsize=256)
def path_of(name: str) -> str:
    """The full path of a leaf: given whole, or by its last part where one leaf alone ends so."""
    if find_leaf(name) is not None or name.startswith("path."):
        return name
    ending = sorted({leaf.path for leaf in leaves() if leaf.path.split(".")[-1] == name and "[]" not in leaf.path})
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise NotFound(f"{name} is the end of {', '.join(ending)}; write one of them")
    hint = near(name, [*COLUMNS, *(leaf.path for leaf in leaves())])
    raise NotFound(f"there is no column or leaf {name!r}; see: receipts axes{hint}")


def said(column: str, item: Condition) -> Clause | None:
    """The condition in SQL; None for a pattern, which SQL engines read each in their own way."""
    target = receipts.c[column]
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        return target.is_(None) if item.operator == "=" else target.is_not(None)
    if is_pattern(item):
        return None
    value = typed(column, item)
    compared: Clause = COMPARE[item.operator](target, value)
    return or_(compared, target.is_(None)) if item.operator == "!=" else compared


def beginning(pattern: str) -> str:
    """What every text begins with that meets a pattern."""
    return _PATTERN.split(pattern, maxsplit=1)[0]


def likeness(column: str, item: Condition) -> Clause | None:
    """What every text in a column has that meets a pattern, in SQL; None where that says nothing.

    SQLite's LIKE does not mind case, and a pattern's set of characters is any character: the pattern itself decides.
    """
    target = receipts.c[column]
    if item.operator != "=" or not isinstance(target.type, String):
        return None
    start = beginning(item.value)
    wild = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}
    like = "".join(wild.get(sign, sign) for sign in re.sub(r"\[!?\]?[^\]]*\]", "?", item.value))
    asked = [] if "[" in like else [target.like(like, escape="\\")]
    return and_(*asked, *([target >= start, target < start + _LAST] if start else [target.is_not(None)]))


def value_meets(column: str, value: str | None, item: Condition) -> bool:
    """Whether the text in a column meets a condition, as `said` says it, or as the pattern does."""
    if is_pattern(item) or item.value == NOT_STATED:
        return meets(value, item)
    return item.operator == "!=" if value is None else bool(COMPARE[item.operator](value, typed(column, item)))


def typed(column: str, item: Condition) -> Any:
    """The value that a condition compares a column with. Raises UsageError for one that the column cannot have."""
    if column in _TIMES:
        return _moment(item)
    kind = receipts.c[column].type.python_type
    if kind is str:
        return _accelerator(item.value) if column == "accelerator" else item.value
    value = number(item.value)
    # SQLite has no NaN, and PostgreSQL holds it for the largest number.
    if value is None or isnan(value) or (kind is int and not value.is_integer()):
        what = "whole number" if kind is int else "number"
        raise UsageError(f"{item}: {item.name} is a {what}; write {item.name}{item.operator}8")
    return max(-_LARGEST, min(int(value), _LARGEST)) if kind is int else value


def _accelerator(value: str) -> str:
    from receipts.receipt.accelerators import find as find_accelerator

    known = find_accelerator(value)
    return known.key if known else value


def _moment(item: Condition) -> datetime:
    try:
        moment = datetime.fromisoformat(item.value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # of no calendar, or of none in UTC
        raise UsageError(f"{item}: write a time such as {item.name}{item.operator}2026-03-01") from None
