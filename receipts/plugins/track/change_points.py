"""Change points of a series of launches: where its level stepped, and where it drifted.

ruptures proposes the places (Killick, Fearnhead, Eckley, JASA 107 (2012) 1590). A place counts if a 99 % interval of
the ratio across it excludes 1, at a level that allows for all places that were tried, and if fewer than 1 % of the
orders of the same launches show as much. The second test holds for any distribution of the launches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.base.environment import extra
from receipts.stats.distributions import median
from receipts.stats.log_ratio import RatioEstimate, against_floor, pooled, welch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["step", "drift"]
CONFIDENCE: Final = 0.99
MIN_LAUNCHES: Final = 2  # launches on a side: one alone may be an outlier, so a change waits for a second
MIN_IN_DRIFT: Final = 6
_OWN_SPREAD: Final = 3  # from here on a side shows its own spread
_BEYOND_ORDERS: Final = 2.0  # half intervals: two launches after eight have too few orders to show 1 %
_ORDERS: Final = 999
_MIN_SWITCHES: Final = 3
_SEED: Final = 25
_CAP: Final = 6.0  # σ beyond its neighbors
_PENALTY: Final = 2.0  # of σ² ln n: low, since what is proposed is tested


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level: a step before launch ``at``, or a drift from launch ``start`` to before ``stop``.

    ``ratio`` is the level after over the level before, or the end of the drift over its start; ``low`` to ``high`` its
    99 % interval. A step compares launches ``start`` to ``at`` with ``at`` to ``stop``.
    """

    kind: Kind
    at: int
    start: int
    stop: int
    ratio: float
    low: float
    high: float

    @property
    def log(self) -> float:
        """The natural log of the ratio."""
        return math.log(self.ratio)


def changes(logs: Sequence[float]) -> tuple[LevelChange, ...]:
    """Changes in a series of log locations, a launch each, the oldest first.

    A lone launch far from both its neighbors is capped, as a lone stall of a launch is: it is not a change.
    """
    if len(logs) < 2 * MIN_LAUNCHES or min(logs) == max(logs):
        return ()
    # Each launch that lies far beyond both neighbors is moved nearer to the closer one.
    reach, capped = _CAP * _scatter(logs), list(logs)
    for i in range(1, len(logs) - 1):
        middle = sorted(logs[i - 1 : i + 2])[1]
        if reach and abs(logs[i] - middle) > reach:
            capped[i] = middle + math.copysign(reach, logs[i] - middle)
    logs = capped
    # Places where the level may have stepped, with both ends of the series.
    import numpy as np

    ruptures: Any = extra("ruptures", "history")
    count = len(logs)
    series = np.asarray(logs)
    sigma = _scatter(logs) or float(np.std(series))
    scaled = ((series - series.mean()) / sigma).reshape(-1, 1)
    search = ruptures.KernelCPD(kernel="linear", min_size=MIN_LAUNCHES).fit(scaled)
    proposed = [0, *(int(place) for place in search.predict(pen=_PENALTY * math.log(count)))]
    result: list[LevelChange] = []
    for run in _monotone(logs, _confirmed(logs, list(proposed))):
        drift = _drift(logs, sorted({*run, *(at for at in proposed if run[0] < at < run[-1])}))
        if drift is not None:
            result.append(drift)
            continue
        for start, at, stop in zip(run, run[1:], run[2:], strict=False):
            result.append(_change("step", at, start, stop, _estimate(logs, start, at, stop, separate=True)))
    return tuple(result)


def host_effects(logs: Sequence[float], hosts: Sequence[str | None]) -> dict[str | None, float]:
    """How far each host lies from the others, in logs, where launches alternate between hosts.

    Least squares over neighbors in time, so that a step of the line has no part in it. A host that was entered and left
    fewer than three times cannot be told from a change of the line; it has no effect here.
    """
    switches = [(i, i + 1) for i in range(len(hosts) - 1) if hosts[i] != hosts[i + 1]]
    counted = Counter(hosts[at] for switch in switches for at in switch)
    often = sorted(host for host, count in counted.items() if host is not None and count >= _MIN_SWITCHES)
    numbers: dict[str | None, int] = {host: number for number, host in enumerate(often)}
    kept = [(i, j) for i, j in switches if hosts[i] in numbers and hosts[j] in numbers]
    if not kept:
        return {}
    import numpy as np

    matrix, values = np.zeros((len(kept), len(numbers))), np.zeros(len(kept))
    for row, (i, j) in enumerate(kept):
        matrix[row][numbers[hosts[j]]] += 1.0
        matrix[row][numbers[hosts[i]]] -= 1.0
        values[row] = logs[j] - logs[i]
    # The solution of least norm puts the mean of the effects at zero. The normal equations are as small as the hosts
    # are few, and their whole numbers lose nothing.
    effects = np.linalg.lstsq(matrix.T @ matrix, matrix.T @ values, rcond=1e-9)[0]
    return {host: float(effect) for host, effect in zip(numbers, effects, strict=True)}


def _scatter(logs: Sequence[float]) -> float:
    """σ from the jumps between neighbors, which steps and outliers hardly move (median absolute deviation)."""
    jumps = [abs(after - before) for before, after in pairwise(logs)]
    return median(jumps) / (0.6745 * math.sqrt(2.0))


def _confirmed(logs: Sequence[float], bounds: list[int]) -> list[int]:
    """The places that count, with both ends: the weakest of those that do not is dropped until all do."""
    while len(bounds) > 2:
        windows = [tuple(bounds[i : i + 3]) for i in range(len(bounds) - 2)]
        strengths = []
        for start, at, stop in windows:
            # The log ratio over half its interval, at a level that allows for every place of the series.
            estimate = _estimate(logs, start, at, stop, separate=False)
            half = estimate.half_width(1.0 - (1.0 - CONFIDENCE) / (len(logs) - 1))
            strengths.append(abs(estimate.log_ratio) / half if half else math.inf)
        weakest = min(range(len(windows)), key=strengths.__getitem__)
        if strengths[weakest] > 1.0:
            shares = [
                _orders_share(logs, *window) if strength < _BEYOND_ORDERS else 0.0
                for window, strength in zip(windows, strengths, strict=True)
            ]
            weakest = max(range(len(windows)), key=shares.__getitem__)
            if shares[weakest] <= 1.0 - CONFIDENCE:
                return bounds
        del bounds[weakest + 1]
    return bounds


def _estimate(logs: Sequence[float], start: int, at: int, stop: int, *, separate: bool) -> RatioEstimate:
    """The log ratio across a place, by one spread of both sides, or by ``separate`` ones where neither is short."""
    before, after = logs[start:at], logs[at:stop]
    sigma = pooled((before, after))
    if sigma is None or (separate and min(len(before), len(after)) >= _OWN_SPREAD):
        return welch(before, after)
    return against_floor(before, after, sigma)


def _orders_share(logs: Sequence[float], start: int, at: int, stop: int) -> float:
    """The share of the orders of these launches in which some place shows as large a step: a permutation test."""
    import numpy as np

    part = np.asarray(logs[start:stop])
    part = part - part.mean()
    count = len(part)
    shuffled = np.random.default_rng(_SEED).permuted(np.tile(part, (_ORDERS, 1)), axis=1)
    observed = _largest(part.reshape(1, -1), count)[0]
    return float(1 + np.sum(_largest(shuffled, count) >= observed * (1.0 - 1e-9))) / (_ORDERS + 1)


def _largest(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """The largest between-sum of squares over all places, of each row; rows have mean 0."""
    import numpy as np

    places = np.arange(MIN_LAUNCHES, count - MIN_LAUNCHES + 1)
    sums = np.cumsum(rows, axis=1)[:, places - 1]
    largest: NDArray[Any] = np.max(sums**2 * (count / (places * (count - places))), axis=1)
    return largest


def _monotone(logs: Sequence[float], bounds: Sequence[int]) -> list[list[int]]:
    """The places in runs that step in one direction, each with its ends: what one drift may explain."""
    levels = [math.fsum(logs[a:b]) / (b - a) for a, b in pairwise(bounds)]
    runs = [list(bounds[:2])]
    for i in range(1, len(levels)):
        if i > 1 and (levels[i] > levels[i - 1]) != (levels[i - 1] > levels[i - 2]):
            runs.append(list(bounds[i - 1 : i + 1]))
        runs[-1].append(bounds[i + 1])
    return runs


def _drift(logs: Sequence[float], run: Sequence[int]) -> LevelChange | None:
    """The drift that explains a run of steps better than the steps do, by Schwarz's criterion, at 99 %."""
    start, stop = run[0], run[-1]
    count = stop - start
    if count < MIN_IN_DRIFT:
        return None
    part = logs[start:stop]
    times = [i - (count - 1) / 2.0 for i in range(count)]
    spread = math.fsum(time * time for time in times)
    mean = math.fsum(part) / count
    slope = math.fsum(time * value for time, value in zip(times, part, strict=True)) / spread
    of_line = math.fsum((value - mean - slope * time) ** 2 for time, value in zip(times, part, strict=True))
    of_steps = 0.0
    for a, b in pairwise(run):
        level = math.fsum(logs[a:b]) / (b - a)
        of_steps += math.fsum((value - level) ** 2 for value in logs[a:b])
    extra_parameters = 2 * (len(run) - 2) - 1  # a place and a level for each step, against one slope
    penalty = extra_parameters * math.log(count) if len(run) > 2 else -math.log(count)
    if of_line <= 0.0 or count * math.log(of_line / max(of_steps, 1e-300)) > penalty:
        return None
    error = math.sqrt(of_line / (count - 2) / spread) * (count - 1)
    estimate = RatioEstimate(slope * (count - 1), error, count - 2.0)
    if abs(estimate.log_ratio) <= estimate.half_width(CONFIDENCE):
        return None
    return _change("drift", start, start, stop, estimate)


def _change(kind: Kind, at: int, start: int, stop: int, estimate: RatioEstimate) -> LevelChange:
    center, half = estimate.log_ratio, estimate.half_width(CONFIDENCE)
    return LevelChange(kind, at, start, stop, math.exp(center), math.exp(center - half), math.exp(center + half))
