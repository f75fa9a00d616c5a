"""A value for each chip, and its scale: what the terminal and the picture draw alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from receipts.base.units import GIB
from receipts.publish.pictures.layout import ChipLayout

ALIKE: Final = 0.05  # of the largest value: chips that lie closer together than this share one part of the scale
UNCHANGED: Final = 0.01
WORST: Final = {"higher": "leads", "lower": "has the least", "either": "changed the most"}
Worse = Literal["higher", "lower", "either"]


@dataclass(frozen=True)
class Heat:
    """Chips with their values in bytes. A chip of the layout without a value has a row that does not state it.

    ``worse`` says which end is dark: ``lower`` for headroom, ``either`` for a change, where 0 is in the middle and red
    is growth, or what is lost where ``relief`` is ``up``.
    ``limits`` are the chips' limits in bytes. ``leaders`` have the worst value, ``missing`` no row, ``doubled`` two,
    and ``thin`` less headroom than the lane keeps. ``title``, ``about`` and ``note`` are text for people.
    """

    layout: ChipLayout
    values: Mapping[int, float]
    title: str
    about: str
    note: tuple[str, ...] = ()
    worse: Worse = "higher"
    relief: Literal["down", "up"] = "down"
    limits: Mapping[int, float] | None = None
    leaders: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    thin: frozenset[int] = frozenset()

    @property
    def scale(self) -> tuple[float, float]:
        """The ends of the scale in bytes: those of the values, yet so far apart that chips alike look alike."""
        low, high = min(self.values.values(), default=0.0), max(self.values.values(), default=0.0)
        if self.worse == "either":
            base = max((self.limits or {}).values(), default=0.0)
            reach = max(abs(low), abs(high), UNCHANGED * base, 1.0)
            return -reach, reach
        base = max(abs(high), abs(low), *(self.limits or {}).values()) if self.worse == "lower" else abs(high)
        short = max(ALIKE * base, 1.0) - (high - low)
        return (low - short / 2, high + short / 2) if short > 0 else (low, high)

    def share(self, chip: int) -> float | None:
        """Where a chip's value is on the scale: 0 to 1, the worst at 1; a change from -1 to 1."""
        value = self.values.get(chip)
        if value is None:
            return None
        low, high = self.scale
        if self.worse == "either":
            return value / high if self.relief == "down" else -value / high
        place = (value - low) / (high - low)
        return 1.0 - place if self.worse == "lower" else place

    def fullness(self, chip: int) -> float | None:
        """How dark a picture draws a chip, from 0 to 1: how much of its limit is used; of a change how large it is."""
        value = self.values.get(chip)
        if value is None or self.worse == "either":
            share = self.share(chip)
            return None if share is None else abs(share)
        part = value / ((self.limits or {}).get(chip) or max(self.values.values()) or 1.0)
        return 1.0 - part if self.worse == "lower" else part

    def text(self, chip: int) -> str:
        """A chip's value in GiB, with as many digits as tell chips apart; ``~`` where it states none."""
        value = self.values.get(chip)
        return "~" if value is None else self.amount(value)

    def amount(self, value: float) -> str:
        """Bytes in GiB: to a tenth, or to a hundredth where all are below ten; a change has its sign."""
        sign = "+" if self.worse == "either" else ""
        digits = 2 if max((abs(item) for item in self.values.values()), default=0.0) < 10 * GIB else 1
        return f"{value / GIB:{sign}.{digits}f}"
