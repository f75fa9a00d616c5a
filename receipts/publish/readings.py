"""The numbers of a comparison as text: readings, changes, intervals, and the words for an effect."""

from __future__ import annotations

from collections.abc import Sequence

from receipts import metrics
from receipts.axes import Member
from receipts.axes.inputs import ends_of, leaf
from receipts.base.units import change
from receipts.base.untrusted_text import UNKNOWN
from receipts.judging.verdict import Comparison, MetricResult
from receipts.metrics.registry import Metric, MetricReading

STATED = ("stated", "derived")
MARK = "*"
MAX_DIGITS = 5  # beyond the usual ones


def moved(members: Sequence[Member]) -> str:
    """What an axis changed from and to, leaf by leaf; `?` of no leaf."""
    moves = [" → ".join(ends_of(member)) for member in members]
    if len(moves) == 1:
        return moves[0]
    return "; ".join(f"{leaf(member.path)} {move}" for member, move in zip(members, moves, strict=True)) or "?"


def signed(ratio: float | None) -> str:
    """A ratio of B over A as a signed change, `UNKNOWN` without one."""
    return UNKNOWN if ratio is None else change(ratio, 2)


def ends(low: float | None, high: float | None) -> str:
    """An interval of B over A as signed changes, `UNKNOWN` without one."""
    return UNKNOWN if low is None or high is None else f"{signed(low).removesuffix(' %')} … {signed(high)}"


def unit(metric: Metric) -> str:
    """The unit of a metric's numbers as they are shown."""
    return metric.shown_unit or metric.unit


def number(metric: Metric, item: float, more: int = 0) -> str:
    """A value in `unit`, without it: the header names it; with so many digits more than are usual."""
    return metrics.shown(metric, item, more).removesuffix(unit(metric)).rstrip()


def named(metric: Metric) -> str:
    """A metric with the unit of its numbers."""
    return metric.title if unit(metric) in metric.title else f"{metric.title}, {unit(metric)}".rstrip(", ")


def reading(item: MetricResult, side: MetricReading) -> str:
    """One side's value in `unit`; `MARK` behind a number that was stated and not measured."""
    if side.value is None:
        return side.text or UNKNOWN
    return number(metrics.get(item.metric), side.value) + (MARK if side.source in STATED else "")


def both(item: MetricResult) -> tuple[str, str]:
    """Both sides' values, with as many digits as it takes for B over A to be the change that is printed."""
    shown = reading(item, item.a), reading(item, item.b)
    if item.effect.ratio is None or item.a.value is None or item.b.value is None:
        return shown
    metric = metrics.get(item.metric)
    for more in range(MAX_DIGITS):
        a, b = (number(metric, value, more) for value in (item.a.value, item.b.value))
        first, second = (float(text.replace(",", "")) for text in (a, b))
        if first and signed(second / first) == signed(item.ratio):
            return a, b
    return shown


def effect_word(item: MetricResult) -> str:
    """The effect in words that fit the metric."""
    return metrics.effect_word(metrics.get(item.metric), item.effect.kind)


def mixed(verdict: Comparison) -> bool:
    """Whether some numbers are stated and some computed; if all are stated, the reason says so."""
    readings = [side for item in verdict.results for side in (item.a, item.b) if side.value is not None]
    return len({side.source in STATED for side in readings}) > 1
