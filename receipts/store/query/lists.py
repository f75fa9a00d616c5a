"""Lists: receipts that meet conditions, in order, read as `plan_list` says.

A statement asks one index for one thing, so that no planner has a choice to get wrong; what else is asked is tested on
the rows. Only where all that is asked for is common one statement asks for all of it: half a second at a million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from receipts.store.entries import Entry, entries_of
from receipts.store.query import leads
from receipts.store.query.conditions import Condition, condition, meets
from receipts.store.query.documents import meeting_leaves
from receipts.store.query.leads import PAGE, Place
from receipts.store.query.plan import ListPlan, Order, plan_list
from receipts.store.query.terms import Terms, resolve
from receipts.store.sql import engine_of
from receipts.store.tables import configurations, placements, receipts
from receipts.store.write.index import unpacked
from receipts.store.write.listing import OF_FACET, instant

__all__ = ["Condition", "Filters", "ListPlan", "Order", "Progress", "condition", "find", "plan"]

Progress = Callable[[int, int], None]


class Filters(NamedTuple):
    """What `find` looks for. Superseded and retracted receipts are left out unless `superseded` is set."""

    conditions: tuple[Condition, ...] = ()
    superseded: bool = False
    order: Order = "newest"
    limit: int | None = None


def plan(connection: Connection, filters: Filters) -> ListPlan:
    """How a list will be read. Raises as `find`."""
    return _plan(connection, filters, resolve(connection, filters.conditions))


def find(connection: Connection, filters: Filters, progress: Progress | None = None) -> Iterator[Entry]:
    """Receipts that meet every condition, in order. Documents are read only where a condition needs them.

    ``progress`` is called with how many receipts of how many a scan has looked at. Raises NotFound for a name that no
    leaf has, UsageError for a value that a column cannot have.
    """
    terms = resolve(connection, filters.conditions)
    planned = _plan(connection, filters, terms)
    if planned.empty:
        return
    testing = _Testing(connection, terms, filters)
    pages = _pages(connection, filters, terms, planned, testing, progress)
    yield from islice((row for page in pages for row in testing.meeting(page)), filters.limit)


def _plan(connection: Connection, filters: Filters, terms: Terms) -> ListPlan:
    total = connection.execute(select(func.coalesce(func.max(receipts.c.seq), 0))).scalar_one()
    documents = tuple(str(item) for _, item in terms.leaves)
    return plan_list(leads.counts(connection, terms, total), total, filters.limit, filters.order, documents)


def _pages(
    connection: Connection,
    filters: Filters,
    terms: Terms,
    planned: ListPlan,
    testing: _Testing,
    progress: Progress | None,
) -> Iterator[Sequence[Place]]:
    """Receipts that may meet the conditions, in order: by the plan, some at a time.

    What many have is looked for among what comes first, until some of that has none of it.
    """
    after, walked = None, 0
    if planned.lead is None or planned.walk:
        for page in _walk(connection, filters, terms):
            met = testing.met
            yield page
            after, walked = page[-1], walked + len(page)
            if planned.lead is not None and (testing.met == met or walked >= planned.most_walked):
                break
            if progress is not None:
                progress(walked, planned.most)
        else:
            return
    yield from leads.pages(connection, terms, planned, filters.order, after, filters.limit)


def _walk(connection: Connection, filters: Filters, terms: Terms) -> Iterator[Sequence[Place]]:
    """Every receipt within the bounds on time, in order."""
    after: Place | None = None
    for most in leads.page_sizes(filters.limit):
        query = leads.ordered(select(receipts.c.started, receipts.c.seq), terms, filters.order, after)
        rows = connection.execute(query.limit(most)).all()
        page = [(instant(started), seq) for started, seq in rows]
        if page:
            yield page
            after = page[-1]
        if len(page) < most:
            return


class _Testing:
    """Tests receipts for every condition; what it learns of configurations holds for one list."""

    def __init__(self, connection: Connection, terms: Terms, filters: Filters) -> None:
        self._connection = connection
        self._terms = terms
        self._superseded = filters.superseded
        self._order = filters.order
        # What a facet says of a column needs no other test.
        answered = OF_FACET if "facet" in terms.placed else ()
        self._columns = [test for test in terms.columns if test.column not in answered]
        self._configurations: dict[int, bool] = {}
        self.met = 0

    def __repr__(self) -> str:
        return f"_Testing({self._terms!r})"

    def meeting(self, page: Sequence[Place]) -> Iterator[Entry]:
        """Those of some receipts that meet every condition, in the order of the page."""
        for start in range(0, len(page), PAGE):
            rows = self._standing(self._in_columns(self._indexed(page[start : start + PAGE])))
            for row in meeting_leaves(self._connection, rows, self._terms.leaves) if self._terms.leaves else rows:
                self.met += 1
                yield row

    def _indexed(self, page: Sequence[Place]) -> list[int]:
        """Numbers of receipts whose placement, commit and configuration meet their terms."""
        terms, numbers = self._terms, [number for _, number in page]
        if not terms.placed and not terms.axes and not terms.commits:
            return numbers
        query = select(*(placements.c[name] for name in ("receipt", "configuration", "revision", *terms.placed)))
        kept = {
            row[0]: row[1]
            for row in self._among(query, placements.c.receipt, numbers)
            if all(value in wanted for value, wanted in zip(row[3:], terms.placed.values(), strict=True))
            and all(meets(row[2], item) for item in terms.commits)
        }
        if terms.axes:
            self._learn(set(kept.values()) - self._configurations.keys())
            kept = {receipt: ran for receipt, ran in kept.items() if self._configurations.get(ran)}
        return [number for number in numbers if number in kept]

    def _learn(self, new: set[int]) -> None:
        """Whether configurations meet the terms on axes."""
        query = select(configurations.c.seq, configurations.c.members)
        for number, members in self._among(query, configurations.c.seq, sorted(new)):
            values = frozenset(unpacked(bytes(members)))
            self._configurations[number] = all(term.has != values.isdisjoint(term.values) for term in self._terms.axes)

    def _in_columns(self, numbers: Sequence[int]) -> list[int]:
        if not self._columns:
            return list(numbers)
        query = select(receipts.c.seq, *(receipts.c[test.column].label(None) for test in self._columns))
        kept = {
            number
            for number, *values in self._among(query, receipts.c.seq, numbers)
            if all(test.meets(value) for test, value in zip(self._columns, values, strict=True))
        }
        return [number for number in numbers if number in kept]

    def _standing(self, numbers: Sequence[int]) -> list[Entry]:
        rows = entries_of(self._connection, numbers)
        return [rows[number] for number in numbers if self._superseded or rows[number].stands]

    def _among(self, query: Any, column: Any, numbers: Sequence[int]) -> Sequence[Any]:
        if not numbers:
            return []
        return self._connection.execute(query.where(engine_of(self._connection).among(column, numbers))).all()
