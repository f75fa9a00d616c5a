"""The list of runs: found by words and conditions, by facets and days, in the order of a column.

By time a page follows another by the receipt that ends it. By any other column the newest `SORTED` are put in order.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts import metrics
from receipts.api.lists import MAX_CONDITIONS, Cursor, read_cursor
from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import RATE, ROWS, View, moment, url
from receipts.publish.page import Page, marked
from receipts.publish.readings import number
from receipts.store import Condition, Filters, condition
from receipts.store.query.conditions import is_condition
from receipts.store.query.reports import FACETS, ReportQueries

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from receipts.store import Entry as Stored
    from receipts.store.query.lists import Order

SORTED: Final = 2000
MAX_WORDS: Final = 6
FOUND: Final = 12  # values of a facet that are shown
# Columns by what they are sorted by; of numbers and times the largest come first.
COLUMNS: Final = {
    "run": "label",
    "status": "status",
    "lane": "lane",
    "chips": "chips",
    "sequence": "sequence_length",
    "rate": RATE,
    "peak": "peak_bytes",
    "started": "started",
}
WORDS: Final = ("run", "status", "lane")


class Search(NamedTuple):
    """What a list is asked for: words of names, conditions, and of the facets the values that are chosen."""

    text: str
    words: tuple[str, ...]
    conditions: tuple[Condition, ...]
    chosen: dict[str, str]
    days: dict[str, str]
    sort: str
    turned: bool

    @classmethod
    def of(cls, given: QueryParams, pins: dict[str, Any]) -> Search:
        """Read a query; ``@golden`` is the receipt of that pin. Raises UsageError."""
        text, words, conditions = given.get("q", ""), list[str](), list[Condition]()
        for token in tokens(text):
            if token[0] == "@" and token[1:] in pins:
                conditions.append(Condition("id", "=", pins[token[1:]].receipt))
            elif is_condition(token):
                conditions.append(condition(token))
            else:
                words.append(token)
        if len(words) > MAX_WORDS or len(conditions) > MAX_CONDITIONS:
            raise UsageError(f"search for at most {MAX_WORDS} words and {MAX_CONDITIONS} conditions")
        days = {name: value for name in ("since", "until") if (value := given.get(name, ""))}
        conditions += [
            condition(f"started{'>=' if name == 'since' else '<'}{_day(name, at)}") for name, at in days.items()
        ]
        chosen = {name: given[name] for name in FACETS if given.get(name)}
        sort = given.get("sort", "started")
        if sort not in COLUMNS:
            raise UsageError(f"sort={sort[:40]}: runs are sorted by {', '.join(COLUMNS)}")
        return cls(text, tuple(words), tuple(conditions), chosen, days, sort, given.get("turned") == "true")

    def query(self, **more: str) -> str:
        """The path of the list with something else chosen; what is empty is left out."""
        turned = {"turned": "true"} if self.turned else {}
        sort = {"sort": self.sort} if self.sort != "started" else {}
        every = {"q": self.text, **self.chosen, **self.days, **sort, **turned, **more}
        return url("/runs", [(name, value) for name, value in every.items() if value])

    @property
    def filters(self) -> tuple[Condition, ...]:
        """Every condition."""
        return (*self.conditions, *(condition(f"{name}={value}") for name, value in self.chosen.items()))


def tokens(text: str) -> list[str]:
    """The parts of a search, those in quotes whole: ``"grid 02" label="a b"``."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    try:
        return [item for item in lexer if item]
    except ValueError:  # a quote that nothing closes
        return text.replace('"', " ").split()


def _day(name: str, text: str) -> str:
    """The first moment of a day, or for *until* of the day after it. Raises UsageError."""
    try:
        return f"{date.fromisoformat(text) + timedelta(days=name == 'until')}"
    except (ValueError, OverflowError):
        raise UsageError(f"{name}={text[:40]}: write a day such as 2026-11-21") from None


NOTHING: Final[dict[str, Any]] = {
    "search": Search("", (), (), {}, {}, "started", turned=False),
    "filters": (),
    "folds": (),
    "clear": True,
    "newer": "",
    "older": "",
    "heads": (),
}


class _Part(NamedTuple):
    """Rows of a list, and where those before and after them are; empty where there are none."""

    rows: Sequence[Stored]
    newer: str
    older: str


def runs(call: Call) -> View:
    """Stored receipts, folded by configuration; two that are ticked are compared, more swept."""
    given = call.request.query_params
    search = Search.of(given, call.store.opened.pins())
    held = call.server.facets(search.conditions, search.words)
    if held.whole and (search.conditions or search.words) and not held.total(search.chosen):
        part = _Part((), "", "")
    else:
        part = _by_time(call, search, given) if search.sort == "started" else _sorted(call, search, given)
    filters = [
        (name, [(value, count, _turn(search, name, value), search.chosen.get(name) == value) for value, count in by])
        for name, by in held.of(search.chosen).items()
    ]
    first = not part.newer
    heads = [(name, _sort(search, name)) for name in COLUMNS]
    values = {
        "search": search,
        "query": search.text,
        "filters": [(name, items[:FOUND], len(items) - FOUND) for name, items in filters],
        "folds": list(_folds(call, part.rows)),
        "newer": part.newer,
        "older": part.older,
        "heads": heads,
        "clear": bool(search.filters or search.words),
    }
    return View(
        Page("Runs", (_headline(part.rows, held.total(search.chosen), search, first=first, whole=held.whole),)),
        "runs",
        values,
    )


def _headline(rows: Sequence[Stored], total: int, search: Search, *, first: bool, whole: bool) -> str:
    """How many receipts there are, and which of them are shown."""
    if not rows:
        met = search.filters or search.words
        return "no receipt meets these conditions" if met else "no receipt yet; store one: receipts submit run.json"
    every = counted(total, "receipt") if whole else f"more than {total:,} receipts"
    if len(rows) == total:
        return every
    by = f", of the newest {SORTED:,} by {search.sort}" if search.sort != "started" and total > SORTED else ""
    return f"{len(rows)}{'' if first else ' more'} of {every}{by}"


def _turn(search: Search, name: str, value: str) -> str:
    """The list with a value of a facet chosen, or no more chosen."""
    return search.query(**{name: "" if search.chosen.get(name) == value else value})


def _sort(search: Search, name: str) -> tuple[str, str]:
    """The list in the order of a column, turned where it has that order already; and its order as aria-sort has it."""
    mine = search.sort == name
    turned = "true" if mine and not search.turned else ""
    up = search.turned != (name in WORDS)
    return search._replace(sort=name, turned=False).query(turned=turned), (
        "ascending" if up else "descending"
    ) if mine else ""


def _by_time(call: Call, search: Search, given: QueryParams) -> _Part:
    """A page by time: what follows a receipt, or comes before it."""
    back, cursor = given.get("before"), given.get("before") or given.get("after")
    order: Order = "oldest" if bool(back) != search.turned else "newest"
    after = None
    if cursor:
        at = read_cursor(cursor)
        after = at.moment, at.seq
    rows_read = list(call.store.opened.find(Filters(search.filters, False, order, ROWS + 1, after, search.words)))
    more, rows = len(rows_read) > ROWS, rows_read[:ROWS]
    if back:
        rows.reverse()
    if not rows:
        return _Part(rows, "", "")
    ends = [Cursor(row.started.isoformat(), row.seq).text() for row in (rows[0], rows[-1])]
    before = search.query(before=ends[0]) if (more if back else cursor) else ""
    return _Part(rows, before, search.query(after=ends[1]) if back or more else "")


def _sorted(call: Call, search: Search, given: QueryParams) -> _Part:
    """A page of the newest receipts in the order of a column; what has no value there comes last."""
    column, page = COLUMNS[search.sort], 0
    with suppress(ValueError):
        page = max(0, min(int(given.get("page", "0")), SORTED // ROWS))

    def ids() -> list[str]:
        rows = list(call.store.opened.find(Filters(search.filters, limit=SORTED, words=search.words)))
        known = [row for row in rows if getattr(row, column) is not None]
        known.sort(key=lambda row: getattr(row, column), reverse=search.turned == (search.sort in WORDS))
        return [row.id for row in (*known, *(row for row in rows if getattr(row, column) is None))]

    ordered = call.server.shared((search.filters, search.words, search.sort, search.turned), ids)
    here = ordered[page * ROWS : (page + 1) * ROWS]
    rows = {row.id: row for row in ReportQueries(call.store.opened.database).entries(here)}
    before = search.query(page=str(page - 1)) if page else ""
    after = search.query(page=str(page + 1)) if len(ordered) > (page + 1) * ROWS else ""
    return _Part([rows[name] for name in here if name in rows], before, after)


def _folds(call: Call, rows: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Rows by configuration, in the order of the newest launch of each."""
    places = ReportQueries(call.store.opened.database).place([item.id for item in rows])
    groups: dict[object, list[Stored]] = {}
    for item in rows:
        groups.setdefault(places.get(item.id, item.id), []).append(item)
    rate, peak, pins = metrics.get(RATE), metrics.get("peak_bytes"), call.store.opened.pins()
    for items in groups.values():
        first = items[0]
        rates = [value for item in items if (value := item.tokens_per_second_per_chip)]
        yield {
            "id": first.id,
            "name": first.name[:60],
            "pins": [name for name, item in pins.items() if item.receipt in {one.id for one in items}],
            "launches": [(item.id, item.name, moment(item), item.status, item.outcome) for item in items],
            "mark": marked(first.status),
            "outcome": first.outcome,
            "lane": first.lane,
            "hardware": _times(first.chips, first.accelerator),
            "shape": _times(first.sequence_length, first.micro_batch),
            "rate": number(rate, sorted(rates)[len(rates) // 2]) if rates else "~",
            "peak": number(peak, first.peak_bytes) if first.peak_bytes else "~",
            "started": moment(first),
        }


def _times(one: object, other: object) -> str:
    """``8 × h200-sxm``; a side that is not stated is a question mark, and neither is `~`."""
    return f"{one or '?'} × {other or '?'}" if one or other else "~"
