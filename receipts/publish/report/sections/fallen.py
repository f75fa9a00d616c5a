"""Receipts that were superseded or retracted in a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.publish.report.cut import Cut
from receipts.publish.report.ref import Ref

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.decisions import IntervalEvents

MOST = 20


@dataclass(frozen=True, slots=True)
class Fallen:
    """A receipt that was superseded or retracted in the stretch; `successor` is None where it was retracted."""

    id: str
    receipt: Ref | None
    successor_id: str | None
    successor: Ref | None
    reason: str


def fallen(store: Store, events: IntervalEvents, lanes: Sequence[str] = ()) -> Cut[Fallen]:
    """The receipts of some lanes, or of all, that fell in a stretch, in the order in which they did."""
    from receipts.publish.report.sections.claims import known

    ids = [name for item in events.superseded for name in (item.id, item.successor) if name is not None]
    refs = known(store, ids)
    rows = [
        Fallen(item.id, refs.get(item.id), item.successor, refs.get(item.successor or ""), item.reason)
        for item in events.superseded
        if not lanes or (item.id in refs and store.entry(item.id).lane in lanes)
    ]
    unread = 0 if lanes else events.superseded_count - len(events.superseded)
    return Cut(tuple(rows[:MOST]), max(0, len(rows) - MOST) + unread)
