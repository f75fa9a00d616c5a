"""Whether two receipts are launches of one configuration, and whether they are two launches at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest
from itertools import pairwise
from operator import mul
from typing import NamedTuple

from receipts.axes.difference import difference_under
from receipts.axes.lane import Lane
from receipts.receipt import Parsed
from receipts.stats.order_statistics import median

# One launch recorded twice has the same steps: cut, told with other digits, or in another order.
COPIED_STEPS = 60
QUICKEST_STEPS, DISTINCT = 20, 10  # launches whose clock tells steps apart share no such tail
COPIED, ENOUGH = 0.9, 10  # correlation of noise: ten independent differences reach it once in 5,000 pairs
FAR = 4.0  # times the median deviation: no difference weighs more
COMPARED_STEPS = 400  # of each of two launches, when their steps are correlated


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference_under(lane, one, other)
    return not apart.changed and not apart.unknown


def distinct_steps(parsed: Parsed) -> frozenset[tuple[float, ...]]:
    """Step times that no second launch can have: the first, and the quickest in whatever order.

    A clock too coarse to tell steps apart tells no launches apart.
    """
    steps = _steps(parsed)
    if not steps or min(steps) == max(steps):
        return frozenset()
    quickest = tuple(_rounded(step) for step in nsmallest(QUICKEST_STEPS, steps))
    first = tuple(map(_rounded, steps[:COPIED_STEPS]))
    return frozenset({first, quickest} if len(set(quickest)) >= DISTINCT else {first})


class Rhythm(NamedTuple):
    """How many steps a launch has, and the differences of their logarithms, centered and of length 1."""

    steps: int
    differences: tuple[float, ...]


def rhythm(parsed: Parsed) -> Rhythm | None:
    """The rhythm of a launch; None where its steps are too few, or all alike."""
    steps = _steps(parsed)
    # Differences, since warm-up and drift are alike in all launches; logarithms, so that no slow step decides.
    apart = [math.log(y / x) for x, y in pairwise(steps[2:COMPARED_STEPS]) if x > 0 and y > 0]
    if len(steps) < ENOUGH + 3 or len(apart) < ENOUGH or len(set(apart)) == 1:
        return None
    middle = median(apart)
    reach = FAR * median([abs(item - middle) for item in apart])
    if reach:  # all launches fall alike from their warm-up, and rise alike at a checkpoint
        apart = [min(max(item, middle - reach), middle + reach) for item in apart]
    mean = math.fsum(apart) / len(apart)
    length = math.dist(apart, [mean] * len(apart))
    return Rhythm(len(steps), tuple((item - mean) / length for item in apart))


def rise_together(one: Rhythm | None, other: Rhythm | None) -> bool:
    """Whether the steps of two launches go up and down together, as a copy's do, with some noise or scaled."""
    if one is None or other is None or one.steps != other.steps or len(one.differences) != len(other.differences):
        return False
    correlation: float = sum(map(mul, one.differences, other.differences))
    return correlation > COPIED


def _steps(parsed: Parsed) -> Sequence[float]:
    measurement = parsed.receipt.measurement
    return (measurement.step_durations_seconds or measurement.interval_means_seconds or ()) if measurement else ()


def _rounded(step: float) -> float:
    return float(f"{step:.6g}")
