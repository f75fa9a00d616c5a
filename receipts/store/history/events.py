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


class IntervalEvents(NamedTuple):
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


def events_between(connection: Connection, since: datetime, until: datetime) -> IntervalEvents:
    """Decisions, claims that were added, judged or replaced, and receipts that were superseded, within a stretch."""

    def within(table: Any, *names: str) -> Any:
        columns = (table.c[name] for name in names)
        return select(*columns).where(table.c.at >= since, table.c.at < until).order_by(table.c.seq)

    last = select(func.max(claim_verdicts.c.seq)).where(claim_verdicts.c.at < since).group_by(claim_verdicts.c.claim)
    columns = (claim_verdicts.c[name] for name in StatusVerdict._fields)
    before = map(StatusVerdict._make, connection.execute(select(*columns).where(claim_verdicts.c.seq.in_(last))))
    judged = connection.execute(within(claim_verdicts, *StatusVerdict._fields))
    replaced = connection.execute(within(claim_supersessions, "claim", *Replaced._fields[1:]))
    fell = supersessions.c.successor.is_distinct_from(supersessions.c.receipt)
    superseded = connection.execute(within(supersessions, "receipt", *Replaced._fields[1:]).where(fell).limit(MOST))
    count = select(func.count()).where(supersessions.c.at >= since, supersessions.c.at < until, fell)
    return IntervalEvents(
        decisions=tuple(map(Decision._make, connection.execute(within(decisions, *Decision._fields)))),
        added=tuple(connection.execute(within(claims, "id")).scalars()),
        before={item.claim: item for item in before},
        verdicts=tuple(map(StatusVerdict._make, judged)),
        replaced=tuple(map(Replaced._make, replaced)),
        superseded=tuple(map(Replaced._make, superseded)),
        superseded_count=connection.execute(count).scalar_one(),
    )
