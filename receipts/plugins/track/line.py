"""The history of a line: its launches over time, where the level changed, and which axes moved there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from receipts import metrics
from receipts.metrics import Launch, Metric
from receipts.plugins.track.change_points import LevelChange, changes, host_effects
from receipts.questions.sides import AS_MEASURED
from receipts.receipt.document import UNFAILED
from receipts.stats.equivalence import SMALLEST_EFFECT
from receipts.stats.log_ratio import RatioEstimate, pooled
from receipts.store.entry import METRICS

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.receipt import Parsed
    from receipts.store import Entry, Store

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
