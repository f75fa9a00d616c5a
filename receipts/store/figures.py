"""Receipts looked up by a figure where few are within the bounds asked for: ``mfu>0.55``, or ``step_seconds<2``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from sqlalchemy import Connection

from receipts.store.clauses import typed
from receipts.store.conditions import NOT_STATED, Condition, is_pattern
from receipts.store.ordered import Sql, rows
from receipts.store.tables import FIGURES

Figures = dict[str, list[Sql]]
Ended = tuple[str, str]  # a lane and an outcome
_BOUNDED: Final = ("=", "<", "<=", ">", ">=")


def bound(column: str | None, item: Condition) -> Sql | None:
    """A condition that bounds a figure; None for any other. Raises UsageError for a bound that is no number."""
    if column not in FIGURES or item.operator not in _BOUNDED or item.value == NOT_STATED or is_pattern(item):
        return None
    return Sql(f"{column} {item.operator} ?", (typed(column, item),))


def few(connection: Connection, ended: Sequence[Ended], figures: Figures, most: int) -> list[int] | None:
    """Numbers of the receipts of these lanes and outcomes within the bounds on one figure, where they are so few.

    None where every figure has more of them: those that come first in time are then soon found among all.
    """
    for column, bounds in figures.items():
        found = _within(connection, ended, column, bounds, most + 1)
        if len(found) <= most:
            return found
    return None


def _within(connection: Connection, ended: Sequence[Ended], column: str, bounds: Sequence[Sql], most: int) -> list[int]:
    """Numbers of receipts within all bounds on a figure, at most so many."""
    given = [*chain(*(item.values for item in bounds)), most]
    server = connection.dialect.name == "postgresql"
    # The order is that of the index, which the server would otherwise leave for the table where it expects many.
    index = "" if server else f" INDEXED BY receipts_{column}"
    wanted = " AND ".join(["lane = {lane}", "outcome = {outcome}", *(item.text for item in bounds)])
    one = f"SELECT seq FROM receipts{index} WHERE {wanted} ORDER BY {column} LIMIT ?"
    if server:
        each = one.format(lane="ended.lane", outcome="ended.outcome")
        keys = "unnest(CAST(? AS text[]), CAST(? AS text[])) AS ended (lane, outcome)"
        text = f"SELECT seq FROM {keys}, LATERAL ({each}) AS found LIMIT ?"
        found = rows(connection, text, [[lane for lane, _ in ended], [outcome for _, outcome in ended], *given, most])
        return [number for (number,) in found]
    numbers: list[int] = []
    for lane, outcome in ended:
        text = one.format(lane="?", outcome="?")
        numbers += [number for (number,) in rows(connection, text, [lane, outcome, *given])]
        if len(numbers) >= most:
            break
    return numbers
