"""Incidents of histories: lines that changed their level and stayed there, until somebody closes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from receipts.publish.page import Section, Table, table_of
from receipts.publish.readings import signed
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.store.decisions import Incident

say = words("history")


def section(shown: Sequence[Incident]) -> tuple[Section, ...]:
    """The incidents as a table; none where none is open, since not every store is watched."""
    return (Section("regressions", "Open incidents", tables=(incidents(shown),)),) if shown else ()


def incidents(items: Sequence[Incident], empty: str | None = None) -> Table:
    """Incidents as a table."""
    header = "incident | lane ^5 | metric ^4 | #change | from launch… | suspects… ^1 | owner ^3 | state… ^2"
    return table_of("", header, map(_incident, items), empty=say("no_incidents") if empty is None else empty)


def _incident(item: Incident) -> tuple[str, ...]:
    body: dict[str, Any] = item.body
    return (
        item.id,
        body["lane"],
        item.metric,
        signed(body["ratio"]),
        body["name"],
        ", ".join(body["moved"]) or say("nothing"),
        item.owner or "~",
        f"closed {item.closed:%Y-%m-%d}: {item.closed_why}" if item.closed else f"open since {item.opened:%Y-%m-%d}",
    )
