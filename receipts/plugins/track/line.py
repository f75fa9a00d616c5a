"""The history of a line: its launches over time, where the level stepped or drifted, and which axes moved there.

ruptures proposes the places (Killick, Fearnhead, Eckley, JASA 107 (2012) 1590). A place counts if a 99 % interval of
the ratio across it excludes 1, at a level that allows for all places that were tried, and if fewer than 1 % of the
orders of the same launches show as much. The second test holds for any distribution of the launches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts import metrics
from receipts.base.environment import extra
from receipts.metrics import Launch, Metric
from receipts.questions.sides import AS_MEASURED
from receipts.receipt.document import UNFAILED
from receipts.stats.distributions import median
from receipts.stats.equivalence import SMALLEST_EFFECT
from receipts.stats.log_ratio import RatioEstimate, against_floor, pooled, welch
from receipts.store.entry import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipts.axes.lane import Lane
    from receipts.receipt import Parsed
    from receipts.store import Entry, Store

LevelKind = Literal["step", "drift"]
ChangeKind = Literal["step", "drift", "host", "regime"]
CONFIDENCE: Final = 0.95
MAX_LAUNCHES: Final = 500  # of a line, the newest
_REGIME: Final = (*AS_MEASURED, "measurement.window.start", "measurement.window.stop", "measurement.formula")


@dataclass(frozen=True, slots=True)
class Point:
    """A launch of the line: its value in the metric's unit, with the 95 % interval that the line's own spread gives."""

    id: str
    name: str
    started: datetime
    host: str | None
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level: a step before launch ``at``, or a drift from launch ``start`` to before ``stop``.

    ``ratio`` is the level after over the level before, or the end of the drift over its start; ``low`` to ``high`` its
    99 % interval. A step compares launches ``start`` to ``at`` with ``at`` to ``stop``.
    """

    kind: LevelKind
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


@dataclass(frozen=True, slots=True)
class LineChange:
    """A change of the level of a line, and what changed with it.

    ``kind`` is `regime` where it was measured in another way from there on, and `host` where nothing but the host
    changed. ``moved`` are the lineage axes that differ between the launches before and after, ``unknown`` those that
    one of the two does not state. ``last`` is the launch before it, ``first`` the one after.
    """

    kind: ChangeKind
    change: LevelChange
    last: Point
    first: Point
    moved: tuple[str, ...]
    unknown: tuple[str, ...]
    regime: tuple[str, ...]
    worse: bool
    matters: bool

    @property
    def is_incident(self) -> bool:
        """A step for the worse beyond δ; a drift, another host and another way to measure are listed, no more."""
        return self.kind == "step" and self.worse and self.matters


@dataclass(frozen=True, slots=True)
class History:
    """A line of one metric, the oldest launch first; ``left_out`` counts launches that are no samples of it.

    ``hosts`` are the effects of hosts as ratios, where launches alternate between hosts; they are taken out before
    changes are looked for.
    """

    line: int
    lane: str
    kind: str
    metric: str
    points: tuple[Point, ...]
    left_out: int
    hosts: dict[str, float]
    changes: tuple[LineChange, ...]
    delta: float

    @property
    def logs(self) -> list[float]:
        """The logs of the values since the last step."""
        start = max((item.change.at for item in self.changes if item.change.kind == "step"), default=0)
        return [math.log(point.value) for point in self.points[start:]]

    @property
    def level(self) -> tuple[float, int] | None:
        """The geometric mean since the last step, and how many launches it is of; None without launches."""
        logs = self.logs
        return (math.exp(math.fsum(logs) / len(logs)), len(logs)) if logs else None


def history_of(store: Store, like: Parsed, lane: Lane, metric: str, until: datetime | None = None) -> History:
    """The history of the line that a receipt belongs to; the receipt need not be stored."""
    from receipts.axes.configuration import configuration

    configured = configuration(like, lane)
    entries = store.query.line(configured, like.receipt.run.kind, until)
    return history(entries, configured.line or 0, lane, metrics.get(metric), store.parsed)


def history(entries: Sequence[Entry], line: int, lane: Lane, metric: Metric, read: Callable[[str], Parsed]) -> History:
    """The history of stored launches of one line, the oldest first. ``read`` gives a document by its id.

    Documents are read at changes alone, and where the metric has no column.
    """
    points = [point for item in entries[-MAX_LAUNCHES:] if (point := _point(item, lane, metric, read)) is not None]
    logs, hosts = [math.log(point.value) for point in points], [point.host for point in points]
    effects = host_effects(logs, hosts)
    adjusted = [log - effects.get(host, 0.0) for log, host in zip(logs, hosts, strict=True)]
    steps = changes(adjusted)
    delta = lane.smallest_effect(metric.name)
    delta = SMALLEST_EFFECT if delta is None else delta
    return History(
        line=line,
        lane=lane.name if not entries else entries[-1].lane,
        kind=entries[-1].kind if entries else "training",
        metric=metric.name,
        points=tuple(_with_intervals(points, adjusted, steps)),
        left_out=len(entries[-MAX_LAUNCHES:]) - len(points),
        hosts={str(host): math.exp(effect) for host, effect in effects.items()},
        changes=tuple(_explained(item, points, metric, lane, delta, read) for item in steps),
        delta=delta,
    )


def _point(item: Entry, lane: Lane, metric: Metric, read: Callable[[str], Parsed]) -> Point | None:
    """A launch as a point; None where it is no sample of the metric."""
    if item.outcome not in UNFAILED or item.provenance != "measured" or not item.is_sample(metric.taint):
        return None
    if metric.name in METRICS and not (metric.summary == "step" and item.rate_source is None):
        value, source = getattr(item, metric.name), item.rate_source
    else:  # a launch that states no tokens has no rate in the store, and may have kept its steps
        reading = Launch(read(item.id), lane).read(metric)
        value, source = reading.value, reading.source
    if metric.summary in ("step", "rate") and source != "steps":
        return None
    if value is None or not 0.0 < value < math.inf:
        return None
    return Point(item.id, item.name, item.started, item.host, value)


def _with_intervals(points: Sequence[Point], adjusted: Sequence[float], steps: Sequence[LevelChange]) -> list[Point]:
    """The points with intervals from the spread of the launches between changes; drifting ones have none."""
    drifting = {i for item in steps if item.kind == "drift" for i in range(item.start, item.stop)}
    bounds = sorted({0, len(points), *(item.at for item in steps)})
    groups = [[adjusted[i] for i in range(a, b) if i not in drifting] for a, b in pairwise(bounds)]
    sigma = pooled(groups)
    if sigma is None:
        return list(points)
    half = RatioEstimate(0.0, sigma.value, sigma.df).half_width(CONFIDENCE)
    widen = math.exp(half)
    return [
        point if i in drifting else replace(point, low=point.value / widen, high=point.value * widen)
        for i, point in enumerate(points)
    ]


def _explained(
    item: LevelChange, points: Sequence[Point], metric: Metric, lane: Lane, delta: float, read: Callable[[str], Parsed]
) -> LineChange:
    """A change with what moved between the launches on its two sides."""
    from receipts.axes.difference import difference_under

    drift = item.kind == "drift"
    last, first = (points[item.start], points[item.stop - 1]) if drift else (points[item.at - 1], points[item.at])
    before, after = read(last.id), read(first.id)
    apart = difference_under(lane, before, after)
    regime = tuple(path for path in _REGIME if before.stated.get(path) != after.stated.get(path))
    moved = tuple(change.axis for change in apart.changed)
    kind: ChangeKind = item.kind
    if not drift:
        if regime:
            kind = "regime"
        elif not moved and not apart.unknown and _other_hosts(points, item):
            kind = "host"
    return LineChange(
        kind=kind,
        change=item,
        last=last,
        first=first,
        moved=(*moved, *(("host",) if not drift and _other_hosts(points, item) else ())),
        unknown=tuple(change.axis for change in apart.unknown),
        regime=regime,
        worse=(item.ratio > 1.0) == (metric.better == "lower"),
        matters=abs(item.log) > math.log1p(delta),
    )


def _other_hosts(points: Sequence[Point], item: LevelChange) -> bool:
    """Whether no host ran on both sides of a step."""
    before = {point.host for point in points[item.start : item.at]}
    after = {point.host for point in points[item.at : item.stop]}
    return None not in before | after and before.isdisjoint(after)


CONFIDENCE_OF_CHANGE: Final = 0.99
MIN_LAUNCHES: Final = 2  # launches on a side: one alone may be an outlier, so a change waits for a second
MIN_IN_DRIFT: Final = 6
_OWN_SPREAD: Final = 3  # from here on a side shows its own spread
_BEYOND_ORDERS: Final = 2.0  # half intervals: two launches after eight have too few orders to show 1 %
_ORDERS: Final = 999
_MIN_SWITCHES: Final = 3
_SEED: Final = 25
_CAP: Final = 6.0  # σ beyond its neighbors
_PENALTY: Final = 2.0  # of σ² ln n: low, since what is proposed is tested


def changes(logs: Sequence[float]) -> tuple[LevelChange, ...]:
    """Changes in a series of log locations, a launch each, the oldest first.

    A lone launch far from both its neighbors is capped, as a lone stall of a launch is: it is not a change.
    """
    if len(logs) < 2 * MIN_LAUNCHES or min(logs) == max(logs):
        return ()
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
            half = estimate.half_width(1.0 - (1.0 - CONFIDENCE_OF_CHANGE) / (len(logs) - 1))
            strengths.append(abs(estimate.log_ratio) / half if half else math.inf)
        weakest = min(range(len(windows)), key=strengths.__getitem__)
        if strengths[weakest] > 1.0:
            shares = [
                _orders_share(logs, *window) if strength < _BEYOND_ORDERS else 0.0
                for window, strength in zip(windows, strengths, strict=True)
            ]
            weakest = max(range(len(windows)), key=shares.__getitem__)
            if shares[weakest] <= 1.0 - CONFIDENCE_OF_CHANGE:
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
    if abs(estimate.log_ratio) <= estimate.half_width(CONFIDENCE_OF_CHANGE):
        return None
    return _change("drift", start, start, stop, estimate)


def _change(kind: LevelKind, at: int, start: int, stop: int, estimate: RatioEstimate) -> LevelChange:
    center, half = estimate.log_ratio, estimate.half_width(CONFIDENCE_OF_CHANGE)
    return LevelChange(kind, at, start, stop, math.exp(center), math.exp(center - half), math.exp(center + half))
