"""The question: how the launches of each lane ended. Its command, operation, method and tool follow from it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from receipts.api.question import question

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session

COLUMNS = ("lane", "outcome", "launches")


@question("outcomes", forms=("csv",))
def outcomes(session: Session) -> Answer:
    """Count how the launches of each lane ended.

    Examples:
      receipts outcomes
      receipts outcomes --json

    Exit codes: 0 counted, 3 the store has no launch.
    """
    from receipts.api.answer import Answer
    from receipts.store import Filters
    from receipts_outcomes.page import page

    counts = Counter((entry.lane, entry.outcome) for entry in session.store.find(Filters(())))
    rows = [{"lane": lane, "outcome": outcome, "launches": count} for (lane, outcome), count in sorted(counts.items())]
    return Answer(rows, lambda: page(rows), 0 if rows else 3, rows=rows, columns=COLUMNS)
