"""The level of one configuration: the geometric mean of its launches, a random effect for each session.

A maximum grows with the number of launches; a mean does not. Launches of one session share its day, node and clocks,
so that ten of one session tell less than ten nights with one launch each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from receipts.stats.estimate import RatioEstimate
from receipts.stats.sessions import sessions

CONFIDENCE: Final = 0.95
SETTLED: Final = 0.05  # no lane may call a larger change one that does not matter


class Level(NamedTuple):
    """A positive quantity of one configuration, with its 95 % interval; there is none for a single launch."""

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
    estimate = _one(logs[0]) if len(logs) == 1 else _several(logs)
    value = math.exp(estimate.log_ratio)
    if launches == 1:
        return Level(value, None, None, 1, 1)
    half = estimate.half_width(CONFIDENCE)
    ends = math.exp(estimate.log_ratio - half), math.exp(min(700.0, estimate.log_ratio + half))
    return Level(value, *ends, launches, len(logs))


def _one(logs: Sequence[float]) -> RatioEstimate:
    mean, squares = _moments(logs)
    freedom = len(logs) - 1
    return RatioEstimate(mean, math.sqrt(squares / freedom / len(logs)) if freedom else 0.0, freedom or None)


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
