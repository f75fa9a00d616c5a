"""The effect: what the launches of B and A say about the ratio of a metric, B over A.

Launches are the units and logs the scale, so that a metric and its reciprocal (step time, tokens a second) get one
verdict and swapping the sides mirrors it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from receipts.stats.estimate import RatioEstimate, Sigma, Source, against_floor, beside_drift, paired, pooled, welch
from receipts.stats.exact import compare_exact
from receipts.stats.order import OrderKind, Pairs, in_one_go, interleaved_pairs, order_kind

Kind = Literal["faster", "slower", "equivalent", "ambiguous", "indicated", "unproven"]
Design = Literal["welch", "paired", "turns", "single", "exact"]
Better = Literal["lower", "higher"]
Spread = Source

SMALLEST_EFFECT = 0.01
DEFAULT_DELTA = "the default"
CONFIDENCE = 0.95
EQUIVALENCE_CONFIDENCE = 0.90  # the interval of a TOST at 5 %
FEWEST_LAUNCHES = 3
INDICATED_SPREADS = 8.0
MOST_LAUNCHES = 1000
LARGEST_LOG = 700.0
OWN = "from the launches of the two sides"


@dataclass(frozen=True, slots=True)
class Effect:
    """The verdict on one metric, B against A.

    `ratio` is the metric of B over that of A (of step time where lower is better: below 1 is faster), `low` to
    `high` its 95 % interval and `low90` to `high90` the 90 % interval that equivalence is judged by; none where
    the launches carry no number. `needed` is about how many launches a side would settle it. `spread` says where
    the interval's width comes from: the launches themselves, or a noise floor, measured or declared.
    `p_beyond` is the two-sided p of *the effect is not larger than delta*, `p_equivalent` that of *it is*.
    """

    kind: Kind
    ratio: float | None
    low: float | None
    high: float | None
    low90: float | None
    high90: float | None
    confidence: float
    delta: float
    design: Design
    n_a: int
    n_b: int
    needed: int | None
    why: str
    order: OrderKind = "unknown"
    spread: Spread | None = None
    p_beyond: float | None = None
    p_equivalent: float | None = None
    delta_source: str = DEFAULT_DELTA

    @property
    def speedup(self) -> tuple[float, float] | None:
        """The 95 % interval of A over B: how many times faster B is where lower is better."""
        if self.low is None or self.high is None:
            return None
        return 1.0 / self.high, 1.0 / self.low


def compare(
    a: Sequence[float],
    b: Sequence[float],
    *,
    better: Better = "lower",
    sigma: Sigma | None = None,
    delta: float | None = None,
    times_a: Sequence[float | None] | None = None,
    times_b: Sequence[float | None] | None = None,
    pairs: Pairs | None = None,
    largest_spread: float | None = None,
    delta_source: str = DEFAULT_DELTA,
) -> Effect:
    """Compare launches of B with launches of A.

    `a` and `b` hold one location a launch: the median step time, a rate, or any positive metric of which `better`
    says the good direction. `times_a` and `times_b` are their start times in seconds; launches that took turns at
    a steady pace are compared beside a straight drift, those with breaks between them in pairs, and `pairs` (positions
    in `a` and `b`) states the pairing outright. `sigma` is the noise
    floor and `largest_spread` the largest log ratio between two equal launches that the lane has shown. `delta` is
    the smallest effect that matters, which people decide and `delta_source` names: no noise changes it.
    """
    turns: _Turns | None = None
    order: OrderKind = "unknown"
    if pairs is not None:
        pairs, order = tuple(pairs), "interleaved"
    elif _timed(a, b, times_a, times_b):
        order = order_kind(times_a or (), times_b or ())
        if order == "interleaved":
            turns = _Turns(tuple(time or 0.0 for time in times_a or ()), tuple(time or 0.0 for time in times_b or ()))
            pairs = interleaved_pairs(turns.a, turns.b)
    case = _Case(
        n_a=len(a),
        n_b=len(b),
        better=better,
        delta=SMALLEST_EFFECT if delta is None else delta,
        delta_source=delta_source,
        order=order,
        floor=sigma if sigma is not None and sigma.value > 0.0 else None,
        largest_spread=largest_spread,
    )
    if not a or not b:
        return case.silent("single", f"side {'B' if a else 'A'} has no launch with a steady segment")
    if not all(0.0 < value < math.inf for value in (*a, *b)):
        return case.silent("single", "a location is not a positive number: a ratio cannot be taken")
    return _judge(case, [math.log(value) for value in a], [math.log(value) for value in b], pairs, turns)


def unproven(why: str, n_a: int, n_b: int) -> Effect:
    """No number, and the reason: what was compared carries none."""
    case = _Case(n_a, n_b, "lower", SMALLEST_EFFECT, "unknown", None, None)
    return case.silent("single", why)


def exactly(a: Sequence[float], b: Sequence[float], *, better: Better) -> Effect | None:
    """The effect on a quantity that equal launches never differ in: any difference is a fact, and none is equality.

    None where launches of one side disagree, so that it is not exact here, or where a value is not positive.
    """
    found = compare_exact(a, b)
    if found is None or found.kind == "varies" or not all(0.0 < value < math.inf for value in (*a, *b)):
        return None
    case = _Case(len(a), len(b), better, 0.0, "unknown", None, None)
    good = found.kind == better
    kind: Kind = "equivalent" if found.kind == "equal" else "faster" if good else "slower"
    why = "compared exactly: equal launches of this lane always agree on it"
    silent = case.silent("exact", why, kind, math.log(b[0] / a[0]))
    ratio = found.ratio
    return replace(silent, low=ratio, high=ratio, low90=ratio, high90=ratio)


def _timed(
    a: Sequence[float],
    b: Sequence[float],
    times_a: Sequence[float | None] | None,
    times_b: Sequence[float | None] | None,
) -> bool:
    if times_a is None or times_b is None:
        return False
    return len(times_a) == len(a) and len(times_b) == len(b)


@dataclass(frozen=True, slots=True)
class _Turns:
    """Start times of launches that took turns."""

    a: tuple[float, ...]
    b: tuple[float, ...]


def _judge(case: _Case, a: Sequence[float], b: Sequence[float], pairs: Pairs | None, turns: _Turns | None) -> Effect:
    """Choose the design, estimate, and give the verdict; `a` and `b` are logs."""
    if min(len(a), len(b)) < FEWEST_LAUNCHES:
        return _single(case, a, b)
    design: Design
    if turns is not None and in_one_go(turns.a, turns.b):
        design, estimate = "turns", beside_drift(a, b, turns.a, turns.b)
        why = f"{len(a)} and {len(b)} launches that took turns, t on the logs beside a straight drift"
    elif pairs is not None and len(pairs) >= FEWEST_LAUNCHES:
        design, estimate = "paired", paired([b[j] - a[i] for i, j in pairs])
        why = f"{len(pairs)} interleaved pairs, paired t on the log ratios"
    else:
        design, estimate = "welch", welch(a, b)
        why = f"{len(a)} and {len(b)} launches, Welch on the logs"
    why += case.one_after_the_other
    if estimate.error > 0.0:
        own = f"; {pooled((a, b), OWN)}" if design != "paired" else ""
        return case.verdict(design, estimate, "launches", f"{why}{own}")
    # Launches equal to the last digit tell of a coarse clock or of copies, not of a machine without noise.
    if case.floor is not None:
        estimate = against_floor(a, b, case.floor)
        return case.verdict(design, estimate, case.floor.source, f"{why}; they agree to the last digit: {case.floor}")
    return case.verdict(design, estimate, "launches", f"{why}; they agree to the last digit")


def _single(case: _Case, a: Sequence[float], b: Sequence[float]) -> Effect:
    """Fewer than three launches on a side: only the noise floor can tell their spread."""
    counted = "one launch a side" if len(a) == len(b) == 1 else f"{len(a)} and {len(b)} launches"
    if len(a) > 1 and len(b) > 1:
        counted += case.one_after_the_other
    # Three launches of one side show a spread of their own; strangers are asked where there are fewer.
    own = pooled((a, b), OWN, "launches") if max(len(a), len(b)) >= FEWEST_LAUNCHES else None
    floor = own or case.floor
    if floor is not None:
        return case.verdict("single", against_floor(a, b, floor), floor.source, f"{counted}; {floor}")
    log_ratio = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    needed = FEWEST_LAUNCHES
    if case.indicates(log_ratio):
        return case.silent("single", f"{counted}: {case.beyond(log_ratio)}", "indicated", log_ratio, needed)
    why = f"{counted} and no noise floor: {needed} launches a side would carry an interval"
    return case.silent("single", why, "unproven", log_ratio, needed)


@dataclass(frozen=True, slots=True)
class _Case:
    """What holds for every way to judge one pair of sides."""

    n_a: int
    n_b: int
    better: Better
    delta: float
    order: OrderKind
    floor: Sigma | None
    largest_spread: float | None
    delta_source: str = DEFAULT_DELTA

    @property
    def margin(self) -> float:
        return math.log1p(self.delta)

    @property
    def one_after_the_other(self) -> str:
        """What to say of an order that would make an effect out of a drift."""
        if self.order != "sequential":
            return ""
        return "; one side ran after the other, so a drift of the machine would look the same: interleave them"

    def indicates(self, log_ratio: float) -> bool:
        """Beyond eight times the largest spread shown, and beyond δ."""
        if not self.largest_spread:
            return False
        return abs(log_ratio) > max(self.margin, INDICATED_SPREADS * self.largest_spread)

    def beyond(self, log_ratio: float) -> str:
        spread = self.largest_spread or 0.0
        direction = "faster" if (log_ratio < 0.0) == (self.better == "lower") else "slower"
        return (
            f"{direction} by {abs(log_ratio) / spread:.0f} times the largest spread that equal launches have shown "
            f"({math.expm1(spread):.2%})"
        )

    def silent(
        self,
        design: Design,
        why: str,
        kind: Kind = "unproven",
        log_ratio: float | None = None,
        needed: int | None = None,
    ) -> Effect:
        """A verdict without an interval."""
        return Effect(
            kind=kind,
            ratio=None if log_ratio is None else _ratio(log_ratio),
            low=None,
            high=None,
            low90=None,
            high90=None,
            confidence=CONFIDENCE,
            delta=self.delta,
            delta_source=self.delta_source,
            design=design,
            n_a=self.n_a,
            n_b=self.n_b,
            needed=needed,
            why=why,
            order=self.order,
        )

    def verdict(self, design: Design, estimate: RatioEstimate, spread: Spread, why: str) -> Effect:
        """The verdict that an interval gives."""
        centre, margin = estimate.log_ratio, self.margin
        why = f"{why}; δ {100.0 * self.delta:g} % ({self.delta_source})"
        half, half90 = estimate.half_width(CONFIDENCE), estimate.half_width(EQUIVALENCE_CONFIDENCE)
        lower: Kind = "faster" if self.better == "lower" else "slower"
        higher: Kind = "slower" if self.better == "lower" else "faster"
        kind: Kind = "ambiguous"
        needed: int | None = None
        if centre + half < -margin:
            kind = lower
        elif centre - half > margin:
            kind = higher
        elif centre - half90 > -margin and centre + half90 < margin:
            kind = "equivalent"
        elif design == "single" and self.indicates(centre):
            kind, needed = "indicated", FEWEST_LAUNCHES
            why = f"{why}; {self.beyond(centre)}"
        else:
            needed = _needed(max(self.n_a, self.n_b), centre, margin, half, half90)
            more = f"about {needed} launches a side" if needed else f"more than {MOST_LAUNCHES} launches a side"
            why = f"{why}; {more} would settle it"
        return replace(
            self.silent(design, why, kind, centre, needed),
            low=_ratio(centre - half),
            high=_ratio(centre + half),
            low90=_ratio(centre - half90),
            high90=_ratio(centre + half90),
            spread=spread,
            p_beyond=min(1.0, 2.0 * min(estimate.below(-margin), estimate.above(margin))),
            p_equivalent=max(estimate.above(-margin), estimate.below(margin)),
        )


def _ratio(log_ratio: float) -> float:
    # One degree of freedom makes intervals wider than a float holds; both ends must stay numbers.
    return math.exp(max(-LARGEST_LOG, min(LARGEST_LOG, log_ratio)))


def _needed(launches: int, centre: float, margin: float, half: float, half90: float) -> int | None:
    """R · (half-width / gap)², the gap being that from the estimate to the nearest δ; none beyond reason."""
    gap = abs(abs(centre) - margin)
    width = half if abs(centre) > margin else half90
    if gap <= 0.0 or launches * (width / gap) ** 2 > MOST_LAUNCHES:
        return None
    return max(FEWEST_LAUNCHES, launches + 1, math.ceil(launches * (width / gap) ** 2))
