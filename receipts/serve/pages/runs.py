"""Stored receipts by conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.base.units import counted
from receipts.publish.page import Page, marked
from receipts.publish.readings import number
from receipts.serve.cursor import page as page_of
from receipts.serve.operation import Call
from receipts.serve.pages.view import RATE, ROWS, View, moment, url
from receipts.store.query.reports import FACETS

if TYPE_CHECKING:
    from receipts.store import Entry as Stored


def runs(call: Call) -> View:
    """Stored receipts by conditions, folded by configuration; two that are ticked are compared, more swept."""
    text = call.request.query_params.get("q", "")
    conditions = [f"{name}={value}" for name in FACETS if (value := call.request.query_params.get(name))]
    rows, following = page_of(
        call.store.opened,
        [*text.split(), *conditions],
        limit=ROWS,
        cursor=call.request.query_params.get("cursor") or None,
    )
    chosen = [(name, value) for name in ("q", *FACETS) if (value := call.request.query_params.get(name))]
    held = call.server.counts()
    filters = [
        (
            name,
            [(value, count, url("/runs", _with(chosen, name, value)), (name, value) in chosen) for value, count in by],
        )
        for name, by in held.items()
    ]
    more = url("/runs", [*chosen, ("cursor", following)]) if following else ""
    values = {"query": text, "filters": filters, "folds": list(_folds(call, rows)), "more": more, "clear": bool(chosen)}
    part = following is not None or "cursor" in call.request.query_params
    headline = _headline(len(rows), sum(count for _, count in held["status"]), chosen=bool(chosen), part=part)
    return View(Page("Runs", (headline,)), "runs", values)


def _headline(count: int, total: int, *, chosen: bool, part: bool) -> str:
    """How many rows there are; ``total`` counts the whole store, and nobody counted what meets conditions."""
    if not count:
        return "no receipt meets these conditions" if chosen else "no receipt yet; store one: receipts submit run.json"
    if chosen:
        return f"{count} of the receipts that meet these conditions" if part else counted(count, "receipt")
    return f"{count} of {total:,} receipts" if part else counted(count, "receipt")


def _with(chosen: Sequence[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    rest = [item for item in chosen if item[0] != name]
    return rest if (name, value) in chosen else [*rest, (name, value)]


def _folds(call: Call, rows: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Rows by configuration, in the order of the newest launch of each."""
    from receipts.store.query.reports import ReportQueries

    places = ReportQueries(call.store.opened.database).place([item.id for item in rows])
    groups: dict[object, list[Stored]] = {}
    for item in rows:
        groups.setdefault(places.get(item.id, item.id), []).append(item)
    rate, peak = metrics.get(RATE), metrics.get("peak_bytes")
    for items in groups.values():
        first = items[0]
        rates = [value for item in items if (value := item.tokens_per_second_per_chip)]
        yield {
            "id": first.id,
            "name": first.name[:60],
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
