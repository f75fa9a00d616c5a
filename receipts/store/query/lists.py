"""Lists: receipts that meet conditions, in order, and the plan by which they are read.

A list has three ways. By key: the receipts of a name. By index: the receipts whose configurations have the requested
axis values. By scan: every receipt, in the order of the list. `plan_list` is a pure function of counts, so that it
can be tested without a database. Receipts are read in pages of limited size, and conditions are tested on a page: so
a database never chooses between the order of the list and an index of one condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, null, or_, select

from receipts.store.entries import entries_of, meeting_leaves
from receipts.store.entry import Entry
from receipts.store.index import instant, values_of
from receipts.store.query import Condition
from receipts.store.query.terms import AxisTerm, Terms, naming, resolve_terms
from receipts.store.sql import engine_of
from receipts.store.tables import axes, placements, receipts

Order = Literal["newest", "oldest", "stored"]
Way = Literal["key", "index", "scan"]

AXES: Final = "axes"  # the lead that is all conditions on axes together; any other is the name of a column
# Receipts of a lead that are counted, at 1 µs each. A lead with more is common: the newest receipts are likely to have
# enough of it for one screen.
COUNTED: Final = 5000
# Of a lead on axes beside conditions on columns: with more than so large a share of all receipts, one index over both
# the order and the columns is read, which is quicker than the rows of every receipt of the lead.
SHARE: Final = 0.1
SCANNED: Final = 100_000  # receipts that a scan passes in 40 ms, or in half a second where it tests a pattern
FIRST: Final = 500  # receipts of the first page: a common condition is met by so many of the newest, in 2 ms
PAGE: Final = 20_000  # receipts of a later page: 20 ms


class ListPlan(NamedTuple):
    """How a list is read: at most `most` receipts, those of ``lead``, which is None in a scan.

    The receipts of a ``common`` lead are first looked for among the first receipts of all. `documents` are the
    conditions, as typed, that only documents answer.
    """

    way: Way
    lead: str | None
    most: int
    common: bool = False
    documents: tuple[str, ...] = ()

    @property
    def slow(self) -> bool:
        """Whether to warn whoever waits for it: a scan of very many receipts, or many documents."""
        return self.most > (COUNTED if self.documents else SCANNED) and (self.way == "scan" or bool(self.documents))

    def pages(self) -> Iterator[tuple[bool, int]]:
        """The pages to read: whether each is of the lead's receipts or of all, and how many receipts it has.

        The first receipts of a common lead have a page of their own: to find them costs a third of sorting them all.
        """
        if self.common:
            yield from ((False, FIRST), (False, 4 * FIRST), (True, FIRST))
        size = FIRST
        while self.lead is None:
            yield False, size
            size = min(4 * size, PAGE)
        yield True, self.most


def counted(total: int, *, beside_columns: bool) -> int:
    """How many receipts of a lead are counted."""
    return max(COUNTED, int(SHARE * total)) if beside_columns else COUNTED


def plan_list(
    counts: Mapping[str, int], total: int, documents: tuple[str, ...] = (), *, beside_columns: bool = False
) -> ListPlan:
    """The plan of a list. ``counts`` are receipts by lead, as far as `counted`; ``total`` is all receipts.

    ``beside_columns`` says that conditions on columns are tested, too.
    """
    lead, count = min(counts.items(), key=itemgetter(1), default=(None, 0))
    if lead is None or (lead == AXES and beside_columns and count >= counted(total, beside_columns=True)):
        return ListPlan("scan", None, total, documents=documents)
    common = count >= COUNTED
    return ListPlan("index" if lead == AXES else "key", lead, total if common else count, common, documents)


Progress = Callable[[int, int], None]
_ENTRIES: Final = 100  # rows of receipts that are read together


class Filters(NamedTuple):
    """What `find` looks for. Superseded and retracted receipts are left out unless `superseded` is set.

    ``after`` is a receipt that those of a page come behind: when it started, and its number. ``words`` are parts of
    names, of which a receipt has each (`receipts.store.query.terms.naming`).
    """

    conditions: tuple[Condition, ...] = ()
    superseded: bool = False
    order: Order = "newest"
    limit: int | None = None
    after: tuple[datetime, int] | None = None
    words: tuple[str, ...] = ()


class _Page(NamedTuple):
    """A limited number of receipts to test, with the terms on axes that they may not meet."""

    rows: Select[Any]
    axes: tuple[AxisTerm, ...]


def plan(connection: Connection, filters: Filters) -> ListPlan:
    """How a list will be read. Raises as `find` does."""
    terms = resolve_terms(connection, filters.conditions)
    return _plan(connection, terms, _leads(connection, terms))


def find(connection: Connection, filters: Filters, progress: Progress | None = None) -> Iterator[Entry]:
    """Receipts that meet every condition, in order. Documents are read only where a condition needs them.

    ``progress`` is called with how many receipts of how many a scan has looked at. Raises NotFound for a name that no
    leaf has, UsageError for a value that a column cannot have.
    """
    terms = resolve_terms(connection, filters.conditions)
    leads = _leads(connection, terms)
    planned = _plan(connection, terms, leads)
    if planned.most:
        pages = _pages(connection, terms, planned, leads, filters, progress)
        rows = _meeting(connection, pages, terms, filters)
        if terms.leaves:
            rows = meeting_leaves(connection, rows, terms.leaves)
        yield from islice(rows, filters.limit)


def _plan(connection: Connection, terms: Terms, leads: Mapping[str, Select[Any]]) -> ListPlan:
    total = connection.execute(select(func.coalesce(func.max(receipts.c.seq), 0))).scalar_one()
    beside = bool(terms.columns)
    counts = {
        name: connection.execute(select(func.count()).select_from(query.limit(most).subquery())).scalar_one()
        for name, query in leads.items()
        for most in [counted(total, beside_columns=beside and name == AXES)]
    }
    return plan_list(counts, total, tuple(str(item) for _, item in terms.leaves), beside_columns=beside)


def _leads(connection: Connection, terms: Terms) -> dict[str, Select[Any]]:
    """What an index answers of some terms: times and numbers of the receipts that each may be read by."""
    leads = {
        test.column: select(receipts.c.started, receipts.c.seq).where(test.clause(receipts))
        for test in terms.columns
        if test.is_name
    }
    required = [term for term in terms.axes if term.has]
    if required:
        query, among = select(placements.c.at, placements.c.receipt), engine_of(connection).among
        for at, term in enumerate(required):
            value, values = axes.alias(), sorted(term.values)
            # Of one value configurations come in the order of their numbers.
            having = value.c.value == values[0] if len(values) == 1 else among(value.c.value, values)
            query = query.join(value, value.c.configuration == placements.c.configuration).where(having)
            query = query.add_columns(value.c.configuration) if at == 0 else query
        leads[AXES] = query
    return leads


def _pages(
    connection: Connection,
    terms: Terms,
    planned: ListPlan,
    leads: Mapping[str, Select[Any]],
    filters: Filters,
    progress: Progress | None,
) -> Iterator[_Page]:
    """Receipts that may meet the terms, in order, in the pages of the plan."""
    columns = dict.fromkeys(["started", "seq", *(test.column for test in terms.columns)])
    rows = select(*(receipts.c[name] for name in columns)).where(*(naming(connection, word) for word in filters.words))
    every = rows.where(*(test.clause(receipts) for test in terms.columns if test.column == "started"))
    left = tuple(term for term in terms.axes if not (term.has and planned.lead == AXES))
    order, after, seen = filters.order, filters.after, 0
    for of_lead, size in planned.pages():
        ordered = _in_order(leads[planned.lead or ""] if of_lead else every, order, after)
        if of_lead and planned.lead == AXES and size < planned.most:
            ordered = _of_newest(connection, ordered, size, order)
        if of_lead:
            lead = ordered.limit(size).subquery("lead")
            yield _Page(rows.join_from(lead, receipts, receipts.c.seq == list(lead.c)[1]).limit(size), left)
        else:
            yield _Page(ordered.limit(size), terms.axes)
            seen += size
            if progress is not None:
                progress(min(seen, planned.most), planned.most)
        after = connection.execute(ordered.offset(size - 1).limit(1)).first() if size < planned.most else None
        if after is None:
            return


def _of_newest(connection: Connection, ordered: Select[Any], size: int, order: Order) -> Select[Any]:
    """A lead on axes, without receipts that so many others come before: to pass them by costs a third of sorting them.

    Configurations are numbered as they come in, so that the receipts of the last ones tell when many of them ran.
    """
    if order == "stored":
        return ordered
    at, _, configuration = ordered.selected_columns
    by, last = (configuration.desc(), func.min) if order == "newest" else (configuration, func.max)
    some = ordered.order_by(None).order_by(by).limit(size).subquery("some")
    bound = connection.execute(select(last(some.c.at))).scalar()
    if bound is None:
        return ordered
    return ordered.where(at >= bound if order == "newest" else at <= bound)


def _in_order(query: Select[Any], order: Order, after: Any) -> Select[Any]:
    """A query of times and numbers in the order of a list, behind one of its rows."""
    at, number = list(query.selected_columns)[:2]
    if after is not None and order == "stored":
        query = query.where(number > after[1])
    elif after is not None:
        last = instant(after[0]) if at.table is placements and isinstance(after[0], datetime) else after[0]
        # The first condition follows from the second, and is one that an index answers.
        query = query.where(at <= last if order == "newest" else at >= last)
        behind = (at < last, number < after[1]) if order == "newest" else (at > last, number > after[1])
        query = query.where(or_(*behind))
    return query.order_by(*_by(order, at, number))


def _by(order: Order, at: ColumnElement[Any], number: ColumnElement[Any]) -> Sequence[ColumnElement[Any]]:
    """What a list is ordered by."""
    by = {"newest": (at.desc(), number.desc()), "oldest": (at, number), "stored": (number,)}
    return by[order]


def _meeting(connection: Connection, pages: Iterable[_Page], terms: Terms, filters: Filters) -> Iterator[Entry]:
    """The receipts of pages that meet every term but those on leaves, in order."""
    known: dict[int | None, bool] = {None: False}  # a receipt that the index does not hold
    patterns = [test for test in terms.columns if test.is_pattern]
    for page in pages:
        window = page.rows.subquery("page")
        configuration = placements.c.configuration if page.axes else null()
        query = select(window.c.seq, configuration, *(window.c[test.column] for test in patterns))
        if page.axes:
            query = query.outerjoin_from(window, placements, placements.c.receipt == window.c.seq)
        query = query.where(*(test.clause(window) for test in terms.columns))
        query = query.order_by(*_by(filters.order, window.c.started, window.c.seq))
        with connection.execute(query, execution_options={"yield_per": FIRST}) as rows:
            for part in rows.partitions():
                met = [
                    (number, configuration)
                    for number, configuration, *values in part
                    if all(test.meets(value) for test, value in zip(patterns, values, strict=True))
                ]
                numbers = _meeting_axes(connection, met, page.axes, known)
                for start in range(0, len(numbers), _ENTRIES):
                    some = numbers[start : start + _ENTRIES]
                    entries = entries_of(connection, some)
                    yield from (entries[number] for number in some if filters.superseded or entries[number].stands)


def _meeting_axes(
    connection: Connection,
    receipts: Sequence[tuple[int, int | None]],
    terms: tuple[AxisTerm, ...],
    known: dict[int | None, bool],
) -> list[int]:
    """Those of some receipts whose configurations meet every term; both are given by their numbers.

    Each configuration is read once a list: ``known`` says of those that were whether they meet the terms.
    """
    new = {configuration for _, configuration in receipts} - known.keys() if terms else ()
    for number, values in values_of(connection, sorted(filter(None, new))).items():
        known[number] = all(term.has != values.isdisjoint(term.values) for term in terms)
    return [number for number, configuration in receipts if not terms or known.get(configuration, False)]
