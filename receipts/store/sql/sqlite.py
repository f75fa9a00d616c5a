"""SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select


class Sqlite:
    """What SQLite does in its own way."""

    def among(self, column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """That a column has one of some values: one parameter, so that a statement is the same however many."""
        each = func.json_each(json.dumps(values)).table_valued("value")
        return column.in_(select(each.c.value))
