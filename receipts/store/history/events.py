"""What people published and decided within a stretch of time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from receipts.store.history.claim_rows import Replaced
from receipts.store.history.decisions import Decision
from receipts.store.tables import claim_supersessions, claim_verdicts, claims, decisions, supersessions

MOST: Final = 200


class StatusVerdict(NamedTuple):
    """The status that a verdict gave a claim. Time in UTC."""

    claim: str
    status: str
    rules: str
    at: datetime


class Chronicle(NamedTuple):
    """What was said from one moment to another, the latter left out, in the order in which it was said.

    ``before`` is the last status that each claim had when the stretch began. Of the receipts that were superseded, the
    first `MOST` are listed and all are counted.
    """

    decisions: tuple[Decision, ...]
    added: tuple[str, ...]
    before: dict[str, StatusVerdict]
    verdicts: tuple[StatusVerdict, ...]
    replaced: tuple[Replaced, ...]
    superseded: tuple[Replaced, ...]
    superseded_count: int


def chronicle(connection: Connection, since: datetime, until: datetime) -> Chronicle:
    """Decisions, claims that were added, judged or replaced, and receipts that were superseded, within a stretch."""

    def within(table: Any) -> Any:
        return select(table).where(table.c.at >= since, table.c.at < until).order_by(table.c.seq)

    first = select(func.max(claim_verdicts.c.seq)).where(claim_verdicts.c.at < since).group_by(claim_verdicts.c.claim)
    word = select(*claim_verdicts.c["claim", "status", "rules", "at"])
    before = [StatusVerdict._make(row) for row in connection.execute(word.where(claim_verdicts.c.seq.in_(first)))]
    later = word.where(claim_verdicts.c.at >= since, claim_verdicts.c.at < until).order_by(claim_verdicts.c.seq)
    return Chronicle(
        decisions=tuple(
            Decision(row.receipt, row.decision, row.reason, row.at, row.actor)
            for row in connection.execute(within(decisions))
        ),
        added=tuple(row.id for row in connection.execute(within(claims))),
        before={item.claim: item for item in before},
        verdicts=tuple(StatusVerdict._make(row) for row in connection.execute(later)),
        replaced=tuple(
            Replaced(row.claim, row.successor, row.reason, row.at, row.actor)
            for row in connection.execute(within(claim_supersessions))
        ),
        superseded=tuple(
            Replaced(row.receipt, row.successor, row.reason, row.at, row.actor)
            for row in connection.execute(within(supersessions).limit(MOST))
        ),
        superseded_count=connection.execute(
            select(func.count()).where(supersessions.c.at >= since, supersessions.c.at < until)
        ).scalar_one(),
    )
