"""Many comparisons in one report: Holm's step-down adjustment (Holm 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from receipts.stats.equivalence import CONFIDENCE, Effect


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
    """The p of the verdict that was given, or of the nearer one where none was."""
    if effect.p_beyond is None or effect.p_equivalent is None:
        return None
    if effect.kind in ("faster", "slower"):
        return effect.p_beyond
    if effect.kind == "equivalent":
        return effect.p_equivalent
    return min(effect.p_beyond, effect.p_equivalent)
