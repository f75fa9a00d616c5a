"""Quantities that have no noise: tokens a step, parameters, FLOPs a token, and memory where the store shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ExactEffect:
    """B against A without statistics: any difference is a fact.

    `varies` where launches of one side disagree among themselves, so that the quantity is not exact there;
    `difference` (B − A) and `ratio` (B / A, none over zero) are none then.
    """

    kind: Literal["equal", "lower", "higher", "varies"]
    difference: float | None
    ratio: float | None


def compare_exact(a: Sequence[float], b: Sequence[float]) -> ExactEffect | None:
    """Compare one value a launch, every launch of a side being the same; none where a side has no value."""
    if not a or not b:
        return None
    # Sets and not min < max: integers beyond 2**53 must not meet as floats.
    if len(set(a)) > 1 or len(set(b)) > 1:
        return ExactEffect("varies", None, None)
    one, other = a[0], b[0]
    ratio = other / one if one else None
    if one == other:
        return ExactEffect("equal", other - one, ratio)
    return ExactEffect("higher" if other > one else "lower", other - one, ratio)


def shown_exact(groups: Iterable[Sequence[float]]) -> bool | None:
    """Whether launches that differ in nothing always agree; none where no group has two launches."""
    pairs = [group for group in groups if len(group) >= 2]
    return all(len(set(group)) == 1 for group in pairs) if pairs else None
