"""Planned looks: how many launches a side, when to look at them, and the interval that each look is judged by.

Boundaries of Wang and Tsiatis (Biometrics 43 (1987) 193): O'Brien and Fleming's at shape 0, Pocock's at 0.5. Their
constant is calibrated on simulated launches with the t statistic that is used, so that it holds for few launches too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from receipts.base.environment import extra

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA: Final = 0.05
POWER: Final = 0.9
FUTILE: Final = 0.1  # power that is left at the last look, below which more launches are not worth their cost
MAX_LAUNCHES: Final = 60  # a side
MAX_LOOKS: Final = 5
ENOUGH_FREEDOM: Final = 20.0  # from here on the lane's σ serves instead of the launches' own
_GUARD: Final = 0.94  # of α: what the simulation itself may miss
_SHAPES: Final = (0.0, 0.15, 0.3, 0.5)
_RUNS: Final = 10_000
_SEED: Final = 25


@dataclass(frozen=True, slots=True)
class Looks:
    """A plan of looks: launches a side at each, and the confidence of the interval that it is judged by.

    Over all looks, an interval that misses the true ratio occurs in at most ``alpha`` of plans. ``df`` are those of the
    noise floor, None if the launches' own spread is used. ``power`` and ``median`` (launches a side) hold at the
    effect that was planned for; ``fixed`` is the fewest that one look without a plan would need.
    """

    launches: tuple[int, ...]
    confidences: tuple[float, ...]
    alpha: float
    shape: float
    df: float | None
    power: float
    median: int
    fixed: int

    @property
    def most(self) -> int:
        """Launches a side at the last look."""
        return self.launches[-1]

    def at(self, launches: int) -> int | None:
        """The look that this many launches a side are enough for, from 1; None before the first."""
        reached = [number for number, count in enumerate(self.launches, 1) if count <= launches]
        return reached[-1] if reached else None


def plan_looks(effect: float, sigma: float, df: float | None, alpha: float = ALPHA, power: float = POWER) -> Looks:
    """The looks that see an effect of this size soonest. ``effect`` and ``sigma`` are in logs.

    The last look is never more than one launch a side, or a tenth, beyond the best single look. Where `MAX_LAUNCHES`
    are too few, the plan has the power that they give.
    """
    df = df if df is not None and df >= ENOUGH_FREEDOM else None
    size = round(abs(effect) / sigma, 3) if sigma > 0.0 else 100.0
    return _planned(min(size, 100.0), df, alpha, power)


@lru_cache(maxsize=64)
def at_level(looks: Looks, alpha: float) -> Looks:
    """The same looks at another error rate: Holm's method leaves more to the questions that are still open."""
    return replace(
        looks, alpha=alpha, confidences=_calibrated(looks.launches, looks.shape, looks.df, alpha).confidences
    )


@lru_cache(maxsize=64)
def _planned(size: float, df: float | None, alpha: float, power: float) -> Looks:
    enough = (count for count in range(_first(df), MAX_LAUNCHES) if _fixed_power(count, size, df, alpha) >= power)
    fixed = next(enough, MAX_LAUNCHES)
    best: tuple[tuple[bool, float, int], Looks] | None = None
    for most in sorted({fixed, min(max(fixed + 1, math.floor(1.1 * fixed)), MAX_LAUNCHES)}):
        # At most `MAX_LOOKS` looks, evenly, the last one at ``most``.
        first = min(_first(df), most)
        count = min(MAX_LOOKS, most - first + 1)
        start = max(first, math.ceil(most / (count + 1)))
        places = {round(start + (most - start) * index / max(count - 1, 1)) for index in range(count)} | {most}
        for shape in _SHAPES:
            looks = _calibrated(tuple(sorted(places)), shape, df, alpha)
            reached, mean, median = _performance(looks, size)
            rank = (reached < power, mean if reached >= power else -reached, most)
            if best is None or rank < best[0]:
                confidences = tuple(looks.confidences)
                best = rank, Looks(looks.launches, confidences, alpha, shape, df, reached, median, fixed)
    assert best is not None
    return best[1]


def _first(df: float | None) -> int:
    """Launches a side at the first look: three show their own spread."""
    return 2 if df is not None else 3


def _calibrated(launches: tuple[int, ...], shape: float, df: float | None, alpha: float) -> Looks:
    """Looks whose error over all of them is ``alpha``: the constant is a quantile of the simulated maximum."""
    import numpy as np

    z = _normal_scores(launches, 0.0, df)
    weights = np.array([(count / launches[-1]) ** (0.5 - shape) for count in launches])
    constant = float(np.quantile(np.max(z * weights, axis=1), 1.0 - _GUARD * alpha))
    norm = extra("scipy.stats", "history").norm
    confidences = tuple(float(1.0 - 2.0 * norm.sf(constant / weight)) for weight in weights)
    return Looks(launches, confidences, alpha, shape, df, 0.0, 0, 0)


def _performance(looks: Looks, size: float) -> tuple[float, float, int]:
    """Power at an effect of ``size`` σ, the mean launches a side until a plan ends, and their median."""
    import numpy as np

    norm = extra("scipy.stats", "history").norm
    z = _normal_scores(looks.launches, size, looks.df)
    bounds = norm.isf((1.0 - np.array(looks.confidences)) / 2.0)
    crossed = z > bounds
    first = np.where(crossed.any(axis=1), crossed.argmax(axis=1), len(looks.launches) - 1)
    ended = np.array(looks.launches)[first]
    return float(crossed.any(axis=1).mean()), float(ended.mean()), int(np.median(ended))


def _fixed_power(count: int, size: float, df: float | None, alpha: float) -> float:
    """The power of one look at ``count`` launches a side (noncentral t)."""
    scipy = extra("scipy.stats", "history")
    freedom = df if df is not None else 2.0 * count - 2.0
    shift = size * math.sqrt(count / 2.0)
    return float(scipy.nct.sf(scipy.t.isf(alpha / 2.0, freedom), freedom, shift)) if shift < 30.0 else 1.0


@lru_cache(maxsize=8)
def _sums(most: int) -> tuple[Any, Any, Any]:
    """Sums and sums of squares of simulated launches of two sides after each launch; standard normal."""
    import numpy as np

    draw = np.random.default_rng(_SEED)
    a, b = draw.standard_normal((_RUNS, most)), draw.standard_normal((_RUNS, most))
    return np.cumsum(a, axis=1), np.cumsum(b, axis=1), np.cumsum(a**2, axis=1) + np.cumsum(b**2, axis=1)


def _normal_scores(launches: tuple[int, ...], size: float, df: float | None) -> NDArray[Any]:
    """|t| at each look on the scale of a normal deviate, a row for each simulated plan."""
    import numpy as np

    scipy = extra("scipy.stats", "history")
    a, b, squares = _sums(launches[-1])
    counts = np.array(launches)
    at = counts - 1
    mean_a, mean_b = a[:, at] / counts, b[:, at] / counts
    if df is None:
        freedom = 2.0 * counts - 2.0
        variance = (squares[:, at] - counts * (mean_a**2 + mean_b**2)) / freedom
    else:
        freedom = np.full(len(counts), df)
        variance = (np.random.default_rng(_SEED + 1).chisquare(df, _RUNS) / df)[:, None]
    statistic = np.abs(mean_b - mean_a + size) / np.sqrt(2.0 * variance / counts)
    scores: NDArray[Any] = scipy.norm.isf(np.maximum(scipy.t.sf(statistic, freedom), 1e-300))
    return scores
