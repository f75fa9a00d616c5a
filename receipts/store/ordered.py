"""Lists of receipts in their order, a page at a time: by what came of them, by where they ran, or by values of axes.

Each list is read from an index that holds all that it is ordered and chosen by, so that a page costs what stands on it,
however many receipts there are; a list by several axes costs what stands on the shortest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection

from receipts.store.statement import run

Order = Literal["newest", "oldest", "stored"]
# Lists that are read side by side; more of them are most of the store.
MOST: Final = 200
COUNTED: Final = 50_000  # what a list is counted up to
MOST_VALUES: Final = 30_000  # of one statement: SQLite may refuse 32,767, and PostgreSQL refuses 65,536
SORT: Final = {"newest": "at DESC, receipt DESC", "oldest": "at, receipt", "stored": "receipt"}
_AFTER: Final = {"newest": "(at, receipt) < (?, ?)", "oldest": "(at, receipt) > (?, ?)", "stored": "receipt > ?"}
Place = tuple[int, int]


class Lists(NamedTuple):
    """What every receipt that is asked for has: one of some texts in a column, one of some facets, values of axes.

    ``column`` is `host`, `context` or `revision`, or empty where no text is asked for; ``facets`` is None where any
    will do, and ``lanes`` where these are of every lane. ``first`` and ``last`` bound the time, in microseconds since
    1970.
    """

    column: str = ""
    texts: tuple[str, ...] = ()
    facets: tuple[int, ...] | None = None
    axes: tuple[tuple[int, ...], ...] = ()
    lanes: tuple[str, ...] | None = None
    first: int | None = None
    last: int | None = None

    @property
    def empty(self) -> bool:
        """Whether no receipt can be on all of them."""
        return (bool(self.column) and not self.texts) or self.facets == () or () in self.axes

    @property
    def keyed(self) -> bool:
        """Whether there are a few lists in order whose union holds all that is asked for."""
        return 0 < len(self.texts or self.facets or ()) <= MOST


class Sql(NamedTuple):
    """A condition with the values of its question marks."""

    text: str
    values: tuple[Any, ...] = ()


def page(connection: Connection, lists: Lists, order: Order, after: Place | None, most: int) -> list[Place]:
    """Time and number of the next receipts of a text or a facet that have what else is asked for, at most so many.

    What else is asked for may be left out, so that there come more.
    """
    column, keys = (lists.column, lists.texts) if lists.column else ("facet", lists.facets or ())
    chosen = [*(among("facet", lists.facets) if lists.column else ()), *with_values(lists.axes, "placements")]
    if len(keys) * sum(len(item.values) for item in chosen) > MOST_VALUES:
        chosen = []  # who reads the page asks every receipt on it for all, in any case
    return by_key(connection, column, keys, [*bounds(lists, order, after), *chosen], order, most)


def by_key(
    connection: Connection, column: str, keys: Sequence[Any], further: Sequence[Sql], order: Order, most: int
) -> list[Place]:
    """Time and number of the first receipts of one of these texts or facets that have what else is wanted."""
    # SQLite counts nothing, and might take the list of another column that it then sorts.
    index = f" INDEXED BY placements_{column}" if connection.dialect.name == "sqlite" else ""
    where = " AND ".join([f"{column} = ?", *(item.text for item in further)])
    one = f"SELECT at, receipt FROM placements{index} WHERE {where} ORDER BY {SORT[order]} LIMIT ?"
    text = " UNION ALL ".join([f"SELECT * FROM ({one}) AS found"] * len(keys))
    given = [value for key in keys for value in (key, *chain(*(item.values for item in further)), most)]
    return places(connection, f"{text} ORDER BY {SORT[order]} LIMIT ?", [*given, most])


def page_of_axes(connection: Connection, lists: Lists, order: Order, after: Place | None, most: int) -> list[Place]:
    """Time and number of the next receipts with a value of each axis, a facet and a text, at most so many."""
    lead, *others = shortest_first(connection, lists)
    wanted = [*among("one.value", lead), *with_values(others, "one")]
    wanted += [*among("facet", lists.facets), *(among(lists.column, lists.texts) if lists.column else ())]
    wanted += bounds(lists, order, after)
    rest = " AND ".join(item.text for item in wanted)
    same = "placements.configuration = one.configuration"
    text = f"SELECT at, receipt FROM axes one JOIN placements ON {same} WHERE {rest}"
    if connection.dialect.name == "sqlite":
        # A cross join is one in this order; and SQLite might read all of a text again for each configuration.
        joined = "axes one CROSS JOIN placements INDEXED BY placements_configuration"
        text = f"SELECT at, receipt FROM {joined} WHERE {same} AND {rest}"
    given = [*chain(*(item.values for item in wanted)), most]
    return places(connection, f"{text} ORDER BY {SORT[order]} LIMIT ?", given)


def shortest_first(connection: Connection, lists: Lists) -> list[tuple[int, ...]]:
    """The axes' values, those first that the fewest configurations have."""
    return sorted(lists.axes, key=lambda values: counted_axis(connection, values))


def counted(connection: Connection, lists: Lists, most: int = COUNTED) -> int:
    """How many receipts have one of the texts, or else one of the facets; at most so many."""
    column, keys = (lists.column, lists.texts) if lists.column else ("facet", lists.facets or ())
    return _counted(connection, "placements", column, keys, most)


def counted_axis(connection: Connection, values: Sequence[int], most: int = COUNTED) -> int:
    """How many configurations have one of an axis' values; at most so many."""
    return _counted(connection, "axes", "value", values, most)


def facets(connection: Connection) -> list[tuple[int, str]]:
    """Every facet: its digest and its columns as JSON."""
    found: list[tuple[int, str]] = run(connection, "SELECT digest, value FROM facets").fetchall()
    return found


def texts(connection: Connection, column: str, beginning: str, most: int) -> list[str]:
    """The different texts of a column from a beginning on, in order: a look-up each, however many receipts have one."""
    after = f"SELECT min({column}) AS text FROM placements WHERE {column}"
    sql = (
        f"WITH RECURSIVE walk (text) AS ({after} >= ? UNION ALL SELECT ({after} > walk.text) FROM walk "
        "WHERE walk.text IS NOT NULL) SELECT text FROM walk WHERE text IS NOT NULL LIMIT ?"
    )
    return [text for (text,) in rows(connection, sql, [beginning, most])]


def bounds(lists: Lists, order: Order, after: Place | None) -> Iterator[Sql]:
    """Conditions on the time, and, from the second page on, on standing behind the last place of the page before."""
    if lists.first is not None:
        yield Sql("at >= ?", (lists.first,))
    if lists.last is not None:
        yield Sql("at <= ?", (lists.last,))
    if after is not None:
        yield Sql(_AFTER[order], after[1:] if order == "stored" else after)


def with_values(axes: Sequence[Sequence[int]], of: str, *, walked: bool = False) -> Iterator[Sql]:
    """That the configuration of a row has a value of each axis; where rows are ``walked``, looked up for each."""
    for at, values in enumerate(axes):
        for item in among(f"a{at}.value", values):
            one = f"SELECT 1 FROM axes a{at} WHERE a{at}.configuration = {of}.configuration AND {item.text}"
            # PostgreSQL might make a list of all that meet an EXISTS; a limit is asked of each.
            yield Sql(f"({one} LIMIT 1) IS NOT NULL" if walked else f"EXISTS ({one})", item.values)


def among(column: str, values: Sequence[Any] | None) -> Iterator[Sql]:
    """The condition that a column has one of some values; none where these are None, since any value will do."""
    if values is not None:
        yield Sql(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))


def _counted(connection: Connection, table: str, column: str, keys: Sequence[Any], most: int) -> int:
    (item,) = among(column, keys)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {item.text} LIMIT ?) AS found"
    ((number,),) = rows(connection, sql, [*item.values, most])
    return int(number)


def places(connection: Connection, sql: str, values: Sequence[Any]) -> list[Place]:
    """The rows of a statement that selects time and number of receipts."""
    return [(at, receipt) for at, receipt in rows(connection, sql, values)]


def rows(connection: Connection, sql: str, values: Sequence[Any]) -> list[Any]:
    """The rows of a statement with question marks for values, on either engine."""
    text = sql.replace("?", "%s") if connection.dialect.name == "postgresql" else sql
    found: list[Any] = run(connection, text, values).fetchall()
    return found
