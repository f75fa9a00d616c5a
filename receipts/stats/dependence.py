"""How far the medians of a launch's thirds lie apart by chance while its steps remember each other.

Steps of one launch are close to an AR(1) process, whose correlation a short launch cannot tell: it is therefore taken
at its upper bound, and a wandering level is not called a change of level. Bars and simulation: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

MOST_CORRELATION = 0.9
BOUND = 2.0  # standard errors above the estimate
FEWEST_STEPS = 8  # of two thirds: below, they do not show their correlation
LEAST_LEFT = 0.05


def third_error(thirds: Sequence[Sequence[float]]) -> float:
    """Standard error of the mean of one third, from within the thirds alone.

    A shift between thirds is what is being looked for, and must not widen its own tolerance. For the same reason the
    third that varies most is left out: a level that changes within it looks like memory.
    """
    sums = sorted(_sums(third) for third in thirds)[:2]
    squares, products = (math.fsum(item[i] for item in sums) for i in (0, 1))
    count = sum(len(third) for third in thirds) * 2.0 / 3.0
    if squares <= 0.0:
        return 0.0
    correlation = _correlation(products / squares, count)
    share = mean_variance(count / 2.0, correlation)
    # The third's own mean took its part of the variance away.
    return math.sqrt(squares / count * share / max(LEAST_LEFT, 1.0 - share))


def mean_variance(count: float, correlation: float) -> float:
    """Variance of the mean of `count` AR(1) steps of variance 1 (Box, Jenkins and Reinsel 1994, section 2.1)."""
    left = 1.0 - correlation
    memory = 2.0 * correlation * (1.0 - correlation**count) / (count * left * left)
    variance: float = ((1.0 + correlation) / left - memory) / count
    return variance


def _correlation(lag1: float, count: float) -> float:
    """The upper bound of the lag-1 correlation, freed of its bias of −(1 + 4φ)/n a third (Kendall 1954)."""
    if count <= FEWEST_STEPS:
        return MOST_CORRELATION
    freed = max(-1.0, min(1.0, (count * lag1 + 2.0) / (count - FEWEST_STEPS)))
    bound = freed + BOUND * math.sqrt(max(LEAST_LEFT, 1.0 - freed * freed) / count)
    return max(0.0, min(MOST_CORRELATION, bound))


def _sums(steps: Sequence[float]) -> tuple[float, float]:
    """Squares around the mean, and products of neighbours."""
    mean = math.fsum(steps) / len(steps)
    offsets = [value - mean for value in steps]
    return math.fsum(value * value for value in offsets), math.fsum(a * b for a, b in pairwise(offsets))
