"""The level of one configuration, and its noise floor: how far its launches lie apart.

The level is the geometric mean of the launches, with a random effect for each session. A maximum grows with the
number of launches; a mean does not. Launches of one session share its day, node and clocks, so that ten launches of
one session show less than ten nights with one launch each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import NormalDist
from typing import Final, NamedTuple

from receipts.stats.equivalence import CONFIDENCE, Better
from receipts.stats.log_ratio import RatioEstimate, Sigma, against_floor, pooled
from receipts.stats.sessions import sessions

SETTLED: Final = 0.05  # no lane may call a larger change one that does not matter


class Level(NamedTuple):
    """A positive quantity of one configuration, with its 95 % interval; there is None for a single launch."""

    value: float
    low: float | None
    high: float | None
    launches: int
    sessions: int

    @property
    def is_settled(self) -> bool:
        """Whether its interval lies within 5 % of it: two launches that are far apart settle nothing."""
        if self.low is None or self.high is None:
            return False
        return self.high <= self.value * (1.0 + SETTLED) and self.low >= self.value / (1.0 + SETTLED)

    @property
    def floor(self) -> float:
        """What it is at least: the lower end, by which levels are ordered."""
        return self.low if self.low is not None else 0.0


def level(groups: Sequence[Sequence[float]]) -> Level:
    """The level from the values of each session, each positive, at least one in all.

    One session: its mean, by Student's t. Several: session means weighted by what they share and what they have of
    their own (DerSimonian and Laird 1986), with the error of Hartung and Knapp (2001) on one degree of freedom less
    than there are sessions.
    """
    logs = [[math.log(value) for value in held] for held in groups if held]
    launches = sum(map(len, logs))
    if len(logs) == 1:
        mean, squares = _moments(logs[0])
        freedom = launches - 1
        error = math.sqrt(squares / freedom / launches) if freedom else 0.0
        estimate = RatioEstimate(mean, error, freedom or None)
    else:
        estimate = _several(logs)
    value = math.exp(estimate.log_ratio)
    if launches == 1:
        return Level(value, None, None, 1, 1)
    half = estimate.half_width(CONFIDENCE)
    ends = math.exp(estimate.log_ratio - half), math.exp(min(700.0, estimate.log_ratio + half))
    return Level(value, *ends, launches, len(logs))


def _several(groups: Sequence[Sequence[float]]) -> RatioEstimate:
    moments = [_moments(group) for group in groups]
    counts = [len(group) for group in groups]
    launches, freedom = sum(counts), len(groups) - 1
    spare = launches - len(groups)
    within = math.fsum(squares for _, squares in moments) / spare if spare else 0.0
    center = math.fsum(count * mean for count, (mean, _) in zip(counts, moments, strict=True)) / launches
    between = math.fsum(count * (mean - center) ** 2 for count, (mean, _) in zip(counts, moments, strict=True))
    scale = launches - math.fsum(count * count for count in counts) / launches
    shared = max(0.0, (between - freedom * within) / scale)
    errors = [shared + within / count for count in counts]
    # Sessions that agree to the last digit, each with one launch or equal ones: they weigh alike.
    weights = [1.0 / error for error in errors] if min(errors) > 0.0 else [1.0] * len(groups)
    whole = math.fsum(weights)
    mean = math.fsum(weight * mean for weight, (mean, _) in zip(weights, moments, strict=True)) / whole
    apart = math.fsum(weight * (own - mean) ** 2 for weight, (own, _) in zip(weights, moments, strict=True))
    return RatioEstimate(mean, math.sqrt(apart / freedom / whole), float(freedom))


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the sum of squares around it; rounding makes no spread out of equal values."""
    if min(values) == max(values):
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values)


def level_by_session(launches: Sequence[tuple[float, datetime, str | None]]) -> Level:
    """The level from the value of each launch, its start, and the session that it declares."""
    times = [started.timestamp() for _, started, _ in launches]
    held: dict[int, list[float]] = {}
    for (value, *_), number in zip(launches, sessions(times, [name for *_, name in launches]), strict=True):
        held.setdefault(number, []).append(value)
    return level(list(held.values()))


EXPECTED_SHARE = 1.0 - CONFIDENCE
ALARM = 0.005


def pooled_sigma(groups: Iterable[Sequence[float]], of: str = "") -> Sigma | None:
    """σ of log locations, pooled over groups of launches that differ in nothing.

    Each group holds the locations of two or more launches (smaller ones carry no spread and are passed over); `of`
    says in words which launches they are. None if nothing varies.
    """
    return pooled(_logs(groups), of)


def largest_spread(groups: Iterable[Sequence[float]]) -> float | None:
    """The largest log ratio between two launches of one group; None if no group has two."""
    spreads = [max(group) - min(group) for group in _logs(groups)]
    return max(spreads, default=None)


class SelfCheck(NamedTuple):
    """How often two equal launches were told apart.

    `pairs` were compared, and the interval of `excluded_one` of them excludes the ratio 1: about 5 % should, as
    often `faster` as `slower` (the later launch against the earlier one). `alarm`: one side is in such excess that
    chance gives it less than once in 200 checks.
    """

    pairs: int
    excluded_one: int
    faster: int
    slower: int
    alarm: bool
    why: str

    @property
    def share(self) -> float | None:
        """Share of the pairs whose interval excludes 1; none without pairs."""
        return self.excluded_one / self.pairs if self.pairs else None


def self_check(groups: Iterable[Sequence[float]], better: Better = "lower") -> SelfCheck:
    """Compare equal launches with one another, as one launch against one, and count how many are called different.

    Each group holds locations in the order the launches ran. Launches are paired first with second, third with
    fourth and so on, so that no launch counts twice; the floor of a pair is pooled over the other groups, since a
    pair must not widen its own interval. Where there is no other group, nothing is checked.
    """
    logs = _logs(groups)
    squares, freedom = _sums(logs)
    pairs = lower = higher = 0
    for group in logs:
        own_squares, own_freedom = _sums([group])
        others = freedom - own_freedom
        # Subtracting leaves rounding dust where the other groups have no spread at all.
        rest = squares - own_squares
        if others <= 0 or rest <= 1e-12 * squares:
            continue
        floor = Sigma(math.sqrt(rest / others), float(others), "measured")
        for i in range(0, len(group) - 1, 2):
            estimate = against_floor(group[i : i + 1], group[i + 1 : i + 2], floor)
            half = estimate.half_width(CONFIDENCE)
            pairs += 1
            lower += estimate.log_ratio + half < 0.0
            higher += estimate.log_ratio - half > 0.0
    faster, slower = (lower, higher) if better == "lower" else (higher, lower)
    return _checked(pairs, faster, slower)


def _checked(pairs: int, faster: int, slower: int) -> SelfCheck:
    if pairs == 0:
        return SelfCheck(0, 0, 0, 0, False, "no two groups of equal launches: nothing to check against")
    side = max(faster, slower)
    alarm = binomial_tail(side, pairs, EXPECTED_SHARE / 2.0) < ALARM
    decided = faster + slower
    why = f"{decided} of {pairs} pairs of equal launches told apart ({faster} faster, {slower} slower)"
    if alarm:
        direction = "faster" if faster >= slower else "slower"
        why += f": too many {direction} for chance; the noise floor is too small, or the machine drifts"
    return SelfCheck(pairs, decided, faster, slower, alarm, why)


def combined_checks(checks: Iterable[SelfCheck]) -> SelfCheck:
    """Several checks as one: classes with few pairs each may be one-sided together."""
    parts = list(checks)
    return _checked(*(sum(getattr(item, name) for item in parts) for name in ("pairs", "faster", "slower")))


QUIET: Final = 0.01  # of equal launches, that a gate may fail without anybody losing trust in it
LOUD: Final = 0.05


class GateCheck(NamedTuple):
    """How often a gate would have failed equal launches: B slower than A by more than ``share``, ``launches`` a side.

    ``failed`` of ``pairs`` that ran one after the other; ``expected`` is the share that σ gives, ``quiet_share`` the
    gate and ``quiet_launches`` the launches a side with which it is one in a hundred. None if σ is not known.
    """

    share: float
    launches: int
    pairs: int
    failed: int
    expected: float | None = None
    quiet_share: float | None = None
    quiet_launches: int | None = None

    @property
    def rate(self) -> float | None:
        """The share of the pairs that failed; None without pairs."""
        return self.failed / self.pairs if self.pairs else None

    @property
    def loud(self) -> bool:
        """Whether it fails equal launches too often to be trusted, as seen or as σ says."""
        return max(self.rate or 0.0, self.expected or 0.0) > LOUD


def gate_check(groups: Iterable[Sequence[float]], sigma: float | None, share: float, launches: int) -> GateCheck:
    """Hold each run of so many equal launches against the next one, by the ratio of their geometric means.

    Groups are those of `self_check`. Two runs of n normal launches differ by σ √(2 / n).
    """
    bound, failed, pairs = math.log1p(share), 0, 0
    for group in _logs(groups):
        means = [
            math.fsum(group[at : at + launches]) / launches for at in range(0, len(group) - launches + 1, launches)
        ]
        pairs += max(0, len(means) - 1)
        failed += sum(after - before > bound for before, after in pairwise(means))
    if not sigma:
        return GateCheck(share, launches, pairs, failed)
    apart = sigma * math.sqrt(2.0 / launches)
    normal = NormalDist()
    quantile = normal.inv_cdf(1.0 - QUIET)
    needed = math.ceil(2.0 * (quantile * sigma / bound) ** 2)
    return GateCheck(
        share, launches, pairs, failed, normal.cdf(-bound / apart), math.expm1(quantile * apart), max(1, needed)
    )


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """P(X ≥ successes) for X binomial over `trials`, `share` strictly between 0 and 1."""
    if successes <= 0:
        return 1.0
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * math.log(share)
            + (trials - k) * math.log1p(-share)
        )
        for k in range(successes, trials + 1)
    )


def _logs(groups: Iterable[Sequence[float]]) -> list[list[float]]:
    """Logs of the groups of two and more; a location that is not positive carries no log and is left out."""
    kept = ([math.log(value) for value in group if 0.0 < value < math.inf] for group in groups)
    return [group for group in kept if len(group) >= 2]


def _sums(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Sum of squares around each group's own mean, and degrees of freedom."""
    squares: list[float] = []
    freedom = 0
    for group in groups:
        freedom += len(group) - 1
        if min(group) != max(group):
            mean = math.fsum(group) / len(group)
            squares.extend((value - mean) ** 2 for value in group)
    return math.fsum(squares), freedom
