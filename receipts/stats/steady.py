"""The steady segment of a launch: which of its steps stand for the speed it settled at.

MSER-5 (White, Cobb and Spratt 2000) finds where the warm-up ends; the thirds of what is left must then agree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from receipts.stats.dependence import median_error
from receipts.stats.order_statistics import median, median_absolute_deviation, quantile

MINIMUM_STEPS = 60
RECOMMENDED_STEPS = 300

BATCH = 5  # MSER-5
CAP_DEVIATIONS = 10.0
# Where more than half of the durations are equal (a coarse clock) the deviation is zero, and a cap at the median
# would hide a warm-up altogether.
SMALLEST_DEVIATION = 0.001
THIRDS_TOLERANCE = 0.005
THIRDS_ERRORS = 6.0

Status = Literal["steady", "unsteady", "too_few"]


class Segment(NamedTuple):
    """Steps `start` to `stop` (last exclusive) without `left_out`, as positions in the launch's list of steps.

    Where the status is not `steady` the segment is every step that was not flagged, and `reason` says what keeps
    it from being judged.
    """

    start: int
    stop: int
    left_out: tuple[int, ...]
    status: Status
    reason: str | None = None

    @property
    def kept(self) -> int:
        """How many steps it holds."""
        return self.stop - self.start - len(self.left_out)

    def of(self, durations: Sequence[float]) -> list[float]:
        """The durations that it holds, in order."""
        if not self.left_out:
            return list(durations[self.start : self.stop])
        left_out = frozenset(self.left_out)
        return [durations[i] for i in range(self.start, self.stop) if i not in left_out]


def steady_segment(durations: Sequence[float], excluded: Collection[int] = (), minimum: int = MINIMUM_STEPS) -> Segment:
    """Find the steady segment of one launch.

    `durations` holds every step in order, in seconds. `excluded` holds positions of steps that were flagged
    (compile, recompile, checkpoint, eval, profile); steps are left out by flag and never by value. Fewer than
    `minimum` steps cannot be judged; `RECOMMENDED_STEPS` is where the answer becomes dependable.
    """
    minimum = max(minimum, 2 * BATCH)
    total = len(durations)
    flagged = frozenset(i for i in excluded if 0 <= i < total)
    values = [value for i, value in enumerate(durations) if i not in flagged]
    whole = _Whole(total, tuple(sorted(flagged)))
    if min(values, default=1.0) <= 0.0 or not math.isfinite(sum(values)):
        for i, value in enumerate(durations):
            if i not in flagged and not 0.0 < value < math.inf:
                record = f"step {i} is recorded as {value!r} seconds: correct the record"
                return whole.segment("unsteady", record)
    if len(values) < minimum:
        return whole.segment("too_few", _too_few(len(values), minimum, len(flagged)))

    capped = _capped(values)
    dropped = _warm_up(capped)
    if dropped is None:
        return whole.segment("unsteady", f"no end of the warm-up in the first half of {len(values)} steps: run longer")
    kept = capped[dropped:]
    if len(kept) < minimum:
        return whole.segment("too_few", _too_few(len(kept), minimum, len(flagged), dropped))
    drift = _drift(kept)
    if drift is not None:
        return whole.segment("unsteady", drift)
    start = [i for i in range(total) if i not in flagged][dropped] if dropped else 0
    return Segment(start, total, tuple(i for i in whole.flagged if i >= start), "steady")


class _Whole(NamedTuple):
    """Every step that was not flagged: the segment where none is steady."""

    total: int
    flagged: tuple[int, ...]

    def segment(self, status: Status, reason: str) -> Segment:
        return Segment(0, self.total, self.flagged, status, reason)


def _too_few(steps: int, minimum: int, flagged: int, warm_up: int = 0) -> str:
    without = [f"{flagged} flagged"] if flagged else []
    without += [f"{warm_up} of warm-up"] if warm_up else []
    beside = f" beside {' and '.join(without)}" if without else ""
    return (
        f"{steps} steps{beside}: at least {minimum} are needed to judge and {max(minimum, RECOMMENDED_STEPS)} "
        "are recommended: run longer"
    )


def _capped(values: Sequence[float]) -> list[float]:
    """Stalls cut at median + 10 MAD of the second half, so that one stall does not pass for a change of level."""
    half = sorted(values[len(values) // 2 :])
    centre = quantile(half, 0.5)
    # Distances of ordered values fall and then rise: two runs, which sorting only has to merge.
    deviation = median_absolute_deviation(half, centre) or SMALLEST_DEVIATION * centre
    cap = centre + CAP_DEVIATIONS * deviation
    return [value if value < cap else cap for value in values] if max(values) >= cap else list(values)


def _warm_up(values: Sequence[float]) -> int | None:
    """How many leading steps MSER-5 drops; none where it would drop half or more.

    MSER is the squared standard error of the mean of what is left, had the steps been independent. It is looked
    for up to the half only: near the end few batches are left, and chance makes the error of few small.
    """
    count = len(values) // BATCH
    # Distances from one central batch: sums of squares of the durations themselves would cancel.
    centre = values[len(values) // 2]
    one_by_one = iter(values)
    batches = [sum(batch) / BATCH - centre for batch in zip(*[one_by_one] * BATCH, strict=False)]
    half = count // 2
    best, best_error = 0, math.inf
    total = squares = 0.0
    for first in range(count - 1, -1, -1):
        total += batches[first]
        squares += batches[first] ** 2
        if first > half:
            continue
        left = count - first
        error = max(0.0, squares - total * total / left) / (left * left)
        # On a tie the later start loses: nothing is dropped without need.
        if error <= best_error:
            best, best_error = first, error
    return None if best >= half else best * BATCH


def _drift(values: Sequence[float]) -> str | None:
    """Why the thirds of the steps that were kept disagree; none where their medians agree."""
    count = len(values)
    cuts = (0, count // 3, 2 * count // 3, count)
    thirds = [values[cuts[i] : cuts[i + 1]] for i in range(3)]
    ordered = [sorted(third) for third in thirds]
    medians = [quantile(third, 0.5) for third in ordered]
    centre = median([*ordered[0], *ordered[1], *ordered[2]])  # three runs, which sorting only has to merge
    spread = max(medians) - min(medians)
    if spread <= THIRDS_TOLERANCE * centre:
        return None
    allowed = max(THIRDS_TOLERANCE * centre, THIRDS_ERRORS * median_error(thirds))
    if spread <= allowed:
        return None
    shown = ", ".join(f"{value / centre - 1.0:+.1%}" for value in medians)
    return (
        f"the level moves: medians of its thirds are {shown} from the median of all "
        f"({allowed / centre:.1%} apart is allowed): run longer"
    )
