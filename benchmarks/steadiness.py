"""What is asked of the steady segment, of launches in turns and of the self-check, by simulation beside each bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean as mean

import numpy as np

from benchmarks.launch_models import STEP_NOISE, autoregressive
from receipts.stats.distributions import median
from receipts.stats.effect import compare
from receipts.stats.noise import self_check
from receipts.stats.steady import steady_segment

CORRELATIONS = (0.0, 0.5, 0.9)
STATIONARY = (20, 30, 45, 60, 80, 100, 200, 300)
WARMING, SETTLING = (20, 30, 40, 50, 60), (3, 5, 7, 10)
SPREADS = (1.0, 4.0, 10.0)  # of the side that varies more, over that of the other
TURNS = {"ABBA": (0, 1, 1, 0), "ABAB": (0, 1)}
LAUNCHES = (3, 5, 8)


@dataclass(frozen=True)
class Bar:
    """What may be wrong at most: the worst of its cells, as a share."""

    name: str
    worst: float
    at: str
    most: float

    @property
    def holds(self) -> bool:
        """Whether every cell keeps it."""
        return self.worst <= self.most


def bars(count: int, seed: int) -> list[Bar]:
    """Every bar, from ``count`` launches or sessions a cell."""
    rng = np.random.default_rng(seed)
    return [
        _worst("stationary launches called unsteady", _stationary(2 * count, rng), 0.02),
        _worst("launches that stall regularly called unsteady", _stalling(count // 2, rng), 0.02),
        _worst("throughput lost to stalls or gaps, and not called slower", _lost(count // 10, rng), 0.01),
        _worst("shifts of 3 % in the middle of 100 steps missed", _shifted(count, rng), 0.10),
        _worst("locations over 0.5 % off after a warm-up, and not open", _warming(count // 4, rng), 0.05),
        _worst("seconds a step over 0.5 % off after a warm-up, and not open", _warming(count // 4, rng, mean), 0.05),
        _worst("coverage in turns, one side varying more: off 95 % by", _turns(6 * count, rng), 0.02),
        _worst("equal pairs told apart by the self-check: off 5 % by", _equal_pairs(4 * count, rng), 0.02),
    ]


def _worst(name: str, cells: Iterable[tuple[float, str]], most: float) -> Bar:
    worst, at = max(cells)
    return Bar(name, worst, at, most)


def _stationary(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    for phi in CORRELATIONS:
        for steps in STATIONARY:
            launches = (1.0 + STEP_NOISE * autoregressive(rng, count, steps, phi)).tolist()
            unsteady = sum(steady_segment(launch).status != "steady" for launch in launches)
            yield unsteady / count, f"{steps} steps, φ = {phi:g}"


def _stalling(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    """Every second to twentieth step takes longer, by a sixth to twelve times, the one before the rhythm or after."""
    for every, wander in ((2, 0), (3, 0), (5, 0), (5, 1), (10, 0), (20, 1)):
        for longer in (0.17, 2.0, 12.0):
            launches = 1.0 + STEP_NOISE * autoregressive(rng, count, 300, 0.5)
            at = np.arange(0, 300, every) + rng.integers(-wander, wander + 1, (count, 300 // every))
            launches[np.arange(count)[:, None], np.clip(at, 0, 299)] += longer
            unsteady = sum(steady_segment(launch).status != "steady" for launch in launches.tolist())
            yield unsteady / count, f"every {every} ± {wander}, {longer:+.0%}"


def _lost(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    """Five launches a side in turns, of one typical step: B stalls in every third step, or waits between steps."""
    times = np.arange(10, dtype=float)
    a, b = (times[np.resize(TURNS["ABBA"], 10) == side].tolist() for side in (0, 1))
    for name, cost in (("stalls", 0.8 / 3), ("gaps", 0.2)):
        missed = 0
        for _ in range(count):
            launches = 1.0 + STEP_NOISE * autoregressive(rng, 10, 300, 0.5)
            launches *= np.exp(rng.normal(0.0, 0.003, (10, 1)))
            launches[:5, ::10] += 0.8
            launches[5:, ::3] += 0.8 if name == "stalls" else 0.0
            launches[5:] += cost if name == "gaps" else 0.0
            paces = [mean(steady_segment(launch).of(launch)) for launch in launches.tolist()]
            missed += compare(paces[:5], paces[5:], times_a=a, times_b=b).kind != "slower"
        yield missed / count, f"{name}, 5 in turns"


def _shifted(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    for phi in (*CORRELATIONS, 0.7):
        for shift in (-0.03, 0.03):
            launches = 1.0 + STEP_NOISE * autoregressive(rng, count, 100, phi)
            launches[:, 50:] *= 1.0 + shift
            missed = sum(steady_segment(launch).status == "steady" for launch in launches.tolist())
            yield missed / count, f"{shift:+.0%}, φ = {phi:g}"


def _warming(
    count: int, rng: np.random.Generator, location: Callable[[Sequence[float]], float] = median
) -> Iterator[tuple[float, str]]:
    """A correlation's share over all lengths and time constants: of 40 steps that wander none places a level."""
    for phi in CORRELATIONS:
        wrong = 0
        for steps in WARMING:
            for settling in SETTLING:
                noise = 1.0 + STEP_NOISE * autoregressive(rng, count, steps, phi)
                for launch in (noise * (1.0 + 0.10 * np.exp(-np.arange(steps) / settling))).tolist():
                    segment = steady_segment(launch)
                    wrong += segment.status == "steady" and abs(location(segment.of(launch)) - 1.0) > 0.005
        yield wrong / (count * len(WARMING) * len(SETTLING)), f"φ = {phi:g}"


def _turns(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    for order, pattern in TURNS.items():
        for launches in LAUNCHES:
            side = np.resize(pattern, 2 * launches)
            times = np.arange(2 * launches, dtype=float)
            for spread in SPREADS:
                logs = rng.standard_normal((count, 2 * launches)) * np.where(side, 0.002 * spread, 0.002)
                held = 0
                for session in np.exp(logs):
                    effect = compare(
                        session[side == 0].tolist(),
                        session[side == 1].tolist(),
                        times_a=times[side == 0].tolist(),
                        times_b=times[side == 1].tolist(),
                    )
                    held += (effect.low or math.inf) <= 1.0 <= (effect.high or 0.0)
                yield abs(held / count - 0.95), f"{order}, {launches} a side, {spread:g} times"


def _equal_pairs(count: int, rng: np.random.Generator) -> Iterator[tuple[float, str]]:
    """The share on either side is half of it; an alarm counts as wholly wrong."""
    for launches in (2, 4, 6):
        groups = np.exp(rng.normal(0.0, 0.003, (count, launches))).tolist()
        check = self_check(groups)
        yield 1.0 if check.alarm else abs((check.share or 0.0) - 0.05), f"groups of {launches}"
        yield abs(check.faster - check.slower) / check.pairs, f"groups of {launches}, one side over the other"
