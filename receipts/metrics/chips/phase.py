"""One phase of a launch: every chip that has a row in it, and what is wrong with the list."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.metrics.chips.chip import STEPS, Chip, Lone, Metric, Moment, Ranking, tightness
from receipts.receipt.memory import MemoryPhase
from receipts.stats.order_statistics import median


class Phase:
    """Every chip that has a row in one phase, in the order of ordinals, and what is wrong with the list.

    ``missing`` are chips known to have taken part that have no row here, ``unnamed`` how many more lack one without
    its being known which, ``strange`` how many chips stand here beyond those that took part.
    """

    def __init__(self, name: MemoryPhase, chips: Sequence[Chip], known: frozenset[int], stated: int | None) -> None:
        self.name = name
        self.chips = tuple(chips)
        here = {item.chip for item in chips}
        self.missing: tuple[int, ...] = tuple(sorted(known - here))
        self.unnamed: int = max(0, stated - len(known | here)) if stated is not None else 0
        self.strange: int = max(0, len(here) - stated) if stated is not None else 0
        self.doubled: tuple[int, ...] = tuple(item.chip for item in chips if len(item.rows) > 1)

    def __repr__(self) -> str:
        return f"Phase({self.name!r}, {len(self.chips)} chips)"

    @property
    def whole(self) -> bool:
        """Whether every chip is listed here exactly once; unknown where no chip count is stated."""
        return not (self.missing or self.unnamed or self.strange or self.doubled)

    def get(self, chip: int) -> Chip | None:
        """The chip of that ordinal."""
        return next((item for item in self.chips if item.chip == chip), None)

    def ranking(self, metric: Metric) -> Ranking | None:
        """Chips by one figure; None where no chip states it."""
        ranked = [(value, item.chip) for item in self.chips if (value := item.read(metric)) is not None]
        if not ranked:
            return None
        highest = max(value for value, _ in ranked)
        lowest, lowest_chip = min(ranked)
        leaders = tuple(chip for value, chip in ranked if value == highest)
        middle = median([float(value) for value, _ in ranked])
        return Ranking(leaders, highest, lowest_chip, lowest, middle, len(ranked))

    @property
    def tightest(self) -> Chip | None:
        """The chip that keeps the least of its limit: it need not be the one with the highest peak."""
        # A chip without a limit or a peak has nothing that could be left.
        return min([item for item in self.chips if item.limit and item.peak is not None], key=tightness, default=None)

    @property
    def moment(self) -> Moment | None:
        """Which chips peaked earlier; None where no step is stated."""
        moments = [(item.step, item.chip) for item in self.chips if item.step is not None]
        if not moments:
            return None
        first = min(step for step, _ in moments)
        chips = tuple(chip for step, chip in moments if step == first)
        return Moment(first, chips, max(step for step, _ in moments), len(moments))

    def lone(self, tolerance: float) -> Lone:
        """Chips whose live peak lies farther than a share of the median from it, where they are few."""
        return _apart([(item, float(item.peak)) for item in self.chips if item.peak is not None], tolerance)

    def lone_in_time(self, tolerance: float) -> Lone:
        """Chips that peak far from the median step: beyond ten steps, and beyond a share of it."""
        return _apart([(item, float(item.step)) for item in self.chips if item.step is not None], tolerance, STEPS)


def _apart(rows: Sequence[tuple[Chip, float]], tolerance: float, least: float = 0.0) -> Lone:
    """Chips farther from the median than the tolerance, where they are few: half of the chips is no lone chip."""
    values = [value for _, value in rows]
    middle = median(values) if rows else 0.0
    near = max(least, tolerance * middle)
    if not rows or (max(values) - middle <= near and middle - min(values) <= near):
        return Lone((), middle)
    lone = tuple(item for item, value in rows if abs(value - middle) > near)
    few = len(rows) >= 3 and len(lone) <= max(1, len(rows) // 4)
    return Lone(lone if few else (), middle)
