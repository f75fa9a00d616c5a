"""The frontier: a card a lane."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.publish.page import Column, Page, Section, Table, row
from receipts.publish.readings import number
from receipts.serve.operation import Call
from receipts.serve.pages.view import RATE, View, run

if TYPE_CHECKING:
    pass


def frontier(call: Call) -> View:
    """A card a lane: proven beside reported results of its newest 26 weeks, and what to do next."""
    rows = call.server.cached("frontier", lambda: call.store.frontier().to_dict())
    lanes = groupby(rows, key=lambda item: item["lane"])
    sections = []
    for lane, held in lanes:
        items = list(held)
        tables = [
            _results(title, [item for item in items if item["proven"] is proven])
            for title, proven in (("Proven", True), ("Reported, not proven", False))
        ]
        questions = {code for item in items if not item["proven"] for code in item["open_questions"]}
        sentences = (f"What is reported waits for {', '.join(sorted(questions))}; see the inbox.",) if questions else ()
        sections.append(Section(f"lane-{lane}", lane, sentences, tables=tuple(part for part in tables if part.rows)))
    proven = sum(item["proven"] for item in rows)
    headline = f"{proven} proven, {len(rows) - proven} reported and not proven"
    lead = () if rows else ("No successful launch states a rate and its shape; add one with: receipts submit run.json",)
    return View(Page("Frontier", (headline,), lead=lead, sections=tuple(sections)))


def _results(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    rate, mfu, peak = (metrics.get(name) for name in (RATE, "mfu", "peak_bytes"))
    columns = (
        *(Column(name) for name in ("run", "model", "chips")),
        Column("sequence", numeric=True),
        Column("rate", metrics.get(RATE).unit, numeric=True),
        Column("MFU", numeric=True),
        Column("peak", "GiB", numeric=True),
        Column("ran", numeric=True),
    )
    lines = [
        row(
            run(item["receipt"], item["label"][:60]),
            item["model"] or "~",
            f"{item['chips'] or '?'} × {item['accelerator'] or '?'}",
            f"{item['sequence_length']:,}" if item["sequence_length"] else "~",
            number(rate, item[RATE]) if item[RATE] else "~",
            number(mfu, item["mfu"]) if item["mfu"] else "~",
            number(peak, item["peak_bytes"]) if item["peak_bytes"] else "~",
            f"{item['ran']:%Y-%m-%d}",
        )
        for item in rows
    ]
    return Table(title, columns, tuple(lines))
