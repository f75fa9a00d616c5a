"""Gains on the log scale: of one configuration over another, and of two axes together over both apart.

A configuration's place is the mean of the logs of its launches. A hop's gain is the difference of two places, so that
the gains of a chain add to that of its ends exactly, whatever order the launches ran in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from receipts.metrics import Launch, Metric
from receipts.stats import effect as effects
from receipts.stats.equivalence import CONFIDENCE, FEWEST_LAUNCHES
from receipts.stats.log_ratio import Sigma, contrast

_KEPT: Final = ("steps", "memory")  # sources of numbers that were read from what a launch left


@dataclass(frozen=True, slots=True)
class Values:
    """One metric of the launches of a configuration. ``measured``: none of them is merely stated.

    ``logs`` is empty where some launch has no positive number.
    """

    logs: tuple[float, ...]
    measured: bool

    @property
    def place(self) -> float | None:
        """The mean of the logs; None where there is none."""
        return math.fsum(self.logs) / len(self.logs) if self.logs else None


def values(launches: Sequence[Launch], metric: Metric) -> Values:
    """A metric of these launches."""
    readings = [launch.read(metric) for launch in launches]
    numbers = [item.value for item in readings if item.value is not None and 0.0 < item.value < math.inf]
    if len(numbers) < len(readings):
        return Values((), False)
    kept = metric.summary in ("step", "rate", "memory")
    measured = not kept or all(item.source in _KEPT for item in readings)
    return Values(tuple(math.log(value) for value in numbers), measured)


class HopGain(NamedTuple):
    """The metric of one configuration over another's: its log, and a 95 % interval of the log where there is one.

    ``measured`` is False where numbers are as stated: then there is no interval.
    """

    log: float
    low: float | None
    high: float | None
    measured: bool

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.log)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ratio's interval."""
        return None if self.low is None or self.high is None else (math.exp(self.low), math.exp(self.high))


def gain(a: Values, b: Values, sigma: Sigma | None) -> HopGain | None:
    """What B has over A; None where a side has no number. Welch on the logs, or the noise floor for few launches."""
    if a.place is None or b.place is None:
        return None
    log = b.place - a.place
    if not (a.measured and b.measured):
        return HopGain(log, None, None, measured=False)
    effect = effects.compare([math.exp(item) for item in a.logs], [math.exp(item) for item in b.logs], sigma=sigma)
    if effect.low is None or effect.high is None:
        return HopGain(log, None, None, measured=True)
    return HopGain(log, math.log(effect.low), math.log(effect.high), measured=True)


def exact(a: Values, b: Values) -> HopGain | None:
    """The same for a quantity that equal launches never differ in: its interval has no width."""
    if a.place is None or b.place is None:
        return None
    log = b.place - a.place
    certain = a.measured and b.measured and len(set(a.logs)) == len(set(b.logs)) == 1
    return HopGain(log, log, log, measured=True) if certain else HopGain(log, None, None, a.measured and b.measured)


Corners = tuple[Values, Values, Values, Values]
_INTERACTION: Final = (1.0, -1.0, -1.0, 1.0)


def together(corners: Corners, sigma: Sigma | None) -> HopGain | None:
    """What two axes have together over the product of both apart, from a 2×2; None without numbers.

    Corners are neither axis moved, the first, the second, both. The spread is the launches' own where every corner has
    three, with Satterthwaite's degrees of freedom (Welch 1947), else the noise floor's.
    """
    if any(item.place is None for item in corners):
        return None
    groups = [item.logs for item in corners]
    own = contrast(groups, _INTERACTION) if min(map(len, groups)) >= FEWEST_LAUNCHES else None
    if own is not None and own.error > 0.0:
        estimate, known = own, True
    else:
        known = sigma is not None and sigma.value > 0.0
        estimate = contrast(groups, _INTERACTION, sigma or Sigma(0.0, None, "declared"))
    measured = all(item.measured for item in corners)
    log, half = estimate.log_ratio, estimate.half_width(CONFIDENCE)
    if not measured or not known:
        return HopGain(log, None, None, measured)
    return HopGain(log, log - half, log + half, measured=True)
