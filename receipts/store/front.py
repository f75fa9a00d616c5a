"""The front of a list of what many configurations have: its newest receipts, or its oldest, without the others.

Configurations are numbered as they came in, so that most of the front ran the last few of those that are asked for.
These give a guess, and all that stand before its end and ran an earlier one are looked up in the order of time: they
are few, mostly none, and what is first of both is the front.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final

from sqlalchemy import Connection

from receipts.store.ordered import (
    MOST,
    MOST_VALUES,
    SORT,
    Lists,
    Order,
    Place,
    Sql,
    among,
    bounds,
    by_key,
    counted_axis,
    facets,
    places,
    rows,
    shortest_first,
    with_values,
)
from receipts.store.statement import run

# Configurations whose receipts are read all together, and the few of them that a guess is made from.
FEW: Final = 2000
_GUESSED: Final = 200
_PASSED: Final = 20  # receipts that are passed by in order while those of one configuration are looked up


def configurations(connection: Connection, lists: Lists, order: Order, most: int) -> list[int]:
    """Numbers of configurations with a value of each axis, and of one of the lanes: so many of those that came in last.

    Where the oldest are asked for, of those that came in first.
    """
    server = connection.dialect.name == "postgresql"
    lead, *others = lists.axes if server else shortest_first(connection, lists)
    wanted = [*among("one.value", lead), *with_values(others, "one")]
    for item in among("of.lane", lists.lanes):
        same = f"SELECT 1 FROM configurations of WHERE of.seq = one.configuration AND {item.text}"
        wanted.append(Sql(f"EXISTS ({same})", item.values))
    text = f"SELECT one.configuration FROM axes one WHERE {' AND '.join(item.text for item in wanted)}"
    if server:
        # It would walk one list until it has enough of them, however far apart these are: both are read and merged.
        text = f"WITH found AS MATERIALIZED ({text}) SELECT configuration FROM found AS one"
    direction = "DESC" if order == "newest" else "ASC"
    given = [*chain(*(item.values for item in wanted)), most]
    with _alone(connection):
        found = rows(connection, f"{text} ORDER BY one.configuration {direction} LIMIT ?", given)
    return [number for (number,) in found]


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """A server's helpers take longer to begin than what is asked here takes."""
    server = connection.dialect.name == "postgresql"
    if server:
        run(connection, "SET LOCAL max_parallel_workers_per_gather = 0")
    yield
    if server:
        run(connection, "SET LOCAL max_parallel_workers_per_gather = DEFAULT")


def page_of_configurations(
    connection: Connection, lists: Lists, order: Order, numbers: Sequence[int], after: Place | None, most: int
) -> list[Place]:
    """Time and number of the next receipts of these configurations, with a facet and a text, at most so many."""
    wanted = [*among("facet", lists.facets), *(among(lists.column, lists.texts) if lists.column else ())]
    wanted += bounds(lists, order, after)
    given = [*chain(*(item.values for item in wanted)), most]
    further = "".join(f" AND {item.text}" for item in wanted)
    if connection.dialect.name == "postgresql":
        # With an offset it is a look-up for each, and no reading of all placements.
        each = f"SELECT at, receipt FROM placements WHERE configuration = one.number{further} OFFSET 0"
        text = f"SELECT at, receipt FROM unnest(CAST(? AS bigint[])) AS one (number), LATERAL ({each}) AS found"
        return places(connection, f"{text} ORDER BY {SORT[order]} LIMIT ?", [list(numbers), *given])
    text = "SELECT at, receipt FROM placements INDEXED BY placements_configuration"
    (these,) = among("configuration", numbers)
    return places(
        connection,
        f"{text} WHERE {these.text}{further} ORDER BY {SORT[order]} LIMIT ?",
        [*these.values, *given],
    )


def front(connection: Connection, lists: Lists, order: Order, numbers: Sequence[int], most: int) -> list[Place] | None:
    """Time and number of the first receipts on lists of axes and facets; None where these are better read whole.

    ``numbers`` are the first `FEW` that `configurations` gives.
    """
    keys = lists.facets if lists.facets is not None else [digest for digest, _ in facets(connection)]
    if order == "stored" or lists.column or lists.first is not None or lists.last is not None:
        return None
    if len(keys) > MOST or len(keys) * sum(map(len, lists.axes)) > MOST_VALUES:
        return None
    for last in (_GUESSED, len(numbers)):
        guess = page_of_configurations(connection, lists, order, numbers[:last], None, most)
        if len(guess) == most:
            break
    else:
        return None
    enough = _enough(connection, order, guess[-1])
    if enough > FEW and any(counted_axis(connection, values, enough) < enough for values in lists.axes):
        every = configurations(connection, lists, order, enough)
        return page_of_configurations(connection, lists, order, every, None, most)
    earlier = _earlier(connection, lists, order, keys, numbers[:last][-1], guess[-1], most)
    return sorted({*guess, *earlier}, reverse=order == "newest")[:most]


def _enough(connection: Connection, order: Order, end: Place) -> int:
    """Configurations whose receipts are looked up while those that stand before a place are passed by."""
    first = "max" if order == "newest" else "min"
    ((number,),) = rows(connection, f"SELECT {first}(receipt) FROM placements", [])
    return int(min(abs(number - end[1]) // _PASSED, MOST_VALUES))


def _earlier(
    connection: Connection, lists: Lists, order: Order, keys: Sequence[int], number: int, end: Place, most: int
) -> list[Place]:
    """The first receipts on the lists up to a place that ran a configuration on the far side of this one."""
    upto, beyond = (">=", "<") if order == "newest" else ("<=", ">")
    wanted = [Sql(f"at {upto} ?", end[:1]), Sql(f"configuration {beyond} ?", (number,))]
    wanted += with_values(lists.axes, "placements", walked=True)
    return by_key(connection, "facet", keys, wanted, order, most)
