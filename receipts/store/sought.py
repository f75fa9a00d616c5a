"""What a list is asked for, in the words of the store's lists: facets, texts, times, and values of axes."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, select

from receipts.store import indexed, ordered
from receipts.store.clauses import Clause, beginning, typed, value_meets
from receipts.store.conditions import NOT_STATED, Condition, is_pattern, meets, number
from receipts.store.indexed import Wanted
from receipts.store.listed import COMMIT, OF_FACET, instant
from receipts.store.near import holds_all
from receipts.store.ordered import Lists
from receipts.store.rows import MOST_INDEXED, cut
from receipts.store.tables import placements, receipts

# Columns of `placements` that lists are made by, the one with the fewest receipts a text first.
_TEXTS: Final = ("revision", "context", "host")
# Texts of one column that are read to find those that meet a condition.
_MOST_TEXTS: Final = 2000


class Sought:
    """Conditions, asked one after another; where the lists do not hold every receipt, they say nothing of any."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._facets: list[tuple[str, Condition]] = []
        self._texts: dict[str, tuple[str, ...]] = {}
        self._axes: dict[str, frozenset[int]] = {}
        self._unwanted: dict[str, frozenset[int]] = {}
        self._times: list[tuple[int | None, int | None]] = []
        self.beyond = False  # whether some condition is none of a list

    def __repr__(self) -> str:
        return f"Sought({self._connection!r})"

    def ask(self, column: str | None, path: str, item: Condition) -> Clause | None:
        """Take a condition in; gives it in SQL, asked of each receipt, where an index knows more than the column."""
        if column in OF_FACET:
            self._facets.append((column, item))
        elif column in _TEXTS:
            self._text(column, item)
        elif column == "started" and not is_pattern(item) and item.value != NOT_STATED:
            self._time(item)
        elif path == COMMIT:
            return self._revision(item) if self._whole else None
        elif path and (axis := indexed.axis(path)) is not None and self._whole:
            wanted = indexed.wanted(self._connection, axis, path, item)
            if wanted is not None:
                self._value(axis, wanted)
            self.beyond |= wanted is None or not wanted.has
            return wanted.clause if wanted is not None else None
        else:
            self.beyond = True
        return None

    @property
    def lists(self) -> Lists | None:
        """The lists that every receipt is on that meets all; None where they do not hold every receipt."""
        if not (self._facets or self._texts or self._axes) or not self._whole:
            return None
        column = next((name for name in _TEXTS if name in self._texts), "")
        met, lanes = self._met() if self._facets else (None, None)
        return Lists(
            column,
            self._texts.get(column, ()),
            met,
            tuple(tuple(sorted(values - self._unwanted.get(axis, frozenset()))) for axis, values in self._axes.items()),
            lanes,
            max((first for first, _ in self._times if first is not None), default=None),
            min((last for _, last in self._times if last is not None), default=None),
        )

    @cached_property
    def _whole(self) -> bool:
        return holds_all(self._connection)

    def ended(self) -> list[tuple[str, str]] | None:
        """The lanes and outcomes of receipts that may meet all; None where the lists do not hold every receipt."""
        if not self._whole:
            return None
        return sorted({(values["lane"], values["outcome"]) for values in self._meeting_facets.values()})

    def _met(self) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
        """Digests of the facets that meet every condition on their columns, and their lanes where these are not all."""
        lanes = {values["lane"] for values in self._meeting_facets.values()}
        some = len(lanes) < len({values["lane"] for values in self._every_facet.values()})
        return tuple(self._meeting_facets), tuple(sorted(lanes)) if some else None

    @cached_property
    def _meeting_facets(self) -> dict[int, dict[str, Any]]:
        return {
            digest: values
            for digest, values in self._every_facet.items()
            if all(value_meets(column, values[column], item) for column, item in self._facets)
        }

    @cached_property
    def _every_facet(self) -> dict[int, dict[str, Any]]:
        found = ordered.facets(self._connection)
        return {digest: dict(zip(OF_FACET, json.loads(text), strict=True)) for digest, text in found}

    def _value(self, axis: str, wanted: Wanted) -> None:
        """One of these values and one of those asked for before, or none of these: a configuration has one an axis."""
        values = frozenset(wanted.values)
        if wanted.has:
            self._axes[axis] = values & self._axes.get(axis, values)
        else:
            self._unwanted[axis] = values | self._unwanted.get(axis, frozenset())

    def _text(self, column: str, item: Condition) -> None:
        if item.operator != "=" or item.value == NOT_STATED:
            return
        if not is_pattern(item):
            self._has_text(column, (cut(item.value),))
        elif self._whole and (found := self._meeting(column, item)) is not None:
            self._has_text(column, found)

    def _has_text(self, column: str, texts: tuple[str, ...]) -> None:
        """One of these, and one of those that were asked for before."""
        before = self._texts.get(column, texts)
        self._texts[column] = tuple(text for text in texts if text in before)

    def _meeting(self, column: str, item: Condition) -> tuple[str, ...] | None:
        """Texts of a column that meet a condition; None where they are too many to tell, or one of them is cut."""
        start = beginning(item.value) if is_pattern(item) else ""
        found = ordered.texts(self._connection, column, start, _MOST_TEXTS)
        if len(found) == _MOST_TEXTS or any(len(text) >= MOST_INDEXED for text in found):
            return None
        met = tuple(text for text in found if meets(text, item))
        return met if len(met) <= ordered.MOST else None

    def _revision(self, item: Condition) -> Clause | None:
        """A condition on the commit, which no column has."""
        column = placements.c.revision
        if item.value == NOT_STATED and item.operator in ("=", "!="):
            return _placed(column.is_not(None) if item.operator == "!=" else column.is_(None)).is_not(None)
        equal = item._replace(operator="=") if item.operator == "!=" else item
        exact = equal.operator == "=" and not is_pattern(equal) and number(equal.value) is None
        met = (equal.value,) if exact and len(equal.value) < MOST_INDEXED else self._meeting("revision", equal)
        if met is None:
            return None
        found = _placed(column.in_(met))
        if item.operator == "!=":
            return found.is_(None)
        self._has_text("revision", met)
        return found.is_not(None)

    def _time(self, item: Condition) -> None:
        """Bounds on the time, both taken in."""
        at = instant(typed("started", item))
        first = at + 1 if item.operator == ">" else at if item.operator in (">=", "=") else None
        last = at - 1 if item.operator == "<" else at if item.operator in ("<=", "=") else None
        self._times.append((first, last))


def _placed(clause: Clause) -> ColumnElement[Any]:
    """A receipt's number where its placement meets a clause, else null; with a limit, as `indexed.Wanted.clause`."""
    query = select(placements.c.receipt).where(placements.c.receipt == receipts.c.seq, clause)
    return query.limit(1).correlate(receipts).scalar_subquery()
