"""The page of the question, and the same table as a section of the weekly report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from receipts.publish.page import Page, Section, Table, table_of

if TYPE_CHECKING:
    from receipts.questions.week.collect import WeekData


def page(rows: Iterable[Mapping[str, Any]]) -> Page:
    """A table of lanes and outcomes."""
    listed = [(row["lane"], row["outcome"], row["launches"]) for row in rows]
    headline = (f"{sum(count for _, _, count in listed)} launches",)
    return Page("Outcomes", headline, sections=(Section("outcomes", "How launches ended", tables=(_table(listed),)),))


def section(data: WeekData) -> Section | None:
    """The section of a weekly report; None where the week has no receipt."""
    counts = Counter((item.lane, item.outcome) for item in data.receipts)
    listed = [(lane, outcome, count) for (lane, outcome), count in sorted(counts.items())]
    return Section("outcomes", "How launches ended", tables=(_table(listed),)) if listed else None


def _table(listed: Iterable[tuple[str, str, int]]) -> Table:
    cells = ((lane, outcome, str(count)) for lane, outcome, count in listed)
    return table_of("", "lane | outcome | #launches", cells, empty="no launches")
