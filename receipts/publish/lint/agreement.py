"""Whether a stated difference is the one that two receipts give."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.metrics import Metric
from receipts.publish.lint.expect import magnitude, ratios, readings
from receipts.publish.lint.statement import Statement
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.judging.verdict import MetricResult

# Words between two numbers of which the first may be the later one: `38 ms instead of 41 ms`.
_AGAINST = re.compile(r"\b(?:vs\.?|versus|instead\sof|against|compared|over)\b", re.IGNORECASE)


def agrees(item: Statement, metric: Metric, result: MetricResult, a: float | None, b: float | None) -> tuple[bool, str]:
    """Whether the stated difference is the one that the receipts give, and what they give, in words."""
    assert result.a.value is not None
    assert result.b.value is not None
    if item.kind == "change":
        return _change(item, metric, a if a is not None else result.a.value, b if b is not None else result.b.value)
    ratio = result.b.value / result.a.value if result.a.value else float("inf")
    effect = result.effect
    given = (
        Interval(effect.low, effect.high)
        if effect.low is not None and effect.high is not None
        else Interval.exact(ratio)
    )
    expected = ratios(item, lower_is_better=metric.better == "lower")
    span = f", 95 % interval {given.low:.4g} to {given.high:.4g}" if given.low != given.high else ""
    return any(one.meets(given) for one in expected), f"the receipts give {metric.title} × {ratio:.4g}{span}"


def _change(item: Statement, metric: Metric, a: float, b: float) -> tuple[bool, str]:
    reading = f"the receipts read {metrics.shown(metric, a)} and {metrics.shown(metric, b)}"
    expected = readings(item)
    if len(expected) == 2:
        first, second = expected
        after = _AGAINST.search(item.text) is not None and first.contains(b) and second.contains(a)
        return after or (first.contains(a) and second.contains(b)), reading
    difference = abs(b - a)
    rose = b >= a
    better = rose if metric.better == "higher" else b <= a
    directions = {"up": rose, "down": b <= a, "better": better, "worse": not better}
    matches = any(magnitude(one).contains(difference) for one in expected)
    return matches and directions.get(item.direction, True), reading
