"""What an index is asked first for a list: how many rows it has, and the receipts of them in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, literal, or_, select, union_all

from receipts.store.query.columns import begins, prefix
from receipts.store.query.conditions import Condition, is_pattern
from receipts.store.query.plan import COUNTED, Kind, Lead, ListPlan, Order
from receipts.store.query.terms import Bounds, Terms
from receipts.store.sql import engine_of
from receipts.store.tables import axes, configurations, placements, receipts
from receipts.store.write.listing import instant

Place = tuple[int, int]  # microseconds since 1970 when a receipt started, and its number: what lists are ordered by
_PLACES: Final = select(placements.c.at, placements.c.receipt)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PAGE: Final = 2000  # receipts whose rows are tested together: 20 ms, and some MB


def moment(at: int) -> datetime:
    """The moment of a place."""
    return _EPOCH + timedelta(microseconds=at)


def counts(connection: Connection, terms: Terms, total: int) -> dict[Lead, int]:
    """Receipts of each lead, none counted beyond `COUNTED`; those of an axis are estimated from its configurations."""
    counted: dict[Lead, int] = {}
    for column in terms.placed:
        counted[Lead("column", column)] = _count(
            connection, _PLACES.where(_having(connection, terms, "column", column))
        )
    each = 1
    if terms.axes:
        known = connection.execute(select(func.coalesce(func.max(configurations.c.seq), 1))).scalar_one()
        each = max(1, total // known)
    for term in terms.axes:
        if term.has:
            query = select(axes.c.configuration).where(engine_of(connection).among(axes.c.value, sorted(term.values)))
            counted[Lead("axis", term.axis)] = min(COUNTED, each * _count(connection, query))
    for column, within in terms.figures.items():
        counted[Lead("figure", column)] = _count(connection, _of_figure(terms, column, within))
    for column, item in terms.names.items():
        counted[Lead("name", column)] = _count(connection, select(receipts.c.seq).where(_is_named(column, item)))
    return counted


def _count(connection: Connection, query: Select[Any] | None) -> int:
    if query is None:
        return 0
    rows: int = connection.execute(select(func.count()).select_from(query.limit(COUNTED).subquery())).scalar_one()
    return rows


def pages(
    connection: Connection, terms: Terms, plan: ListPlan, order: Order, after: Place | None, limit: int | None
) -> Iterator[Sequence[Place]]:
    """Receipts of a plan's lead behind a place, in order, some at a time; some of them may not meet other terms."""
    assert plan.lead is not None
    kind, name = plan.lead
    if kind in ("name", "figure"):
        yield from _chunks(in_order(_numbered(connection, terms, kind, name), order, after), limit)
        return
    if plan.most < COUNTED:
        rows = connection.execute(_PLACES.where(_having(connection, terms, kind, name)))
        yield from _chunks(in_order([(at, number) for at, number in rows], order, after), limit)
        return
    every = _PLACES.where(*_every(connection, terms))
    if limit is not None:
        query = ordered(every, terms, order, after).limit(2 * limit)
        first = [(at, number) for at, number in connection.execute(query)]
        yield first
        if len(first) < 2 * limit:
            return
        after = first[-1]
    query = ordered(every, terms, order, after)
    yield from _chunks([(at, number) for at, number in connection.execute(query)], None)


def in_order(places: list[Place], order: Order, after: Place | None) -> list[Place]:
    """Places behind one, in the order of a list."""
    if order == "stored":
        return sorted((item for item in places if after is None or item[1] > after[1]), key=lambda item: item[1])
    newest = order == "newest"
    return sorted(
        (item for item in places if after is None or (item < after if newest else item > after)), reverse=newest
    )


def _chunks(places: Sequence[Place], limit: int | None) -> Iterator[Sequence[Place]]:
    start, sizes = 0, page_sizes(limit)
    while start < len(places):
        end = start + next(sizes)
        yield places[start:end]
        start = end


def page_sizes(limit: int | None) -> Iterator[int]:
    """How many receipts are tested together: few where the limit may soon be met, and larger pages as it goes on."""
    most = PAGE if limit is None else min(max(2 * limit, 10), PAGE)
    while True:
        yield most
        most = min(4 * most, PAGE)


def _numbered(connection: Connection, terms: Terms, kind: Kind, name: str) -> list[Place]:
    """Places of the receipts of a name, or within the bounds of a figure."""
    query = select(receipts.c.started, receipts.c.seq)
    if kind == "name":
        query = query.where(_is_named(name, terms.names[name]))
    else:
        wanted = _of_figure(terms, name, terms.figures[name])
        numbers = list(connection.execute(wanted).scalars()) if wanted is not None else []
        query = query.where(engine_of(connection).among(receipts.c.seq, numbers))
    return [(instant(started), seq) for started, seq in connection.execute(query)]


def _is_named(column: str, item: Condition) -> ColumnElement[bool]:
    target = receipts.c[column]
    if not is_pattern(item):
        equal: ColumnElement[bool] = target == item.value
        return equal
    return begins(target, prefix(item.value))


def _of_figure(terms: Terms, column: str, within: Bounds) -> Select[Any] | None:
    """Numbers of the receipts within a figure's bounds, of each lane and outcome; None where there are none."""
    if not terms.ended:
        return None
    target = receipts.c[column]
    each = [
        # In the order of the index: a server that expects many would read the table, even if there are none.
        select(receipts.c.seq)
        .where(
            receipts.c.lane == literal(lane),
            receipts.c.outcome == literal(outcome),
            target >= literal(within.least),
            target <= literal(within.most),
        )
        .order_by(target)
        .limit(COUNTED)
        .subquery()
        for lane, outcome in terms.ended
    ]
    return select(union_all(*(select(one.c.seq) for one in each)).subquery().c.seq)


def _having(connection: Connection, terms: Terms, kind: Kind, name: str) -> ColumnElement[bool]:
    """Whether a placement has one of a column's or an axis' values."""
    among = engine_of(connection).among
    if kind == "column":
        return among(placements.c[name], sorted(terms.placed[name]))
    (term,) = (item for item in terms.axes if item.has and item.axis == name)
    ran = select(axes.c.configuration).where(among(axes.c.value, sorted(term.values)))
    return placements.c.configuration.in_(ran)


def _every(connection: Connection, terms: Terms) -> Iterator[ColumnElement[bool]]:
    """Everything that `placements` is looked up by."""
    for column in terms.placed:
        yield _having(connection, terms, "column", column)
    for term in terms.axes:
        if term.has:
            yield _having(connection, terms, "axis", term.axis)


def ordered(query: Select[Any], terms: Terms, order: Order, after: Place | None) -> Select[Any]:
    """A query of times and numbers in the order of a list, within the bounds on time, behind a place."""
    at, number = query.selected_columns
    typed = moment if at.table is receipts else int
    newest = order == "newest"
    if terms.time.least > -inf:
        query = query.where(at >= typed(int(terms.time.least)))
    if terms.time.most < inf:
        query = query.where(at <= typed(int(terms.time.most)))
    if after is not None and order == "stored":
        query = query.where(number > after[1])
    elif after is not None:
        last = typed(after[0])
        # The first condition says again what the second does, in words that an index answers.
        query = query.where(at <= last if newest else at >= last)
        query = query.where(or_(at < last, number < after[1]) if newest else or_(at > last, number > after[1]))
    by = {"newest": (at.desc(), number.desc()), "oldest": (at, number), "stored": (number,)}
    return query.order_by(*by[order])
