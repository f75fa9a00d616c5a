"""Distributions: medians and quantiles of lists of floats, and tails and quantiles of Student's t and the normal.

Written out because the imports cost too much on every comparison: the standard library's `statistics` costs as much
as starting the interpreter, `scipy.special` some fifty starts. The tests hold the functions against scipy over the
range that is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of a sorted, non-empty sequence, linear between neighbors (type 7 of Hyndman and Fan 1996)."""
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


# Above it the normal differs by less than one part in ten million.
NORMAL_FREEDOM = 1e7
_KNOWN_FREEDOM = 1e5  # of a variance that is as good as known
_TINY = 1e-300
_STEPS = 500


def student_tail(t: float, freedom: float | None) -> float:
    """P(T > t) for Student's t on `freedom` degrees (positive, may be fractional), for the normal on none."""
    if freedom is None or freedom >= NORMAL_FREEDOM:
        return 0.5 * math.erfc(t / math.sqrt(2.0))
    if t < 0.0:
        return 1.0 - student_tail(-t, freedom)
    if math.isinf(t):
        return 0.0
    return 0.5 * _incomplete_beta(freedom / 2.0, 0.5, t, freedom)


def student_ratio_tail(ratio: float, above: float, below: float) -> float:
    """P(F > ratio) for a ratio of two variances on ``above`` and ``below`` degrees of freedom."""
    return _incomplete_beta(below / 2.0, above / 2.0, math.sqrt(above * ratio), below) if ratio > 0.0 else 1.0


def student_excess_tail(ratio: float, freedom: float) -> float:
    """P(χ² / freedom > ratio): of a variance on so many degrees of freedom over the one that it should be."""
    return student_ratio_tail(ratio, freedom, _KNOWN_FREEDOM)


@lru_cache(maxsize=1024)
def student_quantile(share: float, freedom: float | None) -> float:
    """The t below which `share` of the distribution lies; `share` is strictly between 0 and 1."""
    if share < 0.5:
        return -student_quantile(1.0 - share, freedom)
    rest = 1.0 - share
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > rest:
        low, high = high, high * 2.0
    # Newton, kept inside a bracket that halves whenever a step would leave it.
    t = 0.5 * (low + high)
    for _ in range(200):
        excess = student_tail(t, freedom) - rest
        if excess > 0.0:
            low = t
        else:
            high = t
        following = t + excess / _student_density(t, freedom)
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 1e-14 * high:
            return following
        t = following
    return t


def _student_density(t: float, freedom: float | None) -> float:
    if freedom is None or freedom >= NORMAL_FREEDOM:
        return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    scale = math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0)
    shape = (freedom + 1.0) / 2.0 * math.log1p(t * t / freedom)
    return math.exp(scale - shape) / math.sqrt(freedom * math.pi)


def _incomplete_beta(a: float, b: float, t: float, freedom: float) -> float:
    """Regularised incomplete beta I_x(a, b) at x = freedom / (freedom + t²), by Lentz's continued fraction.

    NIST Digital Library of Mathematical Functions 8.17.22; x and 1 − x come from t, so that neither cancels.
    """
    x = freedom / (freedom + t * t)
    y = t * t / (freedom + t * t)
    if y == 0.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, y) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    result = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            result *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return result
