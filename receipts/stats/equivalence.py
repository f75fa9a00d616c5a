"""The verdict on an effect, alone or among many: whether its interval lies beyond δ, within δ, or across it.

Two one-sided tests (TOST) at 5 % decide equivalence: Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657. Holm's
step-down adjustment (1979) corrects for many comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from receipts.stats.log_ratio import RatioEstimate, Sigma, Source
from receipts.stats.sessions import OrderKind

if TYPE_CHECKING:
    from receipts.stats.sessions import Sample


Kind = Literal["faster", "slower", "equivalent", "ambiguous", "indicated", "unproven"]
Design = Literal["welch", "paired", "turns", "blocked", "sessions", "days", "pooled", "single", "exact"]
Better = Literal["lower", "higher"]

SMALLEST_EFFECT = 0.01
DEFAULT_DELTA = "the default"
CONFIDENCE = 0.95
EQUIVALENCE_CONFIDENCE = 0.90  # the interval of a TOST at 5 %
MIN_LAUNCHES = 3
INDICATED_SPREADS = 8.0
MAX_LAUNCHES = 1000
MAX_LOG = 700.0


@dataclass(frozen=True, slots=True)
class Effect:
    """The verdict on one metric, B against A.

    `ratio` is the metric of B over that of A (of step time where lower is better: below 1 is faster), `low` to
    `high` its 95 % interval and `low90` to `high90` the 90 % interval that equivalence is judged by; None if
    the launches carry no number. `needed` is about how many launches per side would settle it. `spread` says where
    the interval's width comes from: the launches themselves, or a noise floor, measured or declared. `sessions` are
    those that it was estimated in or over; `confused` names what leaves it open though launches would not: the *days*
    of sides that share no session, or the *order* of sides that took no turns.
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
    spread: Source | None = None
    p_beyond: float | None = None
    p_equivalent: float | None = None
    delta_source: str = DEFAULT_DELTA
    sessions: int = 1
    confused: Literal["", "days", "order"] = ""


@dataclass(frozen=True, slots=True)
class EquivalenceTest:
    """The sides' sizes, order and noise floor, and δ: what turns an estimate of B over A into an `Effect`."""

    n_a: int
    n_b: int
    better: Better
    delta: float
    order: OrderKind
    floor: Sigma | None
    largest_spread: float | None
    delta_source: str = DEFAULT_DELTA

    def of(self, launches: Sequence[Sample]) -> EquivalenceTest:
        """The same test of fewer launches: those of the sessions that both sides share."""
        b = sum(item.side for item in launches)
        return replace(self, n_a=len(launches) - b, n_b=b)

    @property
    def margin(self) -> float:
        return math.log1p(self.delta)

    @property
    def one_after_the_other(self) -> str:
        """What to say of an order that would make an effect out of a drift."""
        if self.order != "sequential":
            return ""
        return "; one side ran after the other, and a drift of the machine looks the same"

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

    def without_interval(
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

    def verdict(self, design: Design, estimate: RatioEstimate, spread: Source, why: str) -> Effect:
        """The verdict that an interval gives."""
        center, margin = estimate.log_ratio, self.margin
        why = f"{why}; changes within {100.0 * self.delta:g} % count as none ({self.delta_source})"
        half, half90 = estimate.half_width(CONFIDENCE), estimate.half_width(EQUIVALENCE_CONFIDENCE)
        lower: Kind = "faster" if self.better == "lower" else "slower"
        higher: Kind = "slower" if self.better == "lower" else "faster"
        kind: Kind = "ambiguous"
        needed: int | None = None
        if center + half < -margin:
            kind = lower
        elif center - half > margin:
            kind = higher
        elif center - half90 > -margin and center + half90 < margin:
            kind = "equivalent"
        elif design == "single" and self.indicates(center):
            kind, needed = "indicated", MIN_LAUNCHES
            why = f"{why}; {self.beyond(center)}"
        else:
            needed = _needed(max(self.n_a, self.n_b), center, margin, half, half90)
            more = f"about {needed} launches per side" if needed else f"more than {MAX_LAUNCHES} launches per side"
            why = f"{why}; {more} would settle it"
        return replace(
            self.without_interval(design, why, kind, center, needed),
            low=_ratio(center - half),
            high=_ratio(center + half),
            low90=_ratio(center - half90),
            high90=_ratio(center + half90),
            spread=spread,
            p_beyond=min(1.0, 2.0 * min(estimate.below(-margin), estimate.above(margin))),
            p_equivalent=max(estimate.above(-margin), estimate.below(margin)),
        )


def _ratio(log_ratio: float) -> float:
    # One degree of freedom makes intervals wider than a float holds; both ends must stay numbers.
    return math.exp(max(-MAX_LOG, min(MAX_LOG, log_ratio)))


def _needed(launches: int, center: float, margin: float, half: float, half90: float) -> int | None:
    """R · (half-width / gap)², the gap being that from the estimate to the nearest δ; none beyond reason."""
    gap = abs(abs(center) - margin)
    width = half if abs(center) > margin else half90
    if gap <= 0.0 or launches * (width / gap) ** 2 > MAX_LAUNCHES:
        return None
    return max(MIN_LAUNCHES, launches + 1, math.ceil(launches * (width / gap) ** 2))


def adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given; a hypothesis is rejected where its own is at most α."""
    count = len(p_values)
    largest = 0.0
    result = [0.0] * count
    for rank, i in enumerate(sorted(range(count), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (count - rank) * p_values[i]))
        result[i] = largest
    return tuple(result)


def adjust(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects of one report with their verdicts adjusted for how many they are.

    A verdict that does not survive becomes `ambiguous`; intervals stay as they are, unadjusted, and `why` says so.
    Effects without an interval (unproven, indicated from no floor) test nothing and count for nothing.
    """
    tested = [(i, p) for i, effect in enumerate(effects) if (p := _p(effect)) is not None]
    result = list(effects)
    if len(tested) < 2:
        return tuple(result)
    for (i, _), p in zip(tested, adjusted([p for _, p in tested]), strict=True):
        effect = effects[i]
        if effect.kind in ("faster", "slower", "equivalent") and p > 1.0 - CONFIDENCE:
            why = f"{effect.why}; {effect.kind} alone, not among {len(tested)} comparisons (Holm p {p:.3f})"
            result[i] = replace(effect, kind="ambiguous", why=why)
    return tuple(result)


def _p(effect: Effect) -> float | None:
    """The p of the verdict, or of the nearer one if there is no verdict."""
    if effect.p_beyond is None or effect.p_equivalent is None:
        return None
    if effect.kind in ("faster", "slower"):
        return effect.p_beyond
    if effect.kind == "equivalent":
        return effect.p_equivalent
    return min(effect.p_beyond, effect.p_equivalent)
