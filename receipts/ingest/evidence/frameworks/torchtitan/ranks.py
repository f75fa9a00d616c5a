"""Records of several ranks in one log: how far each has come, and one step for them all.

Every rank prints its own rate for a step, and a step is as long as its slowest rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from receipts.ingest.evidence.rows import rising
from receipts.ingest.evidence.steps import ABSENT, Steps

RATE: Final = "tokens_per_second_per_chip"
_WITH_IT: Final = ("tflops_per_second_per_chip", "mfu")
# A record of a rank that no record came from has to be read.
_UNSEEN: Final = 1 << 62
_MAX_RANKS: Final = 65_536


class Ranks:
    """The last step of each rank that printed one."""

    def __init__(self) -> None:
        self._last: dict[int | None, int] = {}

    @property
    def several(self) -> bool:
        """Whether more than one rank printed."""
        return len(self._last) > 1

    def go_on(self, step: int, rank: int | None) -> bool:
        """Take a rank's next step; False where it went back, and a new run began with it."""
        last = self._last.get(rank)
        back = last is not None and step <= last
        if back:
            # What the others print from here on is of the new run, too.
            self._last = {name: min(at, step - 1) for name, at in self._last.items()}
        if last is not None or len(self._last) < _MAX_RANKS:
            self._last[rank] = step
        return not back

    def follow(self, steps: list[int], ranks: Sequence[int | None]) -> bool:
        """Whether each rank is known and goes on, and then that it went so far."""
        if len(self._last) == 1 and ranks.count(ranks[0]) == len(ranks):
            if not rising(steps, self._last.get(ranks[0], _UNSEEN)):
                return False
            self._last[ranks[0]] = steps[-1]
            return True
        last = dict(self._last)
        for rank, step in zip(ranks, steps, strict=True):
            if step <= last.get(rank, _UNSEEN):
                return False
            last[rank] = step
        self._last = last
        return True


def keep_slowest(known: Steps, step: int, values: dict[str, float | None]) -> None:
    """Of two ranks' rates for one step, the lower ones stand."""
    before = known.get(step, RATE)
    now = values.get(RATE)
    if before is not None and (now is None or now > before):
        for name in (RATE, *_WITH_IT):
            values.pop(name, None)
        values[RATE] = before


def spread_slowest(known: Steps, steps: list[int], figures: dict[str, list[float]]) -> None:
    """Give each of many records the rates of the slowest one so far of its step, as `keep_slowest` does one."""
    rates = figures[RATE]
    others = [figures[name] for name in _WITH_IT if name in figures]
    slowest: dict[int, int] = {}
    for at, (step, rate) in enumerate(zip(steps, rates, strict=True)):
        held = slowest.get(step)
        if held is None:
            before = known.get(step, RATE)
            if before is not None and rate > before:
                rates[at] = before
                for column in others:
                    column[at] = ABSENT
        elif rate > rates[held]:
            rates[at] = rates[held]
            for column in others:
                column[at] = column[held]
        slowest[step] = at
