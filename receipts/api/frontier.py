"""The frontier now: the best valid result of every shape, and beside it the best that is merely stated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.publish.page import Page, Table
    from receipts.publish.report.reader import Item, ReportReader
    from receipts.store import Entry, Store

WEEKS = 26  # before the newest launch of a lane, which are looked at for a stated result
MOST_STATED = 2000  # of these the newest
_SHOWN = ("accelerator", "chips", "sequence_length", "tokens_per_second_per_chip", "mfu", "peak_bytes", "provenance")


def frontier(store: Store, rulebook: Rulebook, lanes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows by lane, the proven results of a lane first; see `page`. An unknown lane has none."""
    from receipts.publish.report.best import frontiers, stated
    from receipts.publish.report.reader import ReportReader

    now, lanes = datetime.now(UTC), list(dict.fromkeys(lanes))
    with store.one_state():
        reader = ReportReader(store, rulebook, now, lanes, now)
        proven = [best.now for held in frontiers(reader, ()).by_lane.values() for best in held]
        rows = [_row(item, proven=True) for item in proven]
        rows += [_row(item, proven=False) for item in stated(_reported(reader, lanes))]
    return sorted(rows, key=lambda row: row["lane"])


def _reported(reader: ReportReader, lanes: Sequence[str]) -> list[Item]:
    """Candidates for a stated result: the fastest of each shape among the newest launches."""
    from receipts.publish.report.best import STATED, rate, shapes
    from receipts.store import Filters, condition

    rows: list[Entry] = []
    for lane in lanes or ("*",):
        conditions = (condition("outcome=ok"), condition(f"lane={lane}"))
        for newest in reader.store.find(Filters(conditions, limit=1)):
            since = condition(f"started>={newest.started - timedelta(weeks=WEEKS):%Y-%m-%d}")
            rows += reader.store.find(Filters((since, *conditions), limit=MOST_STATED))
    by_shape = shapes(rows).values()
    return reader.items(row for some in by_shape for row in sorted(some, key=rate, reverse=True)[:STATED])


def _row(item: Item, *, proven: bool) -> dict[str, Any]:
    from receipts.publish.report.frontier import result

    shown = result(item, None)
    return {
        "lane": item.entry.lane,
        "proven": proven,
        "receipt": item.entry.id,
        "label": item.entry.name,
        "model": " ".join(shown.names(())) or None,
        "layout": shown.layout or None,
        **{name: getattr(shown, name) for name in _SHOWN},
        "open_questions": list(shown.open_questions),
        "ran": item.entry.finished or item.entry.started,
    }


def page(rows: Sequence[dict[str, Any]]) -> Page:
    """A section for each lane: proven results, then stated ones."""
    from itertools import groupby

    from receipts.publish.page import Page, Section

    sections = []
    for lane, held in groupby(rows, key=lambda row: row["lane"]):
        items = list(held)
        parts = [
            _table(title, [row for row in items if row["proven"] is proven])
            for title, proven in (("Proven", True), ("Reported, not proven", False))
        ]
        codes = sorted({code for row in items if not row["proven"] for code in row["open_questions"]})
        waits = (f"What is reported waits for {', '.join(codes)}.",) if codes else ()
        sections.append(Section(f"lane-{lane}", lane, waits, tables=tuple(part for part in parts if part.rows)))
    proven = sum(row["proven"] for row in rows)
    headline = (f"{proven} proven, {len(rows) - proven} reported and not proven",)
    lead = () if rows else ("No successful launch states a rate and its shape; add one with: receipts submit run.json",)
    return Page("Frontier", headline, lead=lead, sections=tuple(sections))


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    from receipts import metrics
    from receipts.publish.page import RUN, Link, table_of
    from receipts.publish.readings import number, unit

    rate, mfu, peak = (metrics.get(name) for name in ("tokens_per_second_per_chip", "mfu", "peak_bytes"))
    header = (
        f"receipt | model ^2 | chips ^3 | #sequence ^4 | rate [{unit(rate)}] | #MFU ^5 | peak [{unit(peak)}] ^6"
        " | #ran ^7 | label…"
    )
    lines = (
        (
            Link(item["receipt"][:12], f"{RUN}{item['receipt']}"),
            item["model"] or "~",
            f"{item['chips'] or '?'} × {item['accelerator'] or '?'}",
            f"{item['sequence_length']:,}" if item["sequence_length"] else "~",
            number(rate, item["tokens_per_second_per_chip"]) if item["tokens_per_second_per_chip"] else "~",
            number(mfu, item["mfu"]) if item["mfu"] else "~",
            number(peak, item["peak_bytes"]) if item["peak_bytes"] else "~",
            f"{item['ran']:%Y-%m-%d}",
            item["label"],
        )
        for item in rows
    )
    return table_of(title, header, lines)
