"""What a printed statement allows a receipt, or a comparison, to read: intervals of half the last digit around it."""

from __future__ import annotations

import re

from receipts.publish.lint.quantity import si
from receipts.publish.lint.statement import Statement
from receipts.stats.interval import Interval

_FASTER = re.compile(r"\b(?:faster|quicker|speed-?ups?|sped|slower|slow-?downs?|as fast|as quick)\b", re.IGNORECASE)
_AS_LONG = re.compile(r"\bas (?:long|slow)\b", re.IGNORECASE)


def readings(statement: Statement) -> tuple[Interval, ...]:
    """The values that are stated, in the registry's unit: seconds, bytes, tokens/s, TFLOP/s, a fraction for MFU."""
    factor = factor_of(statement)
    return tuple(
        Interval.around(value * factor, half * factor)
        for value, half in zip(statement.values, statement.halves, strict=True)
    )


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
    low = min(value - half for value, half in zip(statement.values, statement.halves, strict=True))
    high = max(value + half for value, half in zip(statement.values, statement.halves, strict=True))
    stated = Interval(low, high)
    text = statement.text
    by_speed = _FASTER.search(text) is not None and not _AS_LONG.search(text)
    if statement.unit == "%":
        size = _magnitude(stated) * 0.01
        candidates = _percentages(size, statement.direction, by_speed)
    else:
        candidates = _factors(stated, statement.direction)
    if lower_is_better and by_speed:
        return tuple(1.0 / item for item in candidates)
    return candidates


def _magnitude(stated: Interval) -> Interval:
    if stated.high <= 0:
        return Interval(-stated.high, -stated.low)
    return stated


def _percentages(size: Interval, direction: str, by_speed: bool) -> tuple[Interval, ...]:
    up, down = 1.0 + size, size * -1.0 + 1.0
    if direction == "equal":
        return (Interval(1.0 - size.high, 1.0 + size.high),)
    if direction == "up":
        return (up,)
    if direction == "down":
        return (down, 1.0 / up) if by_speed else (down,)
    return (up, down)


def _factors(stated: Interval, direction: str) -> tuple[Interval, ...]:
    if stated.low <= 0:
        return (stated,)
    if stated.high < 1.0 or direction == "equal":
        return (stated,)
    if direction == "down":
        return (1.0 / stated,)
    return (stated,) if direction == "up" else (stated, 1.0 / stated)
