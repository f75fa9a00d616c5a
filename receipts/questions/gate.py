"""A gate on a comparison: whether what was required of B is proven, refuted, or open."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from receipts.base.units import signed_percent

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison, MetricResult

Requirement = Literal["faster", "not-slower", "equivalent"]
GateAnswer = Literal["holds", "fails", "open"]
MIN_LAUNCHES: Final = 3
MAX_LAUNCHES: Final = 1000
EXIT = {"holds": 0, "fails": 1, "open": 3}
PROVEN = ("faster", "slower", "equivalent")
MEETS: Mapping[Requirement, tuple[str, ...]] = {
    "faster": ("faster",),
    "not-slower": ("faster", "equivalent"),
    "equivalent": ("equivalent",),
}


class Required(NamedTuple):
    """What is required; ``margin`` is the share by which B may be slower, None for δ."""

    kind: Requirement
    margin: float | None = None


def read_requirement(text: str) -> Required | None:
    """A requirement as it is typed: ``faster``, ``not-slower``, ``not-slower=2%``, ``equivalent``; None for others."""
    name, equals, stated = text.partition("=")
    kind = next((known for known in MEETS if known == name), None)
    if kind is None:
        return None
    if not equals:
        return Required(kind)
    margin = share(stated)
    return Required(kind, margin) if kind == "not-slower" and margin is not None else None


def share(text: str) -> float | None:
    """A share as it is typed, as `2%` or 0.02, above 0 and below 1; None for others."""
    number = re.fullmatch(r"\s*(\d*\.?\d+)\s*(%?)\s*", text)
    value = float(number[1]) / (100.0 if number[2] else 1.0) if number is not None else 0.0
    return value if 0.0 < value < 1.0 else None


@dataclass(frozen=True, slots=True)
class Gate:
    """The answer of a gate and its reason."""

    answer: GateAnswer
    why: str

    @property
    def exit_code(self) -> int:
        """0 it holds, 1 it does not, 3 not enough to say."""
        return EXIT[self.answer]


def required(
    verdict: Comparison, requirement: Requirement, margin: float | None = None, *, any_standing: bool = False
) -> Gate:
    """Hold a comparison against a requirement.

    A rejected comparison meets none, and one that leaves a question open proves none: a gate that cannot tell does
    not let pass. With ``any_standing`` it asks what happened, whatever is unknown of the cause. *Not slower* needs no
    named effect: the interval's slow end within δ, or within the margin that was asked for, proves it (non-inferiority,
    one-sided at 5 %), and its fast end beyond the margin refutes it.
    """
    if verdict.status == "rejected":
        return Gate("fails", "does not hold: the comparison was rejected")
    if not any_standing and (verdict.comparable != "yes" or verdict.path != "witnessed"):
        open_ = "comparable" if verdict.comparable != "yes" else "the path witnessed"
        return Gate("open", f"not enough to say: the two are not shown to be {open_}")
    if not any_standing and verdict.standing != "attributed":
        return Gate("open", f"not enough to say: the effect is {verdict.effect}, {verdict.standing}")
    headline, slowed = verdict.headline, _slowed(verdict.headline)
    if margin is not None:
        # Not slower by a margin: by the 90 % interval alone, whose ends are one-sided bounds at 5 %.
        if slowed is None or verdict.effect == "unproven":
            return Gate("open", f"not enough to say: the effect is {verdict.effect}{_how_many(headline)}")
        quickest, slowest = slowed
        ends = f"{signed_percent(quickest - 1.0, 2)} to {signed_percent(slowest - 1.0, 2)}"
        bounds = f"B costs {ends} against A on {verdict.metric} (one-sided 95 % bounds; + is slower)"
        if slowest < 1.0 + margin:
            return Gate("holds", f"holds: {bounds}, below {margin:.1%}")
        if quickest > 1.0 + margin:
            return Gate("fails", f"does not hold: {bounds}, above {margin:.1%}")
        return Gate(
            "open", f"not enough to say: {bounds}, across {margin:.1%}{_how_many_within(headline, slowed, margin)}"
        )
    if verdict.effect in MEETS[requirement]:
        return Gate("holds", f"holds: {verdict.effect} on {verdict.metric}")
    bounded = headline is not None and slowed is not None and slowed[1] < 1.0 + headline.effect.delta
    if verdict.effect == "ambiguous" and requirement == "not-slower" and headline and bounded:
        return Gate("holds", f"holds: B is not slower by {headline.effect.delta:.1%} or more on {verdict.metric}")
    if verdict.effect in PROVEN:
        return Gate("fails", f"does not hold: {verdict.effect} on {verdict.metric}")
    return Gate("open", f"not enough to say: the effect is {verdict.effect}{_how_many(headline)}")


def _slowed(result: MetricResult | None) -> tuple[float, float] | None:
    """How many times slower B is, by the ends of the 90 % interval: the least and the most; None without one."""
    from receipts import metrics

    low, high = (result.effect.low90, result.effect.high90) if result is not None else (None, None)
    if result is None or low is None or high is None:
        return None
    return (low, high) if metrics.get(result.metric).better == "lower" else (1.0 / high, 1.0 / low)


def _how_many_within(result: MetricResult | None, slowed: tuple[float, float], margin: float) -> str:
    """About how many launches a side would take the slow end below the margin, or the quick end above it."""
    low, high = (math.log(end) for end in slowed)
    gap, half = abs((low + high) / 2.0 - math.log1p(margin)), (high - low) / 2.0
    have = max(result.effect.n_a, result.effect.n_b) if result is not None else 0
    if not have or gap * math.sqrt(MAX_LAUNCHES) <= half * math.sqrt(have):
        return f"; more than {MAX_LAUNCHES} launches a side would tell: B lies at the margin"
    needed = max(MIN_LAUNCHES, have + 1, math.ceil(have * (half / gap) ** 2))
    return f"; about {needed} launches a side would tell, {needed - have} more"


def _how_many(result: MetricResult | None) -> str:
    needed = result.effect.needed if result is not None else None
    return f"; about {needed} launches a side would tell" if needed else ""
