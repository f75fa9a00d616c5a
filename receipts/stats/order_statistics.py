"""Medians and quantiles of lists of floats.

The standard library's `statistics` would do; importing it alone costs as much as starting the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of a sorted, non-empty sequence, linear between neighbours (type 7 of Hyndman and Fan 1996)."""
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[-1]
    low, high = ordered[below], ordered[below + 1]
    return low if low == high else low + (place - below) * (high - low)


def median(values: Sequence[float]) -> float:
    """The median of a non-empty sequence."""
    return quantile(sorted(values), 0.5)


def median_absolute_deviation(values: Sequence[float], center: float) -> float:
    """The median distance from `center`, unscaled: 0.674 standard deviations of a normal sample."""
    return median([abs(value - center) for value in values])
