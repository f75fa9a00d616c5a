"""In which order the launches of two sides ran, and which of them pair up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Literal

from receipts.stats.order_statistics import median

OrderKind = Literal["interleaved", "sequential", "unknown"]
Pairs = tuple[tuple[int, int], ...]
Sides = tuple[list[float], list[float]]
OUTLYING = 10.0  # median deviations, which are seven standard deviations of normal values
ROUNDING = 1e-9  # in logs: launches that lie no further apart differ by rounding alone
BREAK = 3.0  # a gap this many times the usual one may have moved the level, and ends what one line can follow


def order_kind(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> OrderKind:
    """Whether the sides took turns (ABAB, ABBA), ran one after the other (AABB), or neither can be said.

    `times_a` and `times_b` are start times in seconds on one clock. A missing time or a tie leaves the order
    unknown. One launch per side is sequential: nothing in it would cancel a drift.
    """
    sides = _in_order(times_a, times_b)
    if sides is None:
        return "unknown"
    letters = [side for side, _ in sides]
    changes = sum(a != b for a, b in pairwise(letters))
    if changes == 1:
        return "sequential"
    # Of an odd number one launch, the first or the last, has no partner.
    halves = (sides,) if len(sides) % 2 == 0 else (sides[:-1], sides[1:])
    if changes == len(letters) - 1 or any(_neighbours(half) is not None for half in halves):
        return "interleaved"
    return "unknown"


def interleaved_pairs(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> Pairs | None:
    """Positions (in A, in B) of launches that ran side by side; none where the launches do not pair up so.

    Launches are taken two by two in the order they ran: every two must be one of each side.
    """
    sides = _in_order(times_a, times_b)
    if sides is None or len(sides) < 4:
        return None
    return _neighbours(sides)


def in_one_go(times_a: Sequence[float], times_b: Sequence[float]) -> bool:
    """Whether the launches started at a steady pace, so that a drift of the machine can be taken for a line."""
    times = sorted((*times_a, *times_b))
    gaps = sorted(after - before for before, after in pairwise(times))
    return bool(gaps) and gaps[-1] <= BREAK * gaps[len(gaps) // 2]


def without_slope(a: Sequence[float], b: Sequence[float], times_a: Sequence[float], times_b: Sequence[float]) -> Sides:
    """The logs of two sides that took turns, without the drift that both show: the median slope within a side."""
    sides = ((a, times_a), (b, times_b))
    slopes = [
        (logs[j] - logs[i]) / (times[j] - times[i])
        for logs, times in sides
        for i, j in combinations(range(len(logs)), 2)
        if times[i] != times[j]
    ]
    slope, start = median(slopes), min((*times_a, *times_b))
    one, other = ([log - slope * (time - start) for log, time in zip(*side, strict=True)] for side in sides)
    return one, other


def outliers(*groups: Sequence[float]) -> int:
    """How many values lie further from the middle of their group than `OUTLYING` times the usual distance from it.

    The usual distance is the larger of the group's own and that of all: one side may vary more than the other.
    """
    apart = [[abs(value - median(group)) for value in group] for group in groups]
    usual = median([distance for group in apart for distance in group])
    limits = [OUTLYING * max(usual, median(group)) for group in apart]
    return sum(distance > limit > ROUNDING for group, limit in zip(apart, limits, strict=True) for distance in group)


def _in_order(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> list[tuple[str, int]] | None:
    timed: list[tuple[float, str, int]] = []
    for side, times in (("A", times_a), ("B", times_b)):
        for i, time in enumerate(times):
            if time is None or not math.isfinite(time):
                return None
            timed.append((time, side, i))
    timed.sort()
    if not times_a or not times_b or any(x[0] == y[0] for x, y in pairwise(timed)):
        return None
    return [(side, i) for _, side, i in timed]


def _neighbours(sides: Sequence[tuple[str, int]]) -> Pairs | None:
    if len(sides) % 2:
        return None
    pairs = []
    for i in range(0, len(sides), 2):
        two = dict(sides[i : i + 2])
        if len(two) != 2:
            return None
        pairs.append((two["A"], two["B"]))
    return tuple(pairs)
