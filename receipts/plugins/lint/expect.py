"""What a printed statement allows a receipt, or a comparison, to read: intervals of half the last digit around it.

A stated difference agrees where it is the one that two receipts give.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.metrics import Metric
from receipts.plugins.lint.quantity import si
from receipts.plugins.lint.statement import MIRRORED, Bound, Direction, Statement
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.judging.verdict import MetricResult


_FASTER = re.compile(
    r"\b(?:faster|quicker|slower|speeds?\sup|sped|speed-?ups?|slow(?:s|ed)?[\s-]?downs?|as fast|as quick)\b",
    re.IGNORECASE,
)
_LEAST = -0.9  # of a percentage that is open below: the rate or time stays above zero
_AS_LONG = re.compile(r"\bas (?:long|slow)\b", re.IGNORECASE)


def readings(statement: Statement) -> tuple[Interval, ...]:
    """The values that are stated, in the registry's unit: seconds, bytes, tokens/s, TFLOP/s, a fraction for MFU.

    A bound opens the interval of a lone value: `under 2.6 s`, `at least 98k tok/s`.
    """
    factor = factor_of(statement)
    interval = tuple(one * factor for one in statement.intervals)
    return tuple(_opened(one, statement.bound, 0.0) for one in interval) if len(interval) == 1 else interval


def _opened(interval: Interval, bound: Bound, least: float) -> Interval:
    match bound:
        case "least":
            return Interval(interval.low, math.inf)
        case "most":
            return Interval(-math.inf, interval.high)
        case "reach":
            return Interval(min(least, interval.low), interval.high)
    return interval


def factor_of(statement: Statement) -> float:
    """Factor from the statement's unit to its metric's."""
    if statement.unit in ("%", "points"):
        return 0.01
    if statement.metric == "tflops_per_second_per_chip":
        return (si(statement.unit) or 1e12) / 1e12
    if statement.metric in ("tokens_per_second", "tokens_per_second_per_chip"):
        return 1.0
    return si(statement.unit) or 1.0


def ratios(statement: Statement, *, lower_is_better: bool) -> tuple[Interval, ...]:
    """The ratios, candidate over baseline of the metric, that a factor or a percentage may mean.

    `24 % slower` is said of the rate as well as of the time: both are allowed. Without a direction so are both senses.
    """
    stated = Interval(min(one.low for one in statement.intervals), max(one.high for one in statement.intervals))
    by_speed = _FASTER.search(statement.text) is not None and not _AS_LONG.search(statement.text)
    if statement.unit == "%":
        bound = MIRRORED.get(statement.bound, statement.bound) if stated.high <= 0.0 else statement.bound
        size = _opened(magnitude(stated), bound, 0.0) * 0.01
        candidates = _percentages(
            Interval(max(size.low, _LEAST if statement.direction != "none" else 0.0), size.high),
            statement.direction,
            by_speed,
            lower_is_better,
        )
    else:
        opened = _opened(stated, statement.bound, min(1.0, stated.low))
        level = stated.high < 1.0
        candidates = _factors(Interval(max(opened.low, 0.0), opened.high), statement.direction, level, lower_is_better)
    if lower_is_better and by_speed:
        return tuple(1.0 / item for item in candidates)
    return candidates


def magnitude(stated: Interval) -> Interval:
    """The size of a difference, whatever its sign."""
    if stated.high <= 0:
        return Interval(-stated.high, -stated.low)
    return stated


def _percentages(size: Interval, direction: Direction, by_speed: bool, lower_is_better: bool) -> tuple[Interval, ...]:
    up, down = 1.0 + size, size * -1.0 + 1.0
    match direction:
        case "equal":
            return (Interval(1.0 - size.high, 1.0 + size.high),)
        case "up":
            return (up,)
        case "down":
            return (down, 1.0 / up) if by_speed else (down,)
        case "better":
            return (down, 1.0 / up) if lower_is_better else (up,)
        case "worse":
            return (up,) if lower_is_better else (down, 1.0 / up)
    return (up, down)


def _factors(stated: Interval, direction: Direction, level: bool, lower_is_better: bool) -> tuple[Interval, ...]:
    if level or direction == "equal":
        return (stated,)
    if direction == "none":
        return (stated, 1.0 / stated)
    fell = direction == "down" or direction == ("better" if lower_is_better else "worse")
    return (1.0 / stated,) if fell else (stated,)


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
