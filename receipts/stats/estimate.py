"""An estimated log ratio: its standard error, its degrees of freedom, and the intervals and tails they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from receipts.stats import student

Source = Literal["measured", "declared"]


class Sigma(NamedTuple):
    """The noise floor: standard deviation of a launch's log location, from launches that differ in nothing.

    `df` is how many degrees of freedom it was estimated on; none for a figure that somebody declared.
    """

    value: float
    df: float | None
    source: Source


class Estimate(NamedTuple):
    """A log ratio with its standard error; `df` none means that the error is taken as known."""

    log_ratio: float
    error: float
    df: float | None

    def half_width(self, confidence: float) -> float:
        """Half the two-sided interval, in logs."""
        if self.error == 0.0:
            return 0.0
        return student.quantile(0.5 + confidence / 2.0, self.df) * self.error

    def above(self, bound: float) -> float:
        """One-sided p of the hypothesis that the log ratio is at most `bound`."""
        distance = self.log_ratio - bound
        if self.error == 0.0:
            return 0.0 if distance > 0.0 else 1.0
        return student.tail(distance / self.error, self.df)

    def below(self, bound: float) -> float:
        """One-sided p of the hypothesis that the log ratio is at least `bound`."""
        return Estimate(-self.log_ratio, self.error, self.df).above(-bound)


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """B − A from logs of at least two launches a side, by Welch's test with Satterthwaite's degrees of freedom."""
    mean_a, variance_a = _moments(a)
    mean_b, variance_b = _moments(b)
    part_a, part_b = variance_a / len(a), variance_b / len(b)
    squared = part_a + part_b
    if squared == 0.0:
        return Estimate(mean_b - mean_a, 0.0, None)
    # Shares and not squares of variances: those of launches that nearly agree would underflow.
    share_a, share_b = part_a / squared, part_b / squared
    df = 1.0 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return Estimate(mean_b - mean_a, math.sqrt(squared), df)


def paired(differences: Sequence[float]) -> Estimate:
    """B − A from the log differences of at least two pairs, by the paired t-test."""
    mean, variance = _moments(differences)
    count = len(differences)
    return Estimate(mean, math.sqrt(variance / count), float(count - 1) if variance > 0.0 else None)


def beside_drift(
    a: Sequence[float], b: Sequence[float], times_a: Sequence[float], times_b: Sequence[float]
) -> Estimate:
    """B − A from logs of launches that took turns, a straight drift of the machine taken out.

    Least squares of the log on side and start time, in its closed form (analysis of covariance, Fisher 1932): at
    least two launches a side at different times, n − 3 degrees of freedom. A drift leaves a paired t less power
    than it has without one, biases it where the turns are ABAB, and it spends half the degrees of freedom.
    """
    if min(a) == max(a) and min(b) == max(b):  # rounding must not make a spread out of equal values
        return Estimate(b[0] - a[0], 0.0, None)
    count = len(a) + len(b)
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    time_a, time_b = math.fsum(times_a) / len(times_a), math.fsum(times_b) / len(times_b)
    logs = [value - mean_a for value in a] + [value - mean_b for value in b]
    times = [time - time_a for time in times_a] + [time - time_b for time in times_b]
    spread = math.fsum(time * time for time in times)
    slope = math.fsum(time * value for time, value in zip(times, logs, strict=True)) / spread
    squares = math.fsum((value - slope * time) ** 2 for time, value in zip(times, logs, strict=True))
    lead = time_b - time_a
    variance = squares / (count - 3) * (1.0 / len(a) + 1.0 / len(b) + lead * lead / spread)
    return Estimate(mean_b - mean_a - slope * lead, math.sqrt(variance), float(count - 3))


def against_floor(a: Sequence[float], b: Sequence[float], sigma: Sigma) -> Estimate:
    """B − A from logs of at least one launch a side, their spread taken from the noise floor."""
    difference = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    return Estimate(difference, sigma.value * math.sqrt(1.0 / len(a) + 1.0 / len(b)), sigma.df)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    if min(values) == max(values):  # rounding must not make a spread out of equal values
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
