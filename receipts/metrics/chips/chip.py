"""One chip in one phase, and chips beside their peers.

Bytes throughout. Live memory, the pool and what was in use are ranked each by itself and never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from receipts.receipt.memory import MemoryPhase

Metric = Literal["used", "peak", "pool", "headroom"]
PHASES: Final[tuple[MemoryPhase, ...]] = get_args(MemoryPhase)
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
LEAVES: Final[Mapping[Metric, str]] = {"used": "bytes_used", "peak": "peak_bytes", "pool": "peak_reserved_bytes"}
TITLES: Final[Mapping[Metric, str]] = {
    "used": "in use",
    "peak": "live peak",
    "pool": "pool peak",
    "headroom": "headroom (limit less live peak)",
}
STEPS: Final = 10  # peaks that are this near in time are one moment: the first steps after warm-up


class Chip(NamedTuple):
    """One chip in one phase, in bytes. ``rows`` are its positions in ``memory.chips``: two where it is listed twice.

    Of a chip that is listed twice each figure is the larger one, and the limit the smaller: its tightest reading.
    """

    chip: int
    phase: MemoryPhase
    used: int | None
    limit: int | None
    peak: int | None
    pool: int | None
    step: int | None
    rows: tuple[int, ...]

    @property
    def headroom(self) -> int | None:
        """What its limit leaves above its live peak; negative where that is above the limit (R403)."""
        return self.limit - self.peak if self.limit is not None and self.peak is not None else None

    @property
    def left(self) -> float | None:
        """`headroom` as a share of the limit."""
        limit, peak = self.limit, self.peak
        return (limit - peak) / limit if limit and peak is not None else None

    def read(self, metric: Metric) -> int | None:
        """One of the four figures."""
        value: int | None = getattr(self, metric)
        return value


class Ranking(NamedTuple):
    """Chips of one phase by one figure, in bytes. ``leaders`` have the highest value: several where they are equal."""

    leaders: tuple[int, ...]
    highest: int
    lowest_chip: int
    lowest: int
    middle: float
    chips: int

    @property
    def skew(self) -> float | None:
        """How far the leader lies above the median of all chips, as a share of it; None for a lone chip."""
        return self.highest / self.middle - 1 if self.chips > 1 and self.middle else None


class Moment(NamedTuple):
    """When peaks were reached: the chips that peaked first, at which step, and the step by which all had.

    ``stated`` is how many chips state their step.
    """

    step: int
    chips: tuple[int, ...]
    last_step: int
    stated: int

    @property
    def together(self) -> bool:
        """Whether all peaked at one step."""
        return self.step == self.last_step


class Lone(NamedTuple):
    """Chips that stand apart from their peers, and the median that they stand apart from."""

    chips: tuple[Chip, ...]
    middle: float


def tightness(item: Chip) -> tuple[float, int]:
    """The order of chips by the share that is left, the tightest first."""
    left = item.left
    return (left if left is not None else 1.0), item.chip
