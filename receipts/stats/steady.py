"""The steady segment of a launch: which of its steps stand for the speed it settled at.

A head that is far from the rest is a warm-up, which ends where the steps reach the level of the last third; the thirds
of what is left must then agree. Bars and simulation: docs/statistics.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

from receipts.stats.dependence import third_error
from receipts.stats.order_statistics import median, median_absolute_deviation, quantile

MINIMUM_STEPS = 10
RECOMMENDED_STEPS = 300

CAP_DEVIATIONS = 10.0
# Where more than half of the durations are equal (a coarse clock) the deviation is zero, and a cap at the median
# would hide a warm-up altogether.
SMALLEST_DEVIATION = 0.001
TOLERANCE = 0.005  # of a level
MOVED = 0.10  # of a level
APART = 0.85  # of the pairs of a step of the first third and one of the last
THIRDS_ERRORS = 6.0
FEW_ERRORS = 4.2
FEW_STEPS = 45.0  # at so many the thirds may lie twice as many errors apart: of few steps errors are guesses
HEAD = 3
END_DEVIATIONS = 1.5
HEAD_DEVIATIONS = 12.0  # AR(1) steps of φ = .9 wander by less
TAIL_OF_WARM_UP = 0.75  # how much longer than found it is taken to be: its end is below the noise
ABSOLUTE_TO_SIGMA = math.sqrt(math.pi) / 2.0  # of differences of two normal steps

Number = TypeVar("Number", int, float)
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

    def of(self, durations: Sequence[Number]) -> list[Number]:
        """The durations that it holds, in order; or whatever else there is one of for each."""
        if not self.left_out:
            return list(durations[self.start : self.stop])
        left_out = frozenset(self.left_out)
        return [durations[i] for i in range(self.start, self.stop) if i not in left_out]


def steady_segment(
    durations: Sequence[float],
    excluded: Collection[int] = (),
    minimum: int = MINIMUM_STEPS,
    *,
    windowed: bool = False,
) -> Segment:
    """Find the steady segment of one launch.

    `durations` holds every step in order, in seconds. `excluded` holds positions of steps that were flagged
    (compile, recompile, checkpoint, eval, profile) or lie outside a stated window; steps are left out by flag and
    never by value. Where a window was stated (`windowed`) no warm-up is cut, and one that it holds moves the level.
    Fewer than `minimum` steps cannot be judged; at `RECOMMENDED_STEPS` the answer becomes dependable.
    """
    total = len(durations)
    flagged = frozenset(i for i in excluded if 0 <= i < total)
    values = [value for i, value in enumerate(durations) if i not in flagged]
    whole = _Whole(total, tuple(sorted(flagged)))
    if min(values, default=1.0) <= 0.0 or not math.isfinite(sum(values)):
        for i, value in enumerate(durations):
            if i not in flagged and not 0.0 < value < math.inf:
                record = f"step {i} is recorded as {value!r} seconds: correct the record"
                return whole.segment("unsteady", record)
    minimum = max(minimum, MINIMUM_STEPS)
    if len(values) < minimum:
        return whole.segment("too_few", _too_few(len(values), minimum, len(flagged)))

    capped = _capped(values)
    dropped = _warm_up(values, capped)
    if dropped and windowed:
        if 2 * dropped < len(values) and abs(median(values[dropped:]) / median(values) - 1.0) <= TOLERANCE:
            dropped = 0
        else:
            return whole.segment("unsteady", "the stated window begins within the warm-up: start it later, run longer")
    if 2 * dropped >= len(values):
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
    center = quantile(half, 0.5)
    # Distances of ordered values fall and then rise: two runs, which sorting only has to merge.
    deviation = median_absolute_deviation(half, center) or SMALLEST_DEVIATION * center
    cap = center + CAP_DEVIATIONS * deviation
    return [value if value < cap else cap for value in values] if max(values) >= cap else list(values)


def _warm_up(values: Sequence[float], capped: Sequence[float]) -> int:
    """How many leading steps belong to the warm-up; none where the head is no further off than steps wander.

    It ends where a step and its next two together reach the level of the last third, to the noise, and some steps
    later: the rest of an exponential lies below the noise.
    """
    count = len(values)
    level = median(values[-(count // 3) :])
    apart = max((values[0] - level, median(values[:HEAD]) - level), key=abs)
    if abs(apart) <= TOLERANCE * level:
        return 0
    differences = [after - before for before, after in pairwise(capped)]
    trend = median(differences)
    noise = ABSOLUTE_TO_SIGMA * math.fsum(abs(value - trend) for value in differences) / len(differences)
    if abs(apart) <= HEAD_DEVIATIONS * noise:
        return 0
    side, reached = math.copysign(1.0, apart), max(TOLERANCE * level, END_DEVIATIONS * noise)
    off = [side * (value - level) for value in values]
    end = next((i for i in range(count) if off[i] <= reached and median(off[i : i + HEAD]) <= reached), count)
    return math.floor((1.0 + TAIL_OF_WARM_UP) * max(end, 1))


def _drift(values: Sequence[float]) -> str | None:
    """Why the thirds of the steps that were kept disagree; none where their medians agree."""
    count = len(values)
    cuts = (0, count // 3, 2 * count // 3, count)
    thirds = [values[cuts[i] : cuts[i + 1]] for i in range(3)]
    ordered = [sorted(third) for third in thirds]
    medians = [quantile(third, 0.5) for third in ordered]
    center = median([*ordered[0], *ordered[1], *ordered[2]])  # three runs, which sorting only has to merge
    spread = max(medians) - min(medians)
    if spread <= TOLERANCE * center:
        return None
    errors = max(THIRDS_ERRORS, FEW_ERRORS * (1.0 + FEW_STEPS / count))
    allowed = max(TOLERANCE * center, errors * third_error(thirds))
    # Memory excuses a level that wanders, not one that leaves and hardly ever comes back.
    never_back = spread > MOVED * center and _apart(ordered[0], ordered[2]) >= APART
    if spread <= allowed and not never_back:
        return None
    shown = ", ".join(f"{value / center - 1.0:+.1%}" for value in medians)
    return (
        f"the level moves: medians of its thirds are {shown} from the median of all "
        f"({min(allowed, MOVED * center if never_back else allowed) / center:.1%} apart is allowed): run longer"
    )


def _apart(first: Sequence[float], last: Sequence[float]) -> float:
    """The share of pairs in which the step of the slower third is the slower one (Mann-Whitney U); both are ordered."""
    slower = sum(bisect_left(first, value) for value in last), sum(bisect_left(last, value) for value in first)
    return max(slower) / (len(first) * len(last))
