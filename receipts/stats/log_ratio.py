"""An estimated log ratio: its standard error, its degrees of freedom, and the intervals and tails they give."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from receipts.stats import distributions

TRIMMED_FROM = 6  # launches of a side: of five, what is left would tell too little of their spread
Source = Literal["measured", "declared", "launches"]


class Sigma(NamedTuple):
    """The noise floor: standard deviation of a launch's log location, from launches that differ in nothing.

    `df` is how many degrees of freedom it was estimated on; None for a figure that somebody declared. `of` says in
    words which launches those were.
    """

    value: float
    df: float | None
    source: Source
    of: str = ""

    def __str__(self) -> str:
        size = f"spread of launches {100 * self.value:.2f} %"
        if self.source == "declared" and self.of:
            return f"{size} published, not yours: {self.of}"
        if self.source == "declared":
            return f"{size} declared, not measured" + (", normal quantiles" if self.df is None else "")
        freedom = "" if self.df is None else f" on {self.df:g} degrees of freedom"
        return f"{size} measured{freedom}{f', {self.of}' if self.of else ''}"


def pooled(groups: Iterable[Sequence[float]], of: str = "", source: Source = "measured") -> Sigma | None:
    """σ of logs, pooled over groups of launches that differ in nothing; groups of one carry no spread.

    None if there is no such group, or where all launches agree to the last digit: copies and coarse clocks tell
    nothing about noise.
    """
    moments = [(len(group) - 1, mean_and_variance(group)[1]) for group in groups if len(group) > 1]
    freedom = sum(df for df, _ in moments)
    squares = math.fsum(df * variance for df, variance in moments)
    return Sigma(math.sqrt(squares / freedom), float(freedom), source, of) if squares > 0.0 else None


class RatioEstimate(NamedTuple):
    """A log ratio with its standard error; `df` none means that the error is taken as known."""

    log_ratio: float
    error: float
    df: float | None

    def half_width(self, confidence: float) -> float:
        """Half the two-sided interval, in logs."""
        if self.error == 0.0:
            return 0.0
        return distributions.student_quantile(0.5 + confidence / 2.0, self.df) * self.error

    def above(self, bound: float) -> float:
        """One-sided p of the hypothesis that the log ratio is at most `bound`."""
        distance = self.log_ratio - bound
        if self.error == 0.0:
            return 0.0 if distance > 0.0 else 1.0
        return distributions.student_tail(distance / self.error, self.df)

    def below(self, bound: float) -> float:
        """One-sided p of the hypothesis that the log ratio is at least `bound`."""
        return RatioEstimate(-self.log_ratio, self.error, self.df).above(-bound)


def contrast(groups: Sequence[Sequence[float]], weights: Sequence[float], sigma: Sigma | None = None) -> RatioEstimate:
    """A weighted sum of the means of groups of logs.

    Its error is that of ``sigma``, else of the groups' own spreads, with Satterthwaite's degrees of freedom (Welch
    1947); then each group has at least two launches.
    """
    moments = [mean_and_variance(group) for group in groups]
    counts = [len(group) for group in groups]
    value = math.fsum(weight * mean for weight, (mean, _) in zip(weights, moments, strict=True))
    if sigma is not None:
        shares = math.fsum(weight * weight / count for weight, count in zip(weights, counts, strict=True))
        return RatioEstimate(value, sigma.value * math.sqrt(shares), sigma.df)
    parts = [weight**2 * moment[1] / count for weight, moment, count in zip(weights, moments, counts, strict=True)]
    squared = math.fsum(parts)
    if squared == 0.0:
        return RatioEstimate(value, 0.0, None)
    # Shares and not squares of variances: those of launches that nearly agree would underflow.
    df = 1.0 / math.fsum((part / squared) ** 2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return RatioEstimate(value, math.sqrt(squared), df)


def welch(a: Sequence[float], b: Sequence[float]) -> RatioEstimate:
    """B − A from logs of at least two launches per side, by Welch's test with Satterthwaite's degrees of freedom."""
    return contrast((a, b), (-1.0, 1.0))


def predicted(logs: Sequence[float]) -> RatioEstimate:
    """One more of at least two logs: their mean, with the error of a single further one, s · sqrt(1 + 1/n)."""
    mean, variance = mean_and_variance(logs)
    count = len(logs)
    return RatioEstimate(mean, math.sqrt(variance * (1.0 + 1.0 / count)), float(count - 1))


def paired(differences: Sequence[float]) -> RatioEstimate:
    """B − A from the log differences of at least two pairs, by the paired t-test."""
    mean, variance = mean_and_variance(differences)
    count = len(differences)
    return RatioEstimate(mean, math.sqrt(variance / count), float(count - 1) if variance > 0.0 else None)


def beside_drift(
    a: Sequence[float], b: Sequence[float], times_a: Sequence[float], times_b: Sequence[float]
) -> RatioEstimate:
    """B − A from logs of launches that took turns, a straight drift of the machine taken out.

    Least squares of the log on side and start time, in its closed form (analysis of covariance, Fisher 1932): at
    least two launches per side at different times. Each side keeps a variance of its own, as in Welch's test: a shared
    one covers 91 to 93 % where one side varies four times as much. A drift leaves a paired t less power than it has
    without one, biases it where the turns are ABAB, and it spends half the degrees of freedom.
    """
    if min(a) == max(a) and min(b) == max(b):  # rounding must not make a spread out of equal values
        return RatioEstimate(b[0] - a[0], 0.0, None)
    one, other = _Line.of(a, times_a), _Line.of(b, times_b)
    spread = one.spread + other.spread
    slope = (one.product + other.product) / spread
    lead = other.time - one.time
    parts = [line.part(slope, lead, spread) for line in (one, other)]
    squared = math.fsum(variance for variance, _ in parts)
    if squared == 0.0:
        return RatioEstimate(other.mean - one.mean - slope * lead, 0.0, None)
    df = 1.0 / math.fsum((variance / squared) ** 2 / freedom for variance, freedom in parts)
    return RatioEstimate(other.mean - one.mean - slope * lead, math.sqrt(squared), df)


class _Line(NamedTuple):
    """The logs of one side and their start times, each around its mean; `spread` and `product` are sums over them."""

    mean: float
    time: float
    logs: list[float]
    times: list[float]
    spread: float
    product: float

    @classmethod
    def of(cls, logs: Sequence[float], times: Sequence[float]) -> _Line:
        mean, middle = math.fsum(logs) / len(logs), math.fsum(times) / len(times)
        off = [value - mean for value in logs]
        away = [time - middle for time in times]
        spread = math.fsum(time * time for time in away)
        product = math.fsum(time * value for time, value in zip(away, off, strict=True))
        return cls(mean, middle, off, away, spread, product)

    def part(self, slope: float, lead: float, spread: float) -> tuple[float, float]:
        """What this side adds to the variance of the estimate, and on how many degrees of freedom."""
        count = len(self.logs)
        freedom = count - 1.0 - self.spread / spread
        squares = math.fsum((value - slope * time) ** 2 for time, value in zip(self.times, self.logs, strict=True))
        return squares / freedom * (1.0 / count + lead * lead * self.spread / (spread * spread)), freedom


def trimmed(a: Sequence[float], b: Sequence[float]) -> RatioEstimate:
    """B − A from logs of at least `TRIMMED_FROM` launches per side, the quarter at either end of each left out.

    Yuen's test (Biometrika 61 (1974) 165): trimmed means with the winsorized variances of their sides.
    """
    (mean_a, square_a, df_a), (mean_b, square_b, df_b) = _trimmed_mean(a), _trimmed_mean(b)
    squared = square_a + square_b
    if squared == 0.0:
        return RatioEstimate(mean_b - mean_a, 0.0, None)
    df = 1.0 / ((square_a / squared) ** 2 / df_a + (square_b / squared) ** 2 / df_b)
    return RatioEstimate(mean_b - mean_a, math.sqrt(squared), df)


def trimmed_pairs(differences: Sequence[float]) -> RatioEstimate:
    """B − A from the log differences of pairs, the quarter at either end left out (Tukey and McLaughlin 1963)."""
    mean, square, df = _trimmed_mean(differences)
    return RatioEstimate(mean, math.sqrt(square), df if square > 0.0 else None)


def _trimmed_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Trimmed mean, the square of its error, and its degrees of freedom."""
    ordered, count = sorted(values), len(values)
    cut = count // 4
    kept = ordered[cut : count - cut]
    _, variance = mean_and_variance([kept[0]] * cut + kept + [kept[-1]] * cut)
    return math.fsum(kept) / len(kept), (count - 1) * variance / (len(kept) * (len(kept) - 1)), len(kept) - 1.0


def against_floor(a: Sequence[float], b: Sequence[float], sigma: Sigma) -> RatioEstimate:
    """B − A from logs of at least one launch per side, their spread taken from the noise floor."""
    return contrast((a, b), (-1.0, 1.0), sigma)


def mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Mean and variance of at least two values; of equal ones the variance is zero."""
    if min(values) == max(values):  # rounding must not make a spread out of equal values
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
