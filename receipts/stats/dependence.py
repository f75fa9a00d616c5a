"""The standard error of a launch's median while its steps remember each other.

Batch means alone take the batches for independent, and a launch of 200 steps has no room for batches that are: at a
lag-1 autocorrelation of .9 they called one stationary launch in four unsteady.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BATCHES_A_THIRD = 7
FEWEST_STEPS = 6  # of a third: below, a line and a correlation cannot both be taken off
MOST_CORRELATION = 0.95
LEAST_LEFT = 0.3
MEDIAN_AGAINST_MEAN = math.sqrt(math.pi / 2.0)  # their errors' ratio for normal steps


def median_error(thirds: Sequence[Sequence[float]]) -> float:
    """Standard error of the median of all thirds together.

    The larger of what batch means and what an AR(1) model of the steps give, each from within the thirds only: a
    shift between thirds is what is being looked for, and must not widen its own tolerance. For the same reason the
    model is that of the middle third by variance, since a level that changes within a third looks like memory.
    """
    count = sum(len(third) for third in thirds)
    if count == 0:
        return 0.0
    variances = sorted(_long_run_variance(third) for third in thirds)
    modelled = math.sqrt(variances[len(variances) // 2] / count)
    return MEDIAN_AGAINST_MEAN * max(modelled, _batch_means_error(thirds))


def _long_run_variance(steps: Sequence[float]) -> float:
    """Variance of the mean of many such steps, times their number: σ²·(1 + φ)/(1 − φ) around their own line.

    The lag-1 correlation is freed of its bias of −(2 + 4φ)/n after a line was taken off (Kendall 1954, Marriott and
    Pope 1954, to first order), and the variance of what the few steps' own line took away.
    """
    count = len(steps)
    if count < FEWEST_STEPS:
        return 0.0
    residuals = _off_their_line(steps)
    squares = math.fsum(value * value for value in residuals)
    if squares == 0.0:
        return 0.0
    correlation = math.fsum(a * b for a, b in pairwise(residuals)) / squares
    correlation = min(MOST_CORRELATION, max(0.0, (count * correlation + 2.0) / (count - 4.0)))
    memory = (1.0 + correlation) / (1.0 - correlation)
    return squares / (count - 2.0) * memory / max(LEAST_LEFT, 1.0 - 2.0 * memory / count)


def _off_their_line(steps: Sequence[float]) -> list[float]:
    count = len(steps)
    middle = (count - 1) / 2.0
    mean = math.fsum(steps) / count
    slope = math.fsum((i - middle) * (value - mean) for i, value in enumerate(steps))
    slope /= count * (count * count - 1) / 12.0
    return [value - mean - slope * (i - middle) for i, value in enumerate(steps)]


def _batch_means_error(thirds: Sequence[Sequence[float]]) -> float:
    """Standard error of the mean of all thirds together, from batch means that are compared within their third."""
    squares = 0.0
    batches = freedom = 0
    for third in thirds:
        size = len(third) // BATCHES_A_THIRD
        if size == 0:
            continue
        means = [sum(third[i * size : (i + 1) * size]) / size for i in range(BATCHES_A_THIRD)]
        centre = sum(means) / BATCHES_A_THIRD
        squares += sum((mean - centre) ** 2 for mean in means)
        batches += BATCHES_A_THIRD
        freedom += BATCHES_A_THIRD - 1
    return math.sqrt(squares / freedom / batches) if freedom else 0.0
