"""Which stored launches are samples of a kind of metric, by the columns that their first verdict filled.

The SQL of `receipts.judging.sample.unspoilt`; a test holds that they agree.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, literal

from receipts.metrics.registry import Taint
from receipts.store.query.conditions import Condition
from receipts.store.tables import receipts

# Not null, so that an index passes spoilt launches by, however many they are.
NOTHING: Final = Taint.NONE.value


def text_of(tainted: Collection[str]) -> str:
    """Kinds of metric as the columns `tainted` and `undecided` hold them."""
    return ",".join(kind.value for kind in Taint if kind in tainted and kind is not Taint.NONE) or NOTHING


def kinds_of(text: str) -> tuple[str, ...]:
    """Kinds of metric that such a column names."""
    return () if text == NOTHING else tuple(text.split(","))


def _texts(kind: Taint) -> list[ColumnElement[str]]:
    """Every text that names neither this kind nor `all`."""
    others = [item for item in Taint if item not in (Taint.ALL, Taint.NONE, kind)]
    sets = (some for count in range(len(others) + 1) for some in combinations(others, count))
    return [literal(text_of(some)) for some in sets]


def unspoilt(kind: Taint, row: Any = receipts) -> ColumnElement[bool]:
    """Whether a launch is no invalid one for this kind of metric."""
    return and_(row.c.tainted.in_(_texts(kind)), row.c.path_answer != literal("left"))


def valid(kind: Taint) -> ColumnElement[bool]:
    """Whether, beside that, no question about it was open."""
    return and_(receipts.c.undecided.in_(_texts(kind)), unspoilt(kind))


def conditions(kind: Taint) -> tuple[Condition, ...]:
    """`unspoilt` as conditions of a list."""
    names = (Taint.ALL, kind)
    return (Condition("path_answer", "!=", "left"), *(Condition("tainted", "!=", f"*{name}*") for name in names))
