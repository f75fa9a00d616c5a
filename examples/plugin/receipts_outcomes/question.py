"""The question: how the launches of each lane ended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from receipts.api.answer import Listed
from receipts.store import Filters

if TYPE_CHECKING:
    from receipts.api.store import Store


def outcomes(store: Store) -> Listed:
    """A row for each lane and outcome, with the number of current launches."""
    from receipts_outcomes.page import page

    counts = Counter((entry.lane, entry.outcome) for entry in store.opened.find(Filters(())))
    rows = [{"lane": lane, "outcome": outcome, "launches": count} for (lane, outcome), count in sorted(counts.items())]
    return Listed(rows, rows, lambda: page(rows), 0 if rows else 3, ("lane", "outcome", "launches"))
