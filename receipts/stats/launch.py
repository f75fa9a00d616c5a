"""What one launch contributes: a location, and the figures beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from receipts.stats.order_statistics import quantile
from receipts.stats.steady import Segment

INDEPENDENT = 0.1
FEWEST_BATCHES = 10


class LaunchSummary(NamedTuple):
    """The steps of a segment in numbers; durations in seconds.

    `median` is the launch's location. A rate for somebody who pays for wall time divides by `mean`, stalls in.
    `cv` is the standard deviation over the mean, `lag1` the autocorrelation of neighbouring steps; both are none
    where they are undefined (one step, no variation). `first` and `last` are positions of the first and the last
    step that count.
    """

    n: int
    median: float
    mean: float
    p95: float
    p99: float
    cv: float | None
    lag1: float | None
    first: int
    last: int


def summarize(durations: Sequence[float], segment: Segment) -> LaunchSummary | None:
    """Summarize the steps of `segment`; none where it holds no step."""
    values = segment.of(durations)
    if not values:
        return None
    ordered = sorted(values)
    mean = math.fsum(values) / len(values)
    left_out = frozenset(segment.left_out)
    counted = (i for i in range(segment.start, segment.stop) if i not in left_out)
    counted_back = (i for i in range(segment.stop - 1, segment.start - 1, -1) if i not in left_out)
    return LaunchSummary(
        n=len(values),
        median=quantile(ordered, 0.5),
        mean=mean,
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        cv=_variation(values, mean),
        lag1=lag1(values),
        first=next(counted),
        last=next(counted_back),
    )


def _variation(values: Sequence[float], mean: float) -> float | None:
    if len(values) < 2 or mean <= 0.0:
        return None
    squares = math.fsum([(value - mean) ** 2 for value in values])
    return math.sqrt(squares / (len(values) - 1)) / mean


def lag1(values: Sequence[float]) -> float | None:
    """Autocorrelation of neighbours; none for fewer than three values, or where all are equal."""
    if len(values) < 3 or min(values) == max(values):
        return None
    mean = math.fsum(values) / len(values)
    offsets = [value - mean for value in values]
    squares = math.fsum(map(mul, offsets, offsets))
    products = math.fsum(map(mul, offsets, offsets[1:]))
    return products / squares if squares > 0.0 else None


def independent_batch(durations: Sequence[float]) -> int | None:
    """How many steps make a batch whose means are nearly independent; none where the launch is too short to tell.

    Ferrari's subsessions: the batch doubles until the means' lag-1 autocorrelation is at most 0.1, while there are
    at least ten batches. A diagnostic: no verdict rests on it.
    """
    size = 1
    means = list(durations)
    while len(means) >= FEWEST_BATCHES:
        correlation = lag1(means)
        if correlation is None or correlation <= INDEPENDENT:
            return size
        means = [(means[i] + means[i + 1]) / 2.0 for i in range(0, len(means) - 1, 2)]
        size *= 2
    return None
