"""What one launch contributes: its steady segment, the location of that segment, and the figures beside it.

A head that is far from the rest is a warm-up, which ends where the steps reach the level of the last third; the
thirds of what is left must then agree. Steps that stall regularly belong to the launch: the others show its level,
and blocks that each hold a stall show whether it is paid for throughout.

Steps of one launch are close to an AR(1) process, whose correlation a short launch cannot show: it is therefore taken
at its upper bound, and a wandering level does not count as a change of level. Bars and simulation:
docs/statistics.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import mul
from typing import Literal, NamedTuple, TypeVar

from receipts.base.units import signed_percent
from receipts.stats.distributions import median, median_absolute_deviation, quantile

MAX_CORRELATION = 0.9
BOUND = 2.0  # standard errors above the estimate
MIN_STEPS = 8  # of two thirds: below, they do not show their correlation
MIN_LEFT = 0.05
BATCHES = 7  # a third
MIN_BATCH = 7


def third_error(thirds: Sequence[Sequence[float]]) -> float:
    """Standard error of the mean of one third, from within the thirds alone: of AR(1) steps, or by batch means if more.

    A shift between thirds is what is being looked for, and must not widen its own tolerance. For the same reason the
    third that varies most is left out: a level that changes within it looks like memory.
    """
    sums = sorted(_sums(third) for third in thirds)[:2]
    squares, products = (math.fsum(item[i] for item in sums) for i in (0, 1))
    count = sum(len(third) for third in thirds) * 2.0 / 3.0
    if squares <= 0.0:
        return 0.0
    # The upper bound of the lag-1 correlation, freed of its bias of −(1 + 4φ)/n a third (Kendall 1954).
    correlation = MAX_CORRELATION
    if count > MIN_STEPS:
        freed = max(-1.0, min(1.0, (count * (products / squares) + 2.0) / (count - MIN_STEPS)))
        bound = freed + BOUND * math.sqrt(max(MIN_LEFT, 1.0 - freed * freed) / count)
        correlation = max(0.0, min(MAX_CORRELATION, bound))
    share = mean_variance(count / 2.0, correlation)
    # The third's own mean took its part of the variance away.
    return max(math.sqrt(squares / count * share / max(MIN_LEFT, 1.0 - share)), _batch_means_error(thirds))


def _batch_means_error(thirds: Sequence[Sequence[float]]) -> float:
    """The same where thirds are long enough for batches: real hosts wander more slowly than AR(1) steps do."""
    size = min(len(third) for third in thirds) // BATCHES
    if size < MIN_BATCH:
        return 0.0
    starts = range(0, BATCHES * size, size)
    squares = math.fsum(_sums([math.fsum(third[i : i + size]) / size for i in starts])[0] for third in thirds)
    return math.sqrt(squares / (len(thirds) * (BATCHES - 1)) / BATCHES)


def mean_variance(count: float, correlation: float) -> float:
    """Variance of the mean of `count` AR(1) steps of variance 1 (Box, Jenkins and Reinsel 1994, section 2.1)."""
    left = 1.0 - correlation
    memory = 2.0 * correlation * (1.0 - correlation**count) / (count * left * left)
    variance: float = ((1.0 + correlation) / left - memory) / count
    return variance


def _sums(steps: Sequence[float]) -> tuple[float, float]:
    """Squares around the mean, and products of neighbors."""
    mean = math.fsum(steps) / len(steps)
    offsets = [value - mean for value in steps]
    return math.fsum(value * value for value in offsets), math.fsum(a * b for a, b in pairwise(offsets))


MINIMUM_STEPS = 10
RECOMMENDED_STEPS = 300

CAP_DEVIATIONS = 10.0
# Where more than half of the durations are equal (a coarse clock) the deviation is zero, and a cap at the median
# would hide a warm-up altogether.
MIN_DEVIATION = 0.001
TOLERANCE = 0.005  # of a level
MOVED = 0.10  # of a level
APART = 0.85  # of the pairs of a step of the first third and one of the last
THIRDS_ERRORS = 6.0
MAX_ERRORS = 4.2
MAX_STEPS_OF_FEW = 45.0  # at so many the thirds may lie twice as many errors apart: of few steps errors are guesses
HEAD = 3
END_DEVIATIONS = 1.5
HEAD_DEVIATIONS = 12.0  # AR(1) steps of φ = .9 wander by less
TAIL_OF_WARM_UP = 0.75  # how much longer than found it is taken to be: its end is below the noise
STALL = 0.05  # of the level: a shorter stall hides no throughput that matters
QUICK, QUICK_DEVIATION = 4, 0.35  # the quickest quarter of normal steps has its median 1.15 σ below theirs, this wide
MAX_STALLS = 0.75  # of the steps; beyond, the quick ones are the exception
MIN_BLOCKS = 10
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
    moves: bool = False  # its warm-up is over, and its level moves all the same

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
    left_out = tuple(sorted(flagged))
    whole = partial(Segment, 0, total, left_out)
    if min(values, default=1.0) <= 0.0 or not math.isfinite(sum(values)):
        for i, value in enumerate(durations):
            if i not in flagged and not 0.0 < value < math.inf:
                record = f"step {i} is recorded as {value!r} seconds: correct the record"
                return whole("unsteady", record)
    minimum = max(minimum, MINIMUM_STEPS)
    if len(values) < minimum:
        return whole("too_few", _too_few(len(values), minimum, len(flagged)))

    stalls = regular_stalls(values)
    level = [value for value, stalled in zip(values, stalls, strict=True) if not stalled] if stalls else values
    capped = _capped(level)
    dropped = _warm_up(level, capped)
    if dropped and windowed:
        if 2 * dropped < len(level) and abs(median(level[dropped:]) / median(level) - 1.0) <= TOLERANCE:
            dropped = 0
        else:
            return whole("unsteady", "the stated window begins within the warm-up: start it later, run longer")
    if 2 * dropped >= len(level):
        return whole("unsteady", f"no end of the warm-up in the first half of {len(values)} steps: run longer")
    drift = _drift(capped[dropped:])
    if stalls:
        dropped = [at for at, stalled in enumerate(stalls) if not stalled][dropped] if dropped else 0
        drift = drift or _drift_of_blocks(values[dropped:], stalls[dropped:])
    kept = len(values) - dropped
    if kept < minimum:
        return whole("too_few", _too_few(kept, minimum, len(flagged), dropped))
    if drift is not None:
        return whole("unsteady", drift)._replace(moves=True)
    start = [i for i in range(total) if i not in flagged][dropped] if dropped else 0
    return Segment(start, total, tuple(i for i in left_out if i >= start), "steady")


def _too_few(steps: int, minimum: int, flagged: int, warm_up: int = 0) -> str:
    without = [f"{flagged} flagged"] if flagged else []
    without += [f"{warm_up} of warm-up"] if warm_up else []
    beside = f" beside {' and '.join(without)}" if without else ""
    return (
        f"{steps} steps{beside}: at least {minimum} are needed to judge and {max(minimum, RECOMMENDED_STEPS)} "
        "are recommended: run longer"
    )


def regular_stalls(values: Sequence[float]) -> list[bool]:
    """Which steps stall, where they do so throughout: ten blocks of the launch and more each hold one; else empty.

    The level is that of the quicker steps, so that stalls in every second step are found as those in every tenth are.
    """
    ordered = sorted(values)
    quick = ordered[: max(3, len(ordered) // QUICK)]
    center = quantile(quick, 0.5)
    beyond = center + max(STALL * center, CAP_DEVIATIONS * median_absolute_deviation(quick, center) / QUICK_DEVIATION)
    if ordered[-1] <= beyond:
        return []
    stalls = [value > beyond for value in values]
    head, *later = [len(list(run)) for stalled, run in groupby(stalls) if stalled]
    if stalls[0] and head > max(later, default=0):
        stalls[:head] = [False] * head  # no stall takes so many steps: a warm-up
    at = [-1, *(i for i, stalled in enumerate(stalls) if stalled), len(values)]
    few = len(at) - 2 < MAX_STALLS * len(values)
    longest = max(after - before for before, after in pairwise(at))
    return stalls if few and longest * MIN_BLOCKS <= len(values) else []


def _capped(values: Sequence[float]) -> list[float]:
    """Stalls cut at median + 10 MAD of the second half, so that one stall does not pass for a change of level."""
    half = sorted(values[len(values) // 2 :])
    center = quantile(half, 0.5)
    # Distances of ordered values fall and then rise: two runs, which sorting only has to merge.
    deviation = median_absolute_deviation(half, center) or MIN_DEVIATION * center
    cap = center + CAP_DEVIATIONS * deviation
    return [value if value < cap else cap for value in values] if max(values) >= cap else list(values)


def _warm_up(values: Sequence[float], capped: Sequence[float]) -> int:
    """How many leading steps belong to the warm-up; 0 if the head is no further off than steps wander.

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


def _drift_of_blocks(values: Sequence[float], stalls: Sequence[bool]) -> str | None:
    """Why the thirds of a launch that stalls regularly disagree, by means of blocks that are longer than the stalls."""
    at = [i for i, stalled in enumerate(stalls) if stalled]
    size = max(after - before for before, after in pairwise([-1, *at, len(values)]))
    blocks = [math.fsum(values[i : i + size]) / size for i in range(0, len(values) - size + 1, size)]
    cuts = (0, len(blocks) // 3, 2 * len(blocks) // 3, len(blocks))
    thirds = [blocks[cuts[i] : cuts[i + 1]] for i in range(3)]
    means = [math.fsum(third) / len(third) for third in thirds]
    mean = math.fsum(blocks) / len(blocks)
    # Where the thirds begin, one of them may hold a stall more than another.
    longest = max(values[i] for i in at) - median(values)
    allowed = max(TOLERANCE * mean, THIRDS_ERRORS * third_error(thirds), 2.0 * longest / (size * len(thirds[0])))
    if max(means) - min(means) <= allowed:
        return None
    shown = ", ".join(signed_percent(value / mean - 1.0) for value in means)
    apart = f"({allowed / mean:.1%} apart is allowed)"
    return f"the stalls move: thirds are {shown} from the mean of all {apart}: run longer"


def _drift(values: Sequence[float]) -> str | None:
    """Why the thirds of the steps that were kept disagree; None if their medians agree."""
    count = len(values)
    cuts = (0, count // 3, 2 * count // 3, count)
    thirds = [values[cuts[i] : cuts[i + 1]] for i in range(3)]
    ordered = [sorted(third) for third in thirds]
    medians = [quantile(third, 0.5) for third in ordered]
    center = median([*ordered[0], *ordered[1], *ordered[2]])  # three runs, which sorting only has to merge
    spread = max(medians) - min(medians)
    if spread <= TOLERANCE * center:
        return None
    errors = max(THIRDS_ERRORS, MAX_ERRORS * (1.0 + MAX_STEPS_OF_FEW / count))
    allowed = max(TOLERANCE * center, errors * third_error(thirds))
    # Memory excuses a level that wanders, not one that leaves and hardly ever comes back: by the share of pairs in
    # which the step of the slower third is the slower one (Mann-Whitney U).
    never_back = False
    if spread > MOVED * center:
        first, _, last = ordered
        slower = sum(bisect_left(first, value) for value in last), sum(bisect_left(last, value) for value in first)
        never_back = max(slower) / (len(first) * len(last)) >= APART
    if spread <= allowed and not never_back:
        return None
    shown = ", ".join(signed_percent(value / center - 1.0) for value in medians)
    return (
        f"the level moves: medians of its thirds are {shown} from the median of all "
        f"({min(allowed, MOVED * center if never_back else allowed) / center:.1%} apart is allowed): run longer"
    )


INDEPENDENT = 0.1
MIN_BATCHES = 10


class LaunchSummary(NamedTuple):
    """The steps of a segment in numbers; durations in seconds.

    `median` is the launch's location. A rate for somebody who pays for wall time divides by `mean`, stalls in.
    `cv` is the standard deviation over the mean, `lag1` the autocorrelation of neighboring steps; both are none
    where they are undefined (one step, no variation). `first` and `last` are positions of the first and the last
    step that count.
    """

    n: int
    median: float
    mean: float
    p95: float
    p99: float
    cv: float | None
    lag1: float | None
    first: int
    last: int


def summarize(durations: Sequence[float], segment: Segment) -> LaunchSummary | None:
    """Summarize the steps of `segment`; None if it holds no step."""
    values = segment.of(durations)
    if not values:
        return None
    ordered = sorted(values)
    mean = math.fsum(values) / len(values)
    squares = math.fsum([(value - mean) ** 2 for value in values])
    left_out = frozenset(segment.left_out)
    counted = (i for i in range(segment.start, segment.stop) if i not in left_out)
    counted_back = (i for i in range(segment.stop - 1, segment.start - 1, -1) if i not in left_out)
    return LaunchSummary(
        n=len(values),
        median=quantile(ordered, 0.5),
        mean=mean,
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        cv=math.sqrt(squares / (len(values) - 1)) / mean if len(values) > 1 and mean > 0.0 else None,
        lag1=lag1(values),
        first=next(counted),
        last=next(counted_back),
    )


def lag1(values: Sequence[float]) -> float | None:
    """Autocorrelation of neighbors; none for fewer than three values, or where all are equal."""
    if len(values) < 3 or min(values) == max(values):
        return None
    mean = math.fsum(values) / len(values)
    offsets = [value - mean for value in values]
    squares = math.fsum(map(mul, offsets, offsets))
    products = math.fsum(map(mul, offsets, offsets[1:]))
    return products / squares if squares > 0.0 else None


def independent_batch(durations: Sequence[float]) -> int | None:
    """How many steps make a batch whose means are nearly independent; None if the launch is too short to tell.

    Ferrari's subsessions: the batch doubles until the means' lag-1 autocorrelation is at most 0.1, while there are
    at least ten batches. A diagnostic: no verdict rests on it.
    """
    size = 1
    means = list(durations)
    while len(means) >= MIN_BATCHES:
        correlation = lag1(means)
        if correlation is None or correlation <= INDEPENDENT:
            return size
        means = [(means[i] + means[i + 1]) / 2.0 for i in range(0, len(means) - 1, 2)]
        size *= 2
    return None
