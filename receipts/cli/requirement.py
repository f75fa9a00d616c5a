"""A gate on a comparison: whether what was required of B is proven, refuted, or open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from receipts.value import dataclass

if TYPE_CHECKING:
    from receipts.verdict import Comparison, MetricResult

Requirement = Literal["faster", "not-slower", "equivalent"]
Answer = Literal["holds", "fails", "open"]
EXIT = {"holds": 0, "fails": 1, "open": 3}
PROVEN = ("faster", "slower", "equivalent")
MEETS = {
    "faster": ("faster",),
    "not-slower": ("faster", "equivalent"),
    "equivalent": ("equivalent",),
}


@dataclass(frozen=True, slots=True)
class Gate:
    """The answer of a gate and its reason."""

    answer: Answer
    why: str

    @property
    def exit_code(self) -> int:
        """0 it holds, 1 it does not, 3 not enough to say."""
        return EXIT[self.answer]


def required(verdict: Comparison, requirement: Requirement) -> Gate:
    """Hold a comparison against a requirement.

    A rejected comparison meets none, and one that leaves a question open proves none: a gate that cannot tell does
    not let pass. *Not slower* needs no named effect: the interval's slow end within δ (one-sided, 5 %) proves it.
    """
    if verdict.status == "rejected":
        return Gate("fails", "does not hold: the comparison was rejected")
    if verdict.comparable != "yes" or verdict.path != "witnessed":
        open_ = "comparable" if verdict.comparable != "yes" else "the path witnessed"
        return Gate("open", f"not enough to say: the two are not shown to be {open_}")
    if verdict.effect in MEETS[requirement]:
        return Gate("holds", f"holds: {verdict.effect} on {verdict.metric}")
    headline = next((item for item in verdict.results if item.metric == verdict.metric), None)
    if verdict.effect == "ambiguous" and requirement == "not-slower" and headline and _not_slower(headline):
        return Gate("holds", f"holds: B is not slower by {headline.effect.delta:.1%} or more on {verdict.metric}")
    if verdict.effect in PROVEN:
        return Gate("fails", f"does not hold: {verdict.effect} on {verdict.metric}")
    return Gate("open", f"not enough to say: the effect is {verdict.effect}{_how_many(headline)}")


def _not_slower(result: MetricResult) -> bool:
    from receipts import metrics

    effect, delta = result.effect, result.effect.delta
    if effect.low90 is None or effect.high90 is None:
        return False
    if metrics.get(result.metric).better == "lower":
        return effect.high90 < 1.0 + delta
    return effect.low90 > 1.0 / (1.0 + delta)


def _how_many(result: MetricResult | None) -> str:
    needed = result.effect.needed if result is not None else None
    return f"; about {needed} launches a side would tell" if needed else ""
