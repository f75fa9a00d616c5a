"""Receipts looked up by a figure where few are within the bounds asked for: ``mfu>0.55``, or ``step_seconds<2``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from sqlalchemy import Connection

from receipts.store.clauses import typed
from receipts.store.conditions import NOT_STATED, Condition, is_pattern
from receipts.store.ordered import rows
from receipts.store.tables import FIGURES

Ended = tuple[str, str]  # a lane and an outcome


class Bounds(NamedTuple):
    """The least and the most that a figure may be, both taken in: whether it may be either, each receipt is asked."""

    least: float = -inf
    most: float = inf


def bounds(conditions: Iterable[tuple[str | None, Condition]]) -> dict[str, Bounds]:
    """Bounds on each figure that conditions on these columns bound. Raises UsageError for one that is no number."""
    found: dict[str, Bounds] = {}
    for column, item in conditions:
        if column not in FIGURES or item.operator == "!=" or item.value == NOT_STATED or is_pattern(item):
            continue
        value = typed(column, item)
        least, most = found.get(column, Bounds())
        if item.operator in ("=", ">", ">="):
            least = max(least, value)
        if item.operator in ("=", "<", "<="):
            most = min(most, value)
        found[column] = Bounds(least, most)
    return found


def rarest(
    connection: Connection, ended: Sequence[Ended], figures: Mapping[str, Bounds], limit: int
) -> tuple[int, str]:
    """The figure that the fewest receipts of these lanes and outcomes have within its bounds, with how many they are.

    At most ``limit`` are counted of a lane and outcome.
    """
    asked = "SELECT count(*) FROM ({one}) AS one"
    return min(
        (sum(count for (count,) in _of_each(connection, ended, asked, column, within, limit)), column)
        for column, within in figures.items()
    )


def numbers(connection: Connection, ended: Sequence[Ended], column: str, within: Bounds, limit: int) -> list[int]:
    """Numbers of the receipts of these lanes and outcomes within a figure's bounds, at most so many of each."""
    return [number for (number,) in _of_each(connection, ended, "{one}", column, within, limit)]


def _of_each(
    connection: Connection, ended: Sequence[Ended], asked: str, column: str, within: Bounds, limit: int
) -> Iterator[Any]:
    """Rows of a query over the receipts of each lane and outcome, in the order of the figure."""
    server = connection.dialect.name == "postgresql"
    index = "" if server else f" INDEXED BY receipts_{column}"
    lane, outcome = ("ended.lane", "ended.outcome") if server else ("?", "?")
    wanted = f"lane = {lane} AND outcome = {outcome} AND {column} >= ? AND {column} <= ?"
    # The order is that of the index: a server that expects many would read the table, be there none.
    one = asked.format(one=f"SELECT seq FROM receipts{index} WHERE {wanted} ORDER BY {column} LIMIT ?")
    if server:
        keys = "unnest(CAST(? AS text[]), CAST(? AS text[])) AS ended (lane, outcome)"
        given = [[lane for lane, _ in ended], [outcome for _, outcome in ended], *within, limit]
        yield from rows(connection, f"SELECT found.* FROM {keys}, LATERAL ({one}) AS found", given)
        return
    for key in ended:
        yield from rows(connection, one, [*key, *within, limit])
