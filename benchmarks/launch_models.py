"""Simulated launches: step times as training shows them, of launches that are all equally fast.

Every model gives an array (launches, steps) of step times around 1. What differs between launches of one session, the
launch's own luck, a drift of the host and an effect, is a factor on a whole launch and is put on by `factors`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEP_NOISE = 0.005
LAUNCH_SPREAD = 0.003
BURN_IN = 100
SECONDS_A_LAUNCH, SECONDS_A_DAY = 600.0, 86_400.0
# Of ten launches: what makes AAAAA then BBBBB go wrong in about a third of the sessions.
DRIFT_A_LAUNCH = 0.0009


def autoregressive(rng: np.random.Generator, launches: int, steps: int, phi: float) -> Floats:
    """AR(1) noise of variance 1, past its burn-in."""
    shocks = rng.standard_normal((launches, steps + BURN_IN))
    for step in range(1, steps + BURN_IN):
        shocks[:, step] = phi * shocks[:, step - 1] + np.sqrt(1.0 - phi * phi) * shocks[:, step]
    return shocks[:, BURN_IN:]


def _plain(phi: float) -> Model:
    return lambda rng, launches, steps: 1.0 + STEP_NOISE * autoregressive(rng, launches, steps, phi)


def stalls(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """One step in a hundred takes longer, three times as long on average."""
    times = _plain(0.5)(rng, launches, steps)
    hit = rng.random(times.shape) < 0.01
    return np.where(hit, times * (1.0 + rng.exponential(2.0, times.shape)), times)


def regular_stalls(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """Every tenth step takes four fifths longer, as where something is written or collected."""
    times = _plain(0.5)(rng, launches, steps)
    times[:, ::10] += 0.8
    return times


def gaps(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """The wall time of steps with a fifth of a step between them, which varies by a quarter."""
    return _plain(0.5)(rng, launches, steps) + rng.gamma(16.0, 0.2 / 16.0, (launches, steps))


def warm_up(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """A first step that compiles, and a head that starts half as slow again and settles within 4 to 20 steps."""
    settling = rng.uniform(4.0, 20.0, (launches, 1))
    times = stalls(rng, launches, steps) * (1.0 + 0.5 * np.exp(-np.arange(steps) / settling))
    times[:, 0] *= 30.0
    return times


def throttling(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """Three launches in ten lose 3 % to lower clocks, for a tenth to a half of their steps, anywhere."""
    start = rng.uniform(0.0, 1.0, (launches, 1)) * steps
    length = rng.uniform(0.1, 0.5, (launches, 1)) * steps
    step = np.arange(steps)
    inside = (rng.random((launches, 1)) < 0.3) & (step >= start) & (step < start + length)
    return stalls(rng, launches, steps) * np.where(inside, 1.03, 1.0)


def recompile(rng: np.random.Generator, launches: int, steps: int) -> Floats:
    """One step anywhere in the run compiles again, twenty times as long, and carries no flag."""
    times = stalls(rng, launches, steps)
    times[np.arange(launches), rng.integers(0, steps, launches)] *= 20.0
    return times


Model = Callable[[np.random.Generator, int, int], "Floats"]


@dataclass(frozen=True)
class Scenario:
    """How steps, launches and the host behave.

    `drift` and `wander` are logs a launch: a line, and a random walk. `days` is how far the levels of days lie apart,
    where every two launches have a day of their own. `paid`: a launch is what its steps cost, and not its typical step.
    """

    name: str
    model: Model
    spread: float = LAUNCH_SPREAD
    drift: float = 0.0
    wander: float = 0.0
    days: float = 0.0
    paid: bool = False

    @property
    def still(self) -> bool:
        """Whether the host keeps its level."""
        return not (self.drift or self.wander or self.days)

    def starts(self, launches: int) -> Floats:
        """Start times in seconds: ten minutes apart, or two launches a day."""
        place = np.arange(launches)
        return place * SECONDS_A_LAUNCH + (place // 2) * (SECONDS_A_DAY if self.days else 0.0)

    def factors(self, rng: np.random.Generator, sessions: int, launches: int) -> Floats:
        """Logs of what each launch of a session is slower by, in the order in which they ran."""
        place = np.arange(launches) - (launches - 1) / 2.0
        sign = rng.choice([-1.0, 1.0], (sessions, 1))
        walk = np.cumsum(rng.normal(0.0, self.wander, (sessions, launches)), axis=1) if self.wander else 0.0
        spread = rng.normal(0.0, self.spread, (sessions, launches))
        days = np.repeat(rng.normal(0.0, self.days, (sessions, -(-launches // 2))), 2, axis=1)[:, :launches]
        return spread + sign * self.drift * place + walk + days


SCENARIOS = (
    Scenario("independent steps", _plain(0.0), spread=0.0),
    Scenario("AR(1) φ = .5", _plain(0.5), spread=0.0),
    Scenario("AR(1) φ = .9", _plain(0.9), spread=0.0),
    Scenario("1 % stalls", stalls, spread=0.0),
    Scenario("throughput, 1 % stalls", stalls, paid=True),
    Scenario("throughput, stalls in every tenth step", regular_stalls, paid=True),
    Scenario("throughput, gaps between steps", gaps, paid=True),
    Scenario("launch spread 0.3 %", _plain(0.5)),
    Scenario("host drift", _plain(0.5), drift=DRIFT_A_LAUNCH),
    Scenario("host drift, four times", _plain(0.5), drift=4 * DRIFT_A_LAUNCH),
    Scenario("host wanders", _plain(0.5), wander=2 * DRIFT_A_LAUNCH),
    Scenario("two launches a day", _plain(0.5), days=0.01),
    Scenario("warm-up", warm_up),
    Scenario("throttling", throttling),
    Scenario("recompile in mid-run", recompile),
)
