"""Decisions that were taken in a stretch of time, with their reasons (`receipts decide`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.base.errors import NotFound
from receipts.publish.report.cut import Cut, cut
from receipts.publish.report.ref import Ref, ref_of

if TYPE_CHECKING:
    from receipts.store import Decision, Store

MOST = 40


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision. `receipt` is None where the receipt is not in the store; `revised` by a later one of the stretch."""

    id: str
    receipt: Ref | None
    lane: str | None
    decision: str
    reason: str
    at: datetime
    revised: bool
    actor: str | None = None


def decided_of(item: Decision, ref: Ref | None, lane: str | None = None, *, revised: bool = False) -> DecisionRow:
    """A decision of the store, as a page shows it."""
    return DecisionRow(item.receipt, ref, lane, item.decision, item.reason, item.at, revised, item.actor)


def decisions(store: Store, taken: Sequence[Decision], lanes: Sequence[str] = ()) -> Cut[DecisionRow]:
    """These decisions, of some lanes or of all, the newest first."""
    seen: set[str] = set()
    decided: list[DecisionRow] = []
    for item in reversed(taken):
        try:
            entry = store.entry(item.receipt)
        except NotFound:
            ref, lane = None, None
        else:
            ref, lane = ref_of(entry), entry.lane
        if lanes and lane not in lanes:
            continue
        decided.append(decided_of(item, ref, lane, revised=item.receipt in seen))
        seen.add(item.receipt)
    return cut(decided, MOST)
