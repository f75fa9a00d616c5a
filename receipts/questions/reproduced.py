"""Whether a result was reproduced: launches of its configuration by another actor, or on another host, agree with it.

They agree where the 90 % interval of their ratio lies within the equivalence margin, as in two one-sided tests. That
one group ran after the other, which leaves an effect unproven, takes nothing from that: their runs are independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from receipts import metrics
from receipts.base.environment import same_principal
from receipts.base.errors import UsageError
from receipts.store.query.reports import ReportQueries

if TYPE_CHECKING:
    from receipts.questions.comparisons import Comparisons
    from receipts.receipt import Parsed
    from receipts.stats.equivalence import Effect
    from receipts.store import Store
    from receipts.store.entries import Entry


MOST: Final = 5  # launches of each group: a page of a launch asks, and dozens tell nothing more


class Reproduced(NamedTuple):
    """How many launches agree with a result, on which other hosts, and which other actors submitted them."""

    launches: int
    hosts: tuple[str, ...]
    actors: tuple[str, ...]

    def __str__(self) -> str:
        places = [*(f"on {name}" for name in self.hosts), *(f"by {name}" for name in self.actors)]
        return f"reproduced {', '.join(places)} ({self.launches} launch{'' if self.launches == 1 else 'es'})"


def reproduced(comparisons: Comparisons, store: Store, one: Parsed, metric: str = metrics.DEFAULT) -> Reproduced | None:
    """Who reproduced a stored receipt's value of a metric, by comparisons in its store; None where nobody did."""
    pool = comparisons.pool([one], join="all")
    rows = {row.id: row for row in ReportQueries(store.database).entries([item.id for item in pool])}
    head = rows[one.id]
    others = [item for item in pool if _elsewhere(rows[item.id], head)][:MOST]
    if not others:
        return None
    own = [one, *(item for item in pool if item.id != one.id and not _elsewhere(rows[item.id], head))][:MOST]
    try:
        verdict = comparisons.compare(own, others, metric, named=(), join="only")
    except UsageError:
        return None
    result = next((item.effect for item in verdict.results if item.metric == metric), None)
    if verdict.comparable != "yes" or verdict.path == "left" or result is None or not _within(result):
        return None
    agreeing = [rows[name] for name in verdict.b]
    hosts = sorted({row.host for row in agreeing if row.host} - {head.host})
    actors = sorted({row.actor for row in agreeing if row.actor and not same_principal(row.actor, head.actor)})
    return Reproduced(len(agreeing), tuple(map(str, hosts)), tuple(actors))


def _within(effect: Effect) -> bool:
    low, high, margin = effect.low90, effect.high90, effect.delta
    return low is not None and high is not None and 1 - margin <= low and high <= 1 + margin


def _elsewhere(row: Entry, head: Entry) -> bool:
    """Whether another host ran it, or another actor submitted it."""
    hosts = None not in (row.host, head.host) and row.host != head.host
    return hosts or not same_principal(row.actor, head.actor)
