"""Incidents: steps of a line for the worse, when they were opened and closed."""

from __future__ import annotations

from sqlalchemy import Index, Table

from receipts.store.tables.columns import actor, key, metadata, moment, number, words
from receipts.store.tables.rules import TableRules

incidents = Table(
    "incidents",
    metadata,
    key("Number in the order in which events were recorded; the last one of an incident counts"),
    words("incident", "Id of the incident: 12 hex digits over line, kind, metric and first launch", required=True),
    words("event", "opened, closed", required=True),
    number("line", "Digest of the line: the configuration without code, wheels, image and driver", required=True),
    words("kind", "run.kind of the line's launches", required=True),
    words("metric", "The metric that stepped", required=True),
    words("body", "The change as JSON: size, interval, axes that moved, launches on both sides", required=True),
    words("owner", "Who looks after it; null where nobody was named"),
    actor(),
    words("reason", "Why it was opened or closed", required=True),
    moment("at", "When it was recorded"),
    comment="What watch opened and what closed, never edited: one incident a change point, however many runs see it",
    info=TableRules("decider", sealed="everywhere").info,
)

Index("incidents_incident", incidents.c.incident)
Index("incidents_line", incidents.c.line)
