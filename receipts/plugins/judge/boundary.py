"""When a trial may stop, and at which level the next trial of a campaign is judged.

A trial is looked at after so many turns of base and candidate. What counts is the difference of the logs within each
turn, so that a machine that drifts moves both. The error is divided among the looks (Bonferroni's inequality over
Student's t of the differences): the intervals of all looks hold together, whenever somebody stops, on the spread that
the launches themselves show. A boundary calibrated by simulation, as `receipts plan` has it, needs fewer launches at
5 %, and cannot be calibrated at the levels of a long campaign.

The level of the next trial is LORD++ (Ramdas, Yang, Wainwright, Jordan, NeurIPS 2017; Javanmard and Montanari, Ann.
Statist. 46 (2018) 526): it spends little while nothing is kept and earns with each change that is. The expected share
of false ones among the kept is at most ``RATE`` after any number of trials, whatever the share of true ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from receipts.stats.distributions import student_quantile

LOOKS: Final = (3, 4, 6, 9, 14, 22, 35)  # turns
MAX_TURNS: Final = LOOKS[-1]
ALONE: Final = 0.025  # the rate at which a trial of no campaign keeps what improves nothing
RATE: Final = 0.05
_EXPONENT: Final = 1.6  # of the series by which a campaign spends
_SERIES: Final = 2.28576567  # its sum, so that all levels together spend what there is


class TurnInterval(NamedTuple):
    """B over A of the turns so far in logs; ``low`` to ``high`` holds with all other looks at ``confidence``."""

    ratio: float
    low: float
    high: float
    turns: int
    look: int  # from 1; 0 before the first
    confidence: float


def interval(differences: Sequence[float], level: float) -> TurnInterval | None:
    """The interval of the last planned look that the turns reach; None before the first.

    ``level`` is the chance, one-sided, that the interval of any look misses the truth. Turns beyond a look wait for the
    next one: who looks in between would look more often than the level allows.
    """
    look = sum(1 for turns in LOOKS if turns <= len(differences))
    if not look:
        return None
    own = differences[: LOOKS[look - 1]]
    mean = math.fsum(own) / len(own)
    spread = math.sqrt(math.fsum((item - mean) ** 2 for item in own) / (len(own) - 1))
    share = level / len(LOOKS)
    half = spread and student_quantile(1.0 - share, len(own) - 1.0) * spread / math.sqrt(len(own))
    return TurnInterval(mean, mean - half, mean + half, len(own), look, 1.0 - 2.0 * share)


def turns_missing(turns: int) -> int:
    """How many turns more the next look takes; none after the last."""
    return next((planned - turns for planned in LOOKS if planned > turns), 0)


def next_level(kept: Sequence[bool]) -> float:
    """The level of the trial that follows these, each by whether it was kept."""

    def share(trials: int) -> float:
        return float(trials**-_EXPONENT) / _SERIES

    number, discoveries = len(kept) + 1, [place for place, one in enumerate(kept, 1) if one]
    start = RATE / 2.0
    earned = [RATE - start if not before else RATE for before in range(len(discoveries))]
    return share(number) * start + math.fsum(
        gain * share(number - place) for gain, place in zip(earned, discoveries, strict=True)
    )
