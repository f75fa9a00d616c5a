"""Whether two receipts are launches of one configuration, and whether they are two launches at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest
from itertools import pairwise

from receipts.axes.difference import difference
from receipts.axes.lane import Lane
from receipts.receipt import Parsed

# One launch recorded twice has the same steps: cut, told with other digits, or in another order.
COPIED_STEPS = 60
QUICKEST_STEPS, DISTINCT = 20, 10  # launches whose clock tells steps apart share no such tail
COPIED, ENOUGH = 0.9, 10  # correlation of noise: ten independent differences reach it once in 5,000 pairs
COMPARED_STEPS = 400  # of each of two launches, when their steps are correlated


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference(one, other, tuple(lane.not_applicable))
    return not apart.changed and not apart.unknown


def copied_pair(launches: Sequence[Parsed]) -> tuple[Parsed, Parsed] | None:
    """Two launches with the same step times, in order or shuffled: one launch that was recorded twice."""
    seen: dict[tuple[float, ...], Parsed] = {}
    for parsed in launches:
        for steps in set(distinct_steps(parsed)):  # one, where the steps are in order and few
            if steps in seen:
                return seen[steps], parsed
            seen[steps] = parsed
    return None


def distinct_steps(parsed: Parsed) -> tuple[tuple[float, ...], ...]:
    """Step times that no second launch can have: the first, and the quickest in whatever order.

    A clock too coarse to tell steps apart tells no launches apart.
    """
    steps = _steps(parsed)
    if not steps or min(steps) == max(steps):
        return ()
    quickest = tuple(_rounded(step) for step in nsmallest(QUICKEST_STEPS, steps))
    return (tuple(map(_rounded, steps[:COPIED_STEPS])), *([quickest] if len(set(quickest)) >= DISTINCT else []))


def rise_together(one: Parsed, other: Parsed) -> bool:
    """Whether the steps of two launches go up and down together, as a copy's do, with some noise or scaled."""
    series = [_steps(item) for item in (one, other)]
    if len(series[0]) != len(series[1]) or len(series[0]) < ENOUGH + 3:
        return False
    # Differences, since warm-up and drift are alike in all launches; logarithms, so that no slow step decides.
    a, b = ([math.log(y / x) for x, y in pairwise(steps[2:COMPARED_STEPS]) if x > 0 and y > 0] for steps in series)
    if len(a) != len(b) or len(a) < ENOUGH or len(set(a)) == 1 or len(set(b)) == 1:
        return False
    from statistics import correlation  # takes longer to import than most rules to judge

    return correlation(a, b) > COPIED


def _steps(parsed: Parsed) -> Sequence[float]:
    measurement = parsed.receipt.measurement
    return (measurement.step_durations_seconds or measurement.interval_means_seconds or ()) if measurement else ()


def _rounded(step: float) -> float:
    return float(f"{step:.6g}")
