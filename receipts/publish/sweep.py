"""The page of a sweep: how the cells came out against the base, the grid, and why cells are refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.publish.page import Cell, Page, Section, Table, points_of, sections_of, table_of
from receipts.publish.readings import NONE, ends, leaf, named, number, signed
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison, MetricResult
    from receipts.questions.sweep import Sweep, SweepCell

say = words("sweep")


def page(sweep: Sweep, metric: str) -> Page:
    """The whole page."""
    reasons: dict[str, list[str]] = {}
    for at, cell in enumerate(sweep.cells):
        if cell.refused:
            reasons.setdefault(cell.refused, []).append(str(at))
    pairs = ", ".join(say("link", a=link.a, b=link.b, axis=link.axis) for link in sweep.links)
    sections = sections_of(
        Section("grid", say("grid"), tables=(_table(sweep, metric),)),
        Section("refused", say("refused"), points=points_of((", ".join(at), why) for why, at in reasons.items())),
        Section("links", say("links"), (pairs,) if pairs else ()),
    )
    return Page(say("grid"), headline=_headline(sweep, metric), sections=sections)


def _headline(sweep: Sweep, metric: str) -> Cell:
    """How many cells came out how, and the best of those that are accepted."""
    statuses: Counter[str] = Counter(cell.against_base.status for cell in sweep.cells if cell.against_base is not None)
    if not statuses:
        return (say("alone"),)
    counts = [say("count", n=statuses[key], status=name) for key, name in say.named("status").items() if statuses[key]]
    base = next(at for at, cell in enumerate(sweep.cells) if cell.against_base is None)
    better = metrics.get(metric).better
    accepted = [
        (result.ratio, at)
        for at, cell in enumerate(sweep.cells)
        if cell.against_base is not None and cell.against_base.status == "accepted"
        if (result := _result(cell, metric)) is not None and result.ratio is not None
    ]
    if accepted:
        best, at = max(accepted) if better == "higher" else min(accepted)
        gains = best > 1.0 if better == "higher" else best < 1.0
        counts.append(say("best", change=signed(best), cell=at) if gains else say("base_best"))
    return (say("headline", n=statuses.total(), base=base, counts=", ".join(counts)),)


def _table(sweep: Sweep, metric: str) -> Table:
    """One cell a row; the last part of an axis names its column."""
    varied = " | ".join(map(leaf, sweep.vary))
    header = f"# | {varied} | #launches ^5 | #{named(metrics.get(metric))} ^1"
    header += " | #change | 95 % interval ^3 | verdict | effect ^2 | label… ^4"
    return table_of("Grid", header, (_cell(sweep, at, item, metric) for at, item in enumerate(sweep.cells)))


def _cell(sweep: Sweep, at: int, cell: SweepCell, metric: str) -> tuple[str, ...]:
    result, verdict = _result(cell, metric), cell.against_base
    own = _own_value(sweep, cell, metric)
    count, lost = len(cell.launches), len(cell.lost)
    return (
        str(at),
        *cell.coordinates,
        f"{count} of {count + lost}" if lost else str(count),
        number(metrics.get(metric), own) if own is not None else "~",
        *(("base", "", "", "") if verdict is None else _against_base(cell, verdict, result)),
        cell.launches[0].receipt.run.label or cell.launches[0].id[:12],
    )


def _against_base(cell: SweepCell, verdict: Comparison, result: MetricResult | None) -> tuple[str, ...]:
    effect = "refused" if cell.refused else verdict.effect
    if result is None:
        return NONE, NONE, verdict.status, effect
    return signed(result.ratio), ends(result.effect.low, result.effect.high), verdict.status, effect


def _result(cell: SweepCell, metric: str) -> MetricResult | None:
    """The result of a cell against the base for one metric; None for the base itself."""
    if cell.against_base is None:
        return None
    return next((item for item in cell.against_base.results if item.metric == metric), None)


def _own_value(sweep: Sweep, cell: SweepCell, metric: str) -> float | None:
    if cell.against_base is not None:
        result = _result(cell, metric)
        return result.b.value if result else None
    others = [item for item in (_result(other, metric) for other in sweep.cells) if item is not None]
    return others[0].a.value if others else None
