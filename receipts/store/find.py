"""Finding receipts by any axis: lists of the store, promoted columns, the axis index, or reading documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, UnaryExpression, any_, bindparam, func, select
from sqlalchemy.sql.operators import custom_op

from receipts.axes.effective import OPEN_MAPS, UNSET, effective, is_complete
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.catalogue import find as find_leaf
from receipts.receipt.leaf import Role
from receipts.store import figures
from receipts.store.arrays import Array
from receipts.store.clauses import Clause, column_of, likeness, path_of, said
from receipts.store.conditions import NOT_STATED, Condition, condition, meets, number
from receipts.store.front import FEW, configurations, front, page_of_configurations
from receipts.store.listed import instant
from receipts.store.ordered import COUNTED, Lists, Order, Place, counted, counted_axis, page, page_of_axes
from receipts.store.packing import unpack
from receipts.store.rows import COLUMNS, PATHS, Entry, entries, entry, standing
from receipts.store.sought import Sought
from receipts.store.tables import documents, receipts

__all__ = ["Condition", "Filters", "Order", "condition", "find"]

_CHUNK: Final = 100
_PLAIN: Final = re.compile(r"[\w .:@-]{3,}", re.ASCII)  # as it is in any JSON that does not escape it
_NEAR: Final = 3000  # receipts that are asked in order before all that have a value are listed
# The same, where they are asked for columns alone, or for a figure first, which is a tenth of looking a value up; and
# the most receipts of a figure that are sorted.
_FAR: Final = 30_000
_FEW: Final = 2000  # receipts that are read and sorted, whatever else is asked of them
_PAGE: Final = 2000  # receipts of a list that are looked at together
_NAMED: Final = 50_000  # receipts of a name's beginning that are asked for the rest


class Filters(NamedTuple):
    """What `find` looks for. Superseded and retracted receipts are left out unless `superseded` is set."""

    conditions: tuple[Condition, ...] = ()
    superseded: bool = False
    order: Order = "newest"
    limit: int | None = None


class _Asked(NamedTuple):
    """Conditions in the words of each index.

    ``clauses`` say them in SQL, each with its column where it is on one. ``rest`` are those that SQL does not say, or
    not all of, with the columns or leaves that they are on. ``lists`` is what the lists of the store hold of them; None
    where they do not hold every receipt; ``beyond`` where they do not hold every condition. ``few`` finds few receipts,
    most likely: by a name, or its beginning. ``figures`` are bounds on them, in the lanes and outcomes of ``ended``.
    """

    clauses: list[tuple[str | None, Clause]]
    rest: list[tuple[str, Condition]]
    lists: Lists | None
    few: list[Clause]
    figures: Mapping[str, figures.Bounds]
    ended: Sequence[figures.Ended] = ()
    beyond: bool = False


def find(connection: Connection, filters: Filters) -> Iterator[Entry]:
    """Receipts that meet every condition, in order. Documents are read only where a condition needs them.

    Raises NotFound for a name that no leaf has, UsageError for a value that a column cannot have.
    """
    asked = _asked(connection, filters)
    if asked.lists is not None and asked.lists.empty:
        return
    found = _found(connection, filters, asked)
    if asked.rest:
        found = _narrowed(connection, found, asked.rest)
    yield from islice(found, filters.limit)


def read_for(connection: Connection, filters: Filters) -> list[str]:
    """The conditions for which `find` may read documents of many receipts, as they were typed. Raises as `find`."""
    asked = _asked(connection, filters)
    texts = [str(item) for name, item in asked.rest if name not in COLUMNS]
    if not texts or (asked.lists is not None and asked.lists.empty):
        return []
    plain = [clause for _, clause in asked.clauses]
    query = select(receipts.c.seq).where(*plain, *_standing(filters)).limit(_FEW + 1)
    return texts if len(connection.execute(query).all()) > _FEW else []


def _found(connection: Connection, filters: Filters, asked: _Asked) -> Iterator[Entry]:
    """Receipts that meet the clauses, in order; of more than the limit, as long as somebody asks for them."""
    if asked.few:
        query = select(receipts.c.seq).where(*asked.few).limit(_FEW + 1)
        numbers = list(connection.execute(query).scalars())
        if len(numbers) <= _FEW:
            return _sorted(connection, filters, asked, _numbered(connection, numbers))
    if asked.figures and asked.ended and (figured := _figured(connection, filters, asked)) is not None:
        return figured
    lists = asked.lists
    if lists is None:
        return _walked(connection, filters, asked)
    in_order = filters.limit is not None and filters.order != "stored"
    if lists.axes:
        of_axes = min(counted_axis(connection, values, FEW) for values in lists.axes)
        # Receipts of a text or a facet, up to which each is sooner asked for its axes: a text's are read in order.
        enough = of_axes if of_axes < FEW else COUNTED if lists.column else _NEAR
        if (of_axes < FEW or in_order) and not (lists.keyed and counted(connection, lists, enough) < enough):
            return _by_axes(connection, filters, asked, lists, common=of_axes >= FEW)
    if lists.keyed and ((in_order and (lists.column or not asked.beyond)) or counted(connection, lists) < COUNTED):
        if (named := _named(connection, filters, asked)) is not None:
            return named
        return _paged(connection, filters, asked, partial(page, connection, lists, filters.order))
    return _walked(connection, filters, asked)


def _figured(connection: Connection, filters: Filters, asked: _Asked) -> Iterator[Entry] | None:
    """By a figure that not many receipts have within its bounds; None where all have more."""
    count, column = figures.rarest(connection, asked.ended, asked.figures, _FAR + 1)
    if count > _FAR:
        return None
    if count > _FEW and (near := _nearest(connection, filters, asked, _FAR)) is not None:
        return iter(near)
    found = figures.numbers(connection, asked.ended, column, asked.figures[column], count)
    return _sorted(connection, filters, asked, _numbered(connection, found))


def _by_axes(connection: Connection, filters: Filters, asked: _Asked, lists: Lists, *, common: bool) -> Iterator[Entry]:
    """By values of axes. What many receipts have, the newest have, too, in most cases: they are asked first."""
    plain = all(column is not None for column, _ in asked.clauses)
    if common and (found := _nearest(connection, filters, asked, _FAR if plain else _NEAR)) is not None:
        return iter(found)
    if common and (named := _named(connection, filters, asked)) is not None:
        return named
    order = filters.order
    numbers = configurations(connection, lists, order, FEW)
    if len(numbers) < FEW:
        return _paged(connection, filters, asked, partial(page_of_configurations, connection, lists, order, numbers))

    def page_after(after: Place | None, most: int) -> list[Place]:
        found = front(connection, lists, order, numbers, most) if after is None else None
        return page_of_axes(connection, lists, order, after, most) if found is None else found

    # All that are on the lists are sorted for each page: what the first does not answer has few of them.
    return _paged(connection, filters, asked, page_after, further=COUNTED)


def _nearest(connection: Connection, filters: Filters, asked: _Asked, most: int = _NEAR) -> list[Entry] | None:
    """The first receipts that meet every condition, where the first so many of all hold enough of them; else None.

    The first of those that started when the conditions say, if they do.
    """
    if filters.limit is None or filters.order == "stored" or any(name not in COLUMNS for name, _ in asked.rest):
        return None
    begun = [clause for column, clause in asked.clauses if column == "started"]
    last = select(receipts.c.started).where(*begun).order_by(_ORDER[filters.order][0]).limit(1).offset(most)
    bound = connection.execute(last).scalar()
    if bound is None:
        return None
    near = receipts.c.started >= bound if filters.order == "newest" else receipts.c.started <= bound
    query = entries().where(near, *begun, *_unsought(connection, asked), *_standing(filters))
    if not asked.rest:
        query = query.limit(filters.limit)
    rows = map(entry, connection.execute(query.order_by(*_ORDER[filters.order])))
    found = list(islice(_narrowed(connection, rows, asked.rest), filters.limit))
    return found if len(found) == filters.limit else None


def _named(connection: Connection, filters: Filters, asked: _Asked) -> Iterator[Entry] | None:
    """Receipts that meet every clause, in order, where these begin with a name of not too many; else None."""
    named = select(receipts.c.seq).where(*asked.few)
    counted_ones = select(func.count()).select_from(named.limit(_NAMED + 1).subquery())
    if not asked.few or connection.execute(counted_ones).scalar_one() > _NAMED:
        return None
    return _sorted(connection, filters, asked, *asked.few)


def _sorted(connection: Connection, filters: Filters, asked: _Asked, *found: Clause) -> Iterator[Entry]:
    """Receipts that meet every clause, in order, of those that ``found`` says, which are not many."""
    query = select(receipts.c.seq, receipts.c.started).where(*found, *_unsought(connection, asked), *_standing(filters))
    # Not in SQL's order, for which an engine may walk through all receipts to find the first few.
    rows = connection.execute(query).all()
    places = [(seq, seq) if filters.order == "stored" else (instant(at), seq) for seq, at in rows]
    places.sort(reverse=filters.order == "newest")
    first = min(filters.limit or _PAGE, _PAGE) if not asked.rest else _PAGE
    yield from _those(connection, filters, asked, places[:first])
    yield from _those(connection, filters, asked, places[first:])


def _those(connection: Connection, filters: Filters, asked: _Asked, places: Sequence[Place]) -> Iterator[Entry]:
    """Those of some receipts that meet the clauses, in the order of these."""
    for start in range(0, len(places), _PAGE):
        yield from _checked(connection, filters, asked, [number for _, number in places[start : start + _PAGE]])


def _numbered(connection: Connection, numbers: Sequence[int]) -> Clause:
    """That a receipt has one of these numbers: one parameter, so that a statement is the same however many they are."""
    if connection.dialect.name == "postgresql":
        return receipts.c.seq == any_(bindparam("numbers", numbers, type_=Array(receipts.c.seq.type)))
    each = func.json_each(json.dumps(numbers)).table_valued("value")
    return receipts.c.seq.in_(select(each.c.value))


def _paged(
    connection: Connection,
    filters: Filters,
    asked: _Asked,
    page_after: Callable[[Place | None, int], list[Place]],
    *,
    further: int = _PAGE,
) -> Iterator[Entry]:
    """Receipts of a list that meet the clauses, in its order; ``further`` are the most of a page after the first."""
    after, most = None, _PAGE if filters.limit is None else min(2 * filters.limit, _PAGE)
    while places := page_after(after, most):
        yield from _those(connection, filters, asked, places)
        if len(places) < most:
            return
        after, most = places[-1], further if further > _PAGE else min(4 * most, _PAGE)


def _checked(connection: Connection, filters: Filters, asked: _Asked, numbers: Sequence[int]) -> list[Entry]:
    """Those of some receipts that meet the clauses, in order."""
    query = entries().where(_numbered(connection, numbers), *_unsought(connection, asked), *_standing(filters))
    return [entry(row) for row in connection.execute(query.order_by(*_ORDER[filters.order]))]


def _walked(connection: Connection, filters: Filters, asked: _Asked) -> Iterator[Entry]:
    """Every receipt that meets the clauses, in order."""
    plain = [clause for _, clause in asked.clauses]
    if filters.limit is not None and not asked.rest:
        # SQLite would look a lane up and sort what it has, be it a million receipts, where lists say that it is many.
        yield from _in(connection, filters, plain if asked.lists is None else _unsought(connection, asked))
        return
    if (found := _nearest(connection, filters, asked)) is not None:
        yield from found
        return
    if (named := _named(connection, filters, asked)) is not None:
        yield from named
        return
    query = entries().where(*plain, *_standing(filters)).order_by(*_ORDER[filters.order])
    with connection.execute(query.execution_options(yield_per=1000)) as rows:
        yield from map(entry, rows)


def _in(connection: Connection, filters: Filters, clauses: Sequence[Clause]) -> Iterator[Entry]:
    """The first receipts that meet the clauses: their numbers alone are sorted, and then those are read."""
    order = _ORDER[filters.order]
    numbers = select(receipts.c.seq).where(*clauses, *_standing(filters)).order_by(*order).limit(filters.limit)
    query = entries().where(receipts.c.seq.in_(numbers)).order_by(*order)
    return map(entry, connection.execute(query))


def _standing(filters: Filters) -> list[Clause]:
    return [] if filters.superseded else [standing()]


def _unsought(connection: Connection, asked: _Asked) -> list[Clause]:
    """The clauses, so that SQLite asks them of each receipt of a list and looks no lane up beside it."""
    if connection.dialect.name != "sqlite":
        return [clause for _, clause in asked.clauses]
    # SQLite looks nothing up by an expression, and `+` changes nothing.
    return [_plus(clause) if column is not None else clause for column, clause in asked.clauses]


def _plus(clause: Clause) -> Clause:
    return UnaryExpression(clause.self_group(), operator=custom_op("+"), type_=clause.type)


def _asked(connection: Connection, filters: Filters) -> _Asked:
    bounded = figures.bounds((column_of(item.name), item) for item in filters.conditions)
    asked = _Asked([], [], None, [], bounded)
    sought = Sought(connection)
    for item in filters.conditions:
        column = column_of(item.name)
        clause = said(column, item) if column else None
        path = (PATHS[column] if column in _NUMBERS else "") if column else path_of(item.name)
        found = sought.ask(column, path, item)
        if clause is not None:
            asked.clauses.append((column, clause))
            asked.few.extend([clause] if column in _NAMES and item.operator == "=" and item.value != NOT_STATED else [])
        elif found is not None:
            asked.clauses.append((None, found))
        elif column is not None and (beginning := likeness(column, item)) is not None:
            asked.clauses.append((column, beginning))
            asked.few.extend([beginning] if column in _NAMES and item.operator == "=" else [])
            asked.rest.append((column, item))
        else:
            asked.rest.append((column or path, item))
    ended = sought.ended() if asked.figures else None
    return asked._replace(lists=sought.lists, beyond=sought.beyond, ended=ended or ())


# Columns that have an index of their own, and few receipts a value, most likely.
_NAMES: Final = ("id", "launch", "label", "supersedes", "witness_for")
# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")
_ORDER: Final[Mapping[str, tuple[Any, ...]]] = {
    "newest": (receipts.c.started.desc(), receipts.c.seq.desc()),
    "oldest": (receipts.c.started, receipts.c.seq),
    "stored": (receipts.c.seq,),
}


def _narrowed(
    connection: Connection, rows: Iterable[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    """Rows that meet conditions which SQL cannot answer; documents are fetched a hundred at a time."""
    on_columns = [(name, item) for name, item in conditions if name in COLUMNS]
    on_leaves = [(name, item) for name, item in conditions if name not in COLUMNS]
    chunk: list[Entry] = []
    for row in rows:
        if all(meets(getattr(row, name), item) for name, item in on_columns):
            if not on_leaves:
                yield row
                continue
            chunk.append(row)
        if len(chunk) == _CHUNK:
            yield from _read(connection, chunk, on_leaves)
            chunk = []
    yield from _read(connection, chunk, on_leaves)


def _read(
    connection: Connection, chunk: Sequence[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    if not chunk:
        return
    query = select(documents).where(documents.c.receipt.in_([row.seq for row in chunk]))
    stored = {row.receipt: row for row in connection.execute(query)}
    needles = [needle for path, item in conditions for needle in _needles(path, item)]
    for row in chunk:
        raw = unpack(stored[row.seq].codec, stored[row.seq].body, row.id[:12])
        if not all(needle in raw for needle in needles) and rb"\u" not in raw:
            continue
        parsed = parse(Document(raw, row.id[:12]))
        if all(meets(value_of(parsed, path), item) for path, item in conditions):
            yield row


def _needles(path: str, item: Condition) -> Iterator[bytes]:
    """What a document that meets a condition has in its bytes, unless it escapes what need not be escaped.

    To look for it is a twentieth of the work of reading the document.
    """
    leaf = find_leaf(path)
    if leaf is None or leaf.role in (Role.AXIS, Role.DERIVED) or item.operator == "!=" or item.value == NOT_STATED:
        return
    yield b'"%s"' % path.rpartition(".")[2].encode()
    if item.operator == "=" and _PLAIN.fullmatch(item.value) and number(item.value) is None:
        yield item.value.encode()


def value_of(parsed: Parsed, path: str) -> Any:
    """The value at a leaf: what was effective where it is an axis, else what is stated; None where it is not stated."""
    value = effective(parsed).get(path)
    if value == UNSET and (name := path.partition(".")[0]) in OPEN_MAPS and is_complete(parsed, name):
        return None  # it says what its absence says
    if value is not None:
        return value
    stated = parsed.stated
    for name in (path, f"{path}.value", f"{path}.version"):
        if name in stated:
            return stated[name]
    return None
