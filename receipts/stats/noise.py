"""The noise floor: how far launches of one and the same configuration lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from receipts.stats.equivalence import CONFIDENCE, Better
from receipts.stats.estimate import Sigma, against_floor, pooled

EXPECTED_SHARE = 1.0 - CONFIDENCE
ALARM = 0.005


def pool(groups: Iterable[Sequence[float]], of: str = "") -> Sigma | None:
    """σ of log locations, pooled over groups of launches that differ in nothing.

    Each group holds the locations of two or more launches (smaller ones carry no spread and are passed over); `of`
    says in words which launches they are. None where nothing varies.
    """
    return pooled(_logs(groups), of)


def largest_spread(groups: Iterable[Sequence[float]]) -> float | None:
    """The largest log ratio between two launches of one group; none where no group has two."""
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


def together(checks: Iterable[SelfCheck]) -> SelfCheck:
    """Several checks as one: classes with few pairs each may be one-sided together."""
    parts = list(checks)
    return _checked(*(sum(getattr(item, name) for item in parts) for name in ("pairs", "faster", "slower")))


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
