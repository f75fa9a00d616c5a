"""PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, String, any_, bindparam

from receipts.store.arrays import Array


class Postgres:
    """What PostgreSQL does in its own way."""

    def among(self, column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """That a column has one of some values: one parameter, so that a statement is the same however many."""
        kind = String() if isinstance(column.type, String) else column.type  # without its collation
        return column == any_(bindparam(None, values, type_=Array(kind)))
