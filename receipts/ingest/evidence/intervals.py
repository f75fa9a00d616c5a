"""Means over intervals of steps: what a log prints that times every n-th step, or a block. A mean is no step."""

from __future__ import annotations

from typing import Final, NamedTuple

LOST: Final = 0.02  # a log of single steps may lose a line


class IntervalMeans(NamedTuple):
    """Means in order, in seconds a step, and how many steps each is over; the timer, and what it times."""

    seconds: list[float]
    steps: list[int]
    timer: str
    region: str = ""

    @property
    def single(self) -> bool:
        """Whether each is the time of one step, lost lines aside."""
        return sum(count != 1 for count in self.steps) <= LOST * len(self.steps)
