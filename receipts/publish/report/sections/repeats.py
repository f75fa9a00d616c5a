"""Failures that were known: launches of the week whose signature had failed before and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.publish.report.cut import Cut, cut
from receipts.publish.report.ref import Ref, ref_of

if TYPE_CHECKING:
    from receipts.store import Entry, Store

MOST = 20
NAMED = 6


@dataclass(frozen=True, slots=True)
class RepeatedFailure:
    """A signature that failed in the week and had failed before: `again` are the launches of the week that knew.

    `first` failed first, `times` is how often it failed until the end of the week. The cost is that of `again`:
    `compile_seconds` where the launches compiled and say so, else `failed_seconds` from start to end, and `uncosted`
    launches state neither.
    """

    signature: str
    lane: str
    kind: str
    first: Ref
    first_at: datetime
    times: int
    again: Cut[Ref]
    compile_seconds: float
    compiled: int
    failed_seconds: float
    timed: int
    uncosted: int

    @property
    def seconds(self) -> float | None:
        """What the repeats took together; None where none of them says."""
        return self.compile_seconds + self.failed_seconds if self.compiled or self.timed else None

    @property
    def spent(self) -> float:
        """The same, 0 where none of them says."""
        return self.seconds or 0.0


def repeats(store: Store, failed: Iterable[Entry], until: datetime) -> Cut[RepeatedFailure]:
    """Failures that were known before some launches started, by signature, the most expensive first."""
    week = {row.id for row in failed}
    groups: dict[str, list[Entry]] = defaultdict(list)
    for signature, item in store.query.failed_alike(sorted(week)):
        if item.started < until:
            groups[signature].append(item)
    repeated = (_repeated(signature, members, week) for signature, members in groups.items())
    rows = [item for item in repeated if item is not None]
    rows.sort(key=lambda item: (-(item.seconds or 0.0), item.lane, item.signature))
    return cut(rows, MOST)


def _repeated(signature: str, members: Sequence[Entry], week: set[str]) -> RepeatedFailure | None:
    first, *later = members
    again = [item for item in later if item.id in week and item.started > first.started]
    if not again:
        return None
    compiled = [item.compile_seconds for item in again if item.compile_seconds]
    timed = [
        (item.finished - item.started).total_seconds()
        for item in again
        if not item.compile_seconds and item.finished is not None
    ]
    last = again[-1]
    kind = last.failure_type.replace("_", " ")
    return RepeatedFailure(
        signature=signature,
        lane=last.lane,
        kind=f"{kind} in {last.failure_phase.replace('_', ' ')}" if last.failure_phase else kind,
        first=ref_of(first),
        first_at=first.started,
        times=len(members),
        again=cut(map(ref_of, again), NAMED),
        compile_seconds=sum(compiled),
        compiled=len(compiled),
        failed_seconds=sum(timed),
        timed=len(timed),
        uncosted=len(again) - len(compiled) - len(timed),
    )
