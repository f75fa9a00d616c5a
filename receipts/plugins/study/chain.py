"""A chain of hops between configurations: what each axis gave on it, and what two axes gave together.

A configuration's place is the mean of the logs of its launches. A hop's gain is the difference of two places, so that
the gains of a chain add to that of its ends exactly, whatever order the launches ran in. One receipt speaks for a
configuration, and every hop on it shares the same launches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.axes import Member
from receipts.axes.configuration import Configuration, configuration
from receipts.judging.effect import noise_of
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison
from receipts.metrics import Launch, Metric
from receipts.questions.comparisons import Comparisons
from receipts.questions.noise import MIN_LAUNCHES_OF_FLOOR
from receipts.receipt import Parsed
from receipts.stats import effect as effects
from receipts.stats.equivalence import CONFIDENCE, MIN_LAUNCHES
from receipts.stats.log_ratio import Sigma, contrast

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.store import Store


_KEPT: Final = ("steps", "memory")  # sources of numbers that were read from what a launch left


@dataclass(frozen=True, slots=True)
class Values:
    """One metric of the launches of a configuration. ``measured``: none of them is merely stated.

    ``logs`` is empty if some launch has no positive number.
    """

    logs: tuple[float, ...]
    measured: bool

    @property
    def place(self) -> float | None:
        """The mean of the logs; None if there is none."""
        return math.fsum(self.logs) / len(self.logs) if self.logs else None


def values(launches: Sequence[Launch], metric: Metric) -> Values:
    """A metric of these launches."""
    readings = [launch.read(metric) for launch in launches]
    numbers = [item.value for item in readings if item.value is not None and 0.0 < item.value < math.inf]
    if len(numbers) < len(readings):
        return Values((), False)
    kept = metric.summary in ("step", "rate", "memory")
    measured = not kept or all(item.source in _KEPT for item in readings)
    return Values(tuple(math.log(value) for value in numbers), measured)


class HopGain(NamedTuple):
    """The metric of one configuration over another's: its log, and a 95 % interval of the log where there is one.

    ``measured`` is False if numbers are as stated: then there is no interval.
    """

    log: float
    low: float | None
    high: float | None
    measured: bool

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.log)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ratio's interval."""
        return None if self.low is None or self.high is None else (math.exp(self.low), math.exp(self.high))


def gain_of(a: Values, b: Values, sigma: Sigma | None) -> HopGain | None:
    """What B has over A; None if a side has no number. Welch on the logs, or the noise floor for few launches."""
    if a.place is None or b.place is None:
        return None
    log = b.place - a.place
    if not (a.measured and b.measured):
        return HopGain(log, None, None, measured=False)
    effect = effects.compare([math.exp(item) for item in a.logs], [math.exp(item) for item in b.logs], sigma=sigma)
    if effect.low is None or effect.high is None:
        return HopGain(log, None, None, measured=True)
    return HopGain(log, math.log(effect.low), math.log(effect.high), measured=True)


def exact_gain(a: Values, b: Values) -> HopGain | None:
    """The same for a quantity that equal launches never differ in: its interval has no width."""
    if a.place is None or b.place is None:
        return None
    log = b.place - a.place
    certain = a.measured and b.measured and len(set(a.logs)) == len(set(b.logs)) == 1
    return HopGain(log, log, log, measured=True) if certain else HopGain(log, None, None, a.measured and b.measured)


Corners = tuple[Values, Values, Values, Values]
_INTERACTION: Final = (1.0, -1.0, -1.0, 1.0)


def gain_together(corners: Corners, sigma: Sigma | None) -> HopGain | None:
    """What two axes have together over the product of both apart, from a 2×2; None without numbers.

    Corners are neither axis moved, the first, the second, both. The spread is the launches' own where every corner has
    three, with Satterthwaite's degrees of freedom (Welch 1947), else the noise floor's.
    """
    if any(item.place is None for item in corners):
        return None
    groups = [item.logs for item in corners]
    own = contrast(groups, _INTERACTION) if min(map(len, groups)) >= MIN_LAUNCHES else None
    if own is not None and own.error > 0.0:
        estimate, known = own, True
    else:
        known = sigma is not None and sigma.value > 0.0
        estimate = contrast(groups, _INTERACTION, sigma or Sigma(0.0, None, "declared"))
    measured = all(item.measured for item in corners)
    log, half = estimate.log_ratio, estimate.half_width(CONFIDENCE)
    if not measured or not known:
        return HopGain(log, None, None, measured)
    return HopGain(log, log - half, log + half, measured=True)


@dataclass(frozen=True)
class BridgePoint:
    """A configuration with the receipt that speaks for it, and its launches that count, that one first.

    ``pool`` are all of its launches, of which those of the ids ``named`` count whatever they are.
    """

    configuration: Configuration
    parsed: Parsed
    launches: tuple[Parsed, ...]
    values: Values
    pool: tuple[Parsed, ...]
    named: tuple[str, ...]

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        return self.parsed.name


class JudgedHop(NamedTuple):
    """One point compared with another: the verdict as `receipts compare` gives it, and the gain by their launches."""

    verdict: Comparison
    gain: HopGain | None


class Judge:
    """Compares points as `receipts compare` does with a store. What is read for a point is read once."""

    def __init__(self, store: Store, rulebook: Rulebook, a: Parsed, b: Parsed, metric: Metric) -> None:
        self.store = store
        self._metric = metric
        self._comparisons = Comparisons(store, rulebook)
        self.lane: Lane = rulebook.lanes.of(a.receipt.run.lane)
        self.a = self.point(a, [b])
        self.b = self.point(b, [a])

    def __repr__(self) -> str:
        return f"Judge({self.a.name!r}, {self.b.name!r})"

    @property
    def smallest_effect(self) -> float | None:
        """δ of the metric, as the lane sets it."""
        return self.lane.smallest_effect(self._metric.name)

    def point(self, parsed: Parsed, others: Sequence[Parsed], *, named: bool = True) -> BridgePoint:
        """The point of a receipt. It leaves out launches of the others; ``named``: it represents the point itself."""
        own = (parsed.id,) if named else ()
        pool = self._comparisons.pool([parsed], others)
        group = self._comparisons.samples(pool, self._metric.name, own)
        point_values = values([Launch(item, self.lane) for item in group], self._metric)
        return BridgePoint(configuration(group[0], self.lane), group[0], tuple(group), point_values, tuple(pool), own)

    def stored(self, receipt_id: str) -> BridgePoint:
        """The point of a stored receipt between the two ends."""
        return self.point(self.store.parsed(receipt_id), [self.a.parsed, self.b.parsed], named=False)

    def compared(self, a: BridgePoint, b: BridgePoint) -> JudgedHop:
        """B judged against A."""
        verdict = self._comparisons.compare([a.parsed], [b.parsed], self._metric.name, (*a.named, *b.named))
        return JudgedHop(verdict, self.gain(a, b))

    def gain(self, a: BridgePoint, b: BridgePoint) -> HopGain | None:
        """What B has over A by their launches."""
        # Of some metrics of memory equal launches of the store always agree.
        exact = self._metric.summary == "memory" and self._metric.name in self._comparisons.floor(a.parsed).exact_memory
        if exact:
            return exact_gain(a.values, b.values)
        return gain_of(a.values, b.values, self._sigma(a, (a.values, b.values)))

    def together(self, neither: BridgePoint, one: BridgePoint, other: BridgePoint, both: BridgePoint) -> HopGain | None:
        """What two axes have together over the product of both apart."""
        corners = (neither.values, one.values, other.values, both.values)
        return gain_together(corners, self._sigma(neither, corners))

    def _sigma(self, a: BridgePoint, sides: Sequence[Values]) -> Sigma | None:
        """The noise floor where these launches do not show a spread of their own: reading it costs."""
        own = all(len(item.logs) >= MIN_LAUNCHES_OF_FLOOR for item in sides) and any(
            len(set(item.logs)) > 1 for item in sides
        )
        return None if own else self.sigma(a)

    def sigma(self, a: BridgePoint) -> Sigma | None:
        """The noise floor; it is read for metrics that have one alone."""
        has_floor = self._metric.summary in ("step", "rate")
        return noise_of(self._metric, self.lane, self._comparisons.floor(a.parsed).measured if has_floor else None)


@dataclass(frozen=True)
class Hop:
    """One step of a chain: the axis in which two points differ, the verdict on them, and the gain by their launches."""

    a: BridgePoint
    b: BridgePoint
    axis: str
    verdict: Comparison
    gain: HopGain | None
    reason: str  # what refuses it, or what would settle it; empty if it is accepted

    @property
    def accepted(self) -> bool:
        """Whether it may be part of a bridge."""
        return self.verdict.status == "accepted"

    @property
    def members(self) -> tuple[Member, ...]:
        """The axis' leaves that moved, with both values."""
        changed = self.verdict.difference.changed
        own = [item.members for item in changed if item.axis == self.axis]
        # What an input moved counts under its leaf, which alone changed.
        return own[0] if own else changed[0].members if len(changed) == 1 else ()


Chain = tuple[Hop, ...]


class Range(NamedTuple):
    """The least and the most that an axis gave, over the chains: logs of the ratio."""

    low: float
    high: float


def by_axis(chain: Sequence[Hop]) -> dict[str, float] | None:
    """What each axis gave on a chain, as logs, in the order of its hops; None if a hop has no number."""
    steps: dict[str, float] = {}
    for hop in chain:
        if hop.gain is None:
            return None
        steps[hop.axis] = steps.get(hop.axis, 0.0) + hop.gain.log
    return steps


def ranges(chains: Sequence[Chain]) -> Mapping[str, Range]:
    """What each axis gave over the orders of these chains, where there are several."""
    totals = [item for chain in chains if (item := by_axis(chain)) is not None]
    if len(totals) < 2:
        return {}
    axes = dict.fromkeys(axis for item in totals for axis in item)
    given = {axis: [item[axis] for item in totals if axis in item] for axis in axes}
    return {axis: Range(min(values), max(values)) for axis, values in given.items()}


@dataclass(frozen=True)
class Interaction:
    """A 2×2 of configurations: what each of two axes gave where the other had not moved, and where it had.

    ``together`` is what both gave over the product of what each gave alone. ``corners`` are neither moved, the first,
    the second, both. ``status`` is accepted where all four pairs are comparable and ran where they say.
    """

    axes: tuple[str, str]
    corners: tuple[BridgePoint, BridgePoint, BridgePoint, BridgePoint]
    first: tuple[HopGain, HopGain]
    second: tuple[HopGain, HopGain]
    together: HopGain
    status: str

    @property
    def shown(self) -> bool:
        """Whether the interval shows that there is one."""
        interval = self.together.interval
        return self.status == "accepted" and interval is not None and not interval[0] <= 1.0 <= interval[1]


def interactions(judge: Judge, hops: Sequence[Hop]) -> list[Interaction]:
    """Every 2×2 among hops that were judged and not refused, the strongest first."""
    onward: dict[int, dict[str, Hop]] = {}
    for hop in hops:
        if hop.verdict.status != "rejected":
            onward.setdefault(id(hop.a), {})[hop.axis] = hop
    together = []
    for square in _squares(onward):
        x, y, y_after, x_after = square
        corners = (x.a, x.b, y.b, y_after.b)
        joint = judge.together(*corners)
        gains = [hop.gain for hop in (x, x_after, y, y_after) if hop.gain is not None]
        if joint is not None and len(gains) == len(square):
            usable = all(hop.verdict.comparable == "yes" and hop.verdict.path == "witnessed" for hop in square)
            status = "accepted" if usable else "inconclusive"
            first, second = (gains[0], gains[1]), (gains[2], gains[3])
            together.append(Interaction((x.axis, y.axis), corners, first, second, joint, status))
    return sorted(together, key=lambda item: (-abs(item.together.log), item.axes))


Square = tuple[Hop, Hop, Hop, Hop]


def _squares(onward: Mapping[int, Mapping[str, Hop]]) -> Iterator[Square]:
    """x and y from one point, then y after x and x after y, where both lead to one point."""
    for steps in onward.values():
        for x, first in steps.items():
            for y, second in steps.items():
                after = onward.get(id(first.b), {}).get(y), onward.get(id(second.b), {}).get(x)
                if x < y and after[0] is not None and after[1] is not None and after[0].b is after[1].b:
                    yield first, second, after[0], after[1]
