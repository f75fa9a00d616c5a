"""Incidents as they were opened and closed; each event is a row that is added."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import Connection, insert, select

from receipts.store.database import By
from receipts.store.sql import engine_of
from receipts.store.tables import incidents as table

Event = Literal["opened", "closed"]


class IncidentEvent(NamedTuple):
    """An incident that is opened or closed. ``body`` is JSON: the change as it was seen."""

    incident: str
    event: Event
    line: int
    kind: str
    metric: str
    body: dict[str, Any]
    reason: str
    owner: str | None = None


class Incident(NamedTuple):
    """An incident: how it was opened, and how it was closed if it was. Times in UTC."""

    id: str
    line: int
    kind: str
    metric: str
    body: dict[str, Any]
    owner: str | None
    opened: datetime
    why: str
    actor: str | None = None
    closed: datetime | None = None
    closed_why: str | None = None


def record(connection: Connection, by: By, events: Sequence[IncidentEvent]) -> None:
    """Record that incidents were opened or closed, all or none.

    An incident that was opened already is not opened again: two runs of watch may see it at once.
    """
    wanted = [item.incident for item in events if item.event == "opened"]
    known = set(connection.execute(select(table.c.incident).where(table.c.incident.in_(wanted))).scalars())
    rows = [
        {**item._asdict(), "body": orjson.dumps(item.body).decode(), **by._asdict()}
        for item in events
        if item.event == "closed" or item.incident not in known
    ]
    if rows:
        connection.execute(insert(table), rows)


def incidents(connection: Connection, lines: Sequence[int] | None = None) -> list[Incident]:
    """Incidents of some lines, or all, each as its last event left it, in the order in which they were opened."""
    query = select(table).order_by(table.c.seq)
    if lines is not None:
        query = query.where(engine_of(connection).among(table.c.line, list(lines)))
    known: dict[str, Incident] = {}
    for row in connection.execute(query):
        if row.event == "opened":
            body = orjson.loads(row.body)
            known.setdefault(
                row.incident,
                Incident(row.incident, row.line, row.kind, row.metric, body, row.owner, row.at, row.reason, row.actor),
            )
        elif row.incident in known:
            known[row.incident] = known[row.incident]._replace(closed=row.at, closed_why=row.reason)
    return list(known.values())
