"""Sessions: launches made to answer one question, their order, and how two sides differ within and across sessions.

The level of a machine moves from day to day. So a side's launches of several sessions are blocks: the effect is
estimated within sessions, and across them only with the spread between days in its interval. Within a session the
order of the launches decides which of them pair up.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final, Literal, NamedTuple

from receipts.stats import distributions
from receipts.stats.distributions import median
from receipts.stats.log_ratio import RatioEstimate, Sigma, mean_and_variance, pooled, welch

OrderKind = Literal["interleaved", "sequential", "unknown"]
Pairs = tuple[tuple[int, int], ...]
Sides = tuple[list[float], list[float]]
OUTLYING = 10.0  # median deviations, which are seven standard deviations of normal values
ROUNDING = 1e-9  # in logs: launches that lie no further apart differ by rounding alone
BREAK = 3.0  # a gap this many times the usual one may have moved the level, and ends what one line can follow


def order_kind(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> OrderKind:
    """Whether the sides took turns (ABAB, ABBA), ran one after the other (AABB), or neither can be said.

    `times_a` and `times_b` are start times in seconds on one clock. A missing time or a tie leaves the order
    unknown. One launch per side is sequential: nothing in it would cancel a drift.
    """
    sides = _in_order(times_a, times_b)
    if sides is None:
        return "unknown"
    letters = [side for side, _ in sides]
    changes = sum(a != b for a, b in pairwise(letters))
    if changes == 1:
        return "sequential"
    # Of an odd number one launch, the first or the last, has no partner.
    halves = (sides,) if len(sides) % 2 == 0 else (sides[:-1], sides[1:])
    if changes == len(letters) - 1 or any(_neighbours(half) is not None for half in halves):
        return "interleaved"
    return "unknown"


def interleaved_pairs(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> Pairs | None:
    """Positions (in A, in B) of launches that ran side by side; None if the launches do not pair up so.

    Launches are taken two by two in the order they ran: every two must be one of each side.
    """
    sides = _in_order(times_a, times_b)
    if sides is None or len(sides) < 4:
        return None
    return _neighbours(sides)


def in_one_go(times_a: Sequence[float], times_b: Sequence[float]) -> bool:
    """Whether the launches started at a steady pace, so that a drift of the machine can be taken for a line."""
    times = sorted((*times_a, *times_b))
    gaps = sorted(after - before for before, after in pairwise(times))
    return bool(gaps) and gaps[-1] <= BREAK * gaps[len(gaps) // 2]


def without_slope(a: Sequence[float], b: Sequence[float], times_a: Sequence[float], times_b: Sequence[float]) -> Sides:
    """The logs of two sides that took turns, without the drift that both show: the median slope within a side."""
    sides = ((a, times_a), (b, times_b))
    slopes = [
        (logs[j] - logs[i]) / (times[j] - times[i])
        for logs, times in sides
        for i, j in combinations(range(len(logs)), 2)
        if times[i] != times[j]
    ]
    slope, start = median(slopes), min((*times_a, *times_b))
    one, other = ([log - slope * (time - start) for log, time in zip(*side, strict=True)] for side in sides)
    return one, other


def outliers(*groups: Sequence[float]) -> int:
    """How many values lie further from the middle of their group than `OUTLYING` times the usual distance from it.

    The usual distance is the larger of the group's own and that of all: one side may vary more than the other.
    """
    apart = [[abs(value - median(group)) for value in group] for group in groups]
    usual = median([distance for group in apart for distance in group])
    limits = [OUTLYING * max(usual, median(group)) for group in apart]
    return sum(distance > limit > ROUNDING for group, limit in zip(apart, limits, strict=True) for distance in group)


def _in_order(times_a: Sequence[float | None], times_b: Sequence[float | None]) -> list[tuple[str, int]] | None:
    timed: list[tuple[float, str, int]] = []
    for side, times in (("A", times_a), ("B", times_b)):
        for i, time in enumerate(times):
            if time is None or not math.isfinite(time):
                return None
            timed.append((time, side, i))
    timed.sort()
    if not times_a or not times_b or any(x[0] == y[0] for x, y in pairwise(timed)):
        return None
    return [(side, i) for _, side, i in timed]


def _neighbours(sides: Sequence[tuple[str, int]]) -> Pairs | None:
    if len(sides) % 2:
        return None
    pairs = []
    for i in range(0, len(sides), 2):
        two = dict(sides[i : i + 2])
        if len(two) != 2:
            return None
        pairs.append((two["A"], two["B"]))
    return tuple(pairs)


APART: Final = 12 * 3600.0  # seconds between neighbors of one session, at most
SPAN: Final = 36 * 3600.0  # from its first launch to its last
UNLIKE: Final = 0.05  # below it sessions do not agree on the effect, and their own spread is its error
_ALIASED: Final = 0.98  # order and side say the same: no slope can be told from an effect


def sessions(times: Sequence[float], names: Sequence[str | None]) -> list[int]:
    """The number of each launch's session, by start times in seconds and declared names.

    Neighbors lie at most `APART` from each other, and a session spans at most `SPAN`; a longer one is cut at its widest
    gap. A declared session joins launches, and never separates them.
    """
    order = sorted(range(len(times)), key=times.__getitem__)
    number = [0] * len(times)
    blocks: list[Sequence[int]] = []
    start = 0
    for at in range(1, len(order) + 1):
        if at == len(order) or times[order[at]] - times[order[at - 1]] > APART:
            blocks += _short(order[start:at], times)
            start = at
    for at, block in enumerate(blocks):
        for i in block:
            number[i] = at
    first: dict[str, int] = {}
    for i in order:
        name = names[i]
        if name is not None and (joined := first.setdefault(name, number[i])) != number[i]:
            left = number[i]
            number = [joined if other == left else other for other in number]
            first = {key: joined if value == left else value for key, value in first.items()}
    return number


def _short(order: Sequence[int], times: Sequence[float]) -> Iterator[Sequence[int]]:
    """Launches in pieces that span no more than a session does."""
    if not order or times[order[-1]] - times[order[0]] <= SPAN:
        yield order
        return
    at = max(range(1, len(order)), key=lambda at: times[order[at]] - times[order[at - 1]])
    yield from _short(order[:at], times)
    yield from _short(order[at:], times)


class Sample(NamedTuple):
    """One launch: its log, its session, its side (0 for A, 1 for B), and its start in seconds where it is known."""

    log: float
    session: int
    side: int
    time: float | None


def samples(
    a: Sequence[float],
    b: Sequence[float],
    of_a: Sequence[int],
    of_b: Sequence[int],
    times_a: Sequence[float | None] | None = None,
    times_b: Sequence[float | None] | None = None,
) -> list[Sample]:
    """Both sides' launches in one list."""
    starts_a, starts_b = times_a or [None] * len(a), times_b or [None] * len(b)
    return [
        *(Sample(log, of, 0, time) for log, of, time in zip(a, of_a, starts_a, strict=True)),
        *(Sample(log, of, 1, time) for log, of, time in zip(b, of_b, starts_b, strict=True)),
    ]


def common(of_a: Iterable[int], of_b: Iterable[int]) -> frozenset[int]:
    """The sessions that both sides have launches in."""
    return frozenset(of_a) & frozenset(of_b)


def within(launches: Sequence[Sample], sigma: Sigma | None = None) -> RatioEstimate:
    """B − A within sessions: least squares with a level for each session, which no difference between them enters.

    Of one launch a side and session it is the paired t-test. Where the sides took no turns, and a slope can be told
    from the effect, a straight drift is taken out too. Where the sessions do not agree on the effect, their own spread
    is its error. With ``sigma`` that is the spread of a launch.
    """
    by_session: dict[int, list[Sample]] = defaultdict(list)
    for item in launches:
        by_session[item.session].append(item)
    blocks = [block for block in by_session.values() if len({item.side for item in block}) == 2]
    rows: list[tuple[float, float, float]] = []  # log, side and time of each launch, around the means of its session
    apart: list[tuple[float, float]] = []  # B − A of each session, and its weight
    for block in blocks:
        columns = (
            [item.log for item in block],
            [float(item.side) for item in block],
            [item.time or 0.0 for item in block],
        )
        means = [math.fsum(column) / len(column) for column in columns]
        rows += [(y - means[0], x - means[1], t - means[2]) for y, x, t in zip(*columns, strict=True)]
        a, b = ([item.log for item in block if item.side == side] for side in (0, 1))
        apart.append((math.fsum(b) / len(b) - math.fsum(a) / len(a), len(a) * len(b) / (len(a) + len(b))))
    drifted = sigma is None and _in_one_order(blocks) and len(rows) - len(blocks) > 2
    log_ratio, information, squares, slopes = _least_squares(rows, drift=drifted)
    if sigma is not None:
        return RatioEstimate(log_ratio, sigma.value / math.sqrt(information), sigma.df)
    freedom = len(rows) - len(blocks) - 1 - slopes
    if freedom <= 0 or squares <= 1e-24:
        return RatioEstimate(log_ratio, 0.0, None)
    estimate = RatioEstimate(log_ratio, math.sqrt(squares / freedom / information), float(freedom))
    mean, variance = mean_and_variance([item[0] for item in apart])
    if slopes or len(blocks) < 3 or _agree(blocks, apart, squares, freedom):
        return estimate
    return RatioEstimate(mean, math.sqrt(variance / len(blocks)), len(blocks) - 1.0)


def _agree(
    blocks: Sequence[Sequence[Sample]], apart: Sequence[tuple[float, float]], squares: float, freedom: int
) -> bool:
    """Whether the sessions' effects lie no further apart than their launches do: an F-test of side by session."""
    total = math.fsum(weight for _, weight in apart)
    middle = math.fsum(value * weight for value, weight in apart) / total
    between, between_freedom = math.fsum(weight * (value - middle) ** 2 for value, weight in apart), len(blocks) - 1
    rest, rest_freedom = squares - between, freedom - between_freedom
    if rest_freedom <= 0 or rest <= 0.0:
        return True
    return (
        distributions.student_ratio_tail(
            (between / between_freedom) / (rest / rest_freedom), between_freedom, rest_freedom
        )
        > UNLIKE
    )


def _in_one_order(blocks: Sequence[Sequence[Sample]]) -> bool:
    """Whether the same side ran first in every session, all of its launches before the other's."""
    first = set()
    for block in blocks:
        times = [[item.time for item in block if item.side == side] for side in (0, 1)]
        if order_kind(*times) != "sequential":
            return False
        first.add(min(block, key=lambda item: item.time or 0.0).side)
    return len(first) == 1


def _least_squares(rows: Sequence[tuple[float, float, float]], *, drift: bool) -> tuple[float, float, float, int]:
    """The effect of the side, the information on it, the squares that are left, and how many slopes were taken."""
    yy, xx, tt = (math.fsum(row[i] ** 2 for row in rows) for i in range(3))
    xy, ty, xt = (math.fsum(row[i] * row[j] for row in rows) for i, j in ((1, 0), (2, 0), (1, 2)))
    if not drift or tt == 0.0 or xt * xt > _ALIASED**2 * xx * tt:
        return xy / xx, xx, max(0.0, yy - xy * xy / xx), 0
    information = xx - xt * xt / tt
    effect = (xy - xt * ty / tt) / information
    slope = (ty - effect * xt) / tt
    return effect, information, max(0.0, yy - effect * xy - slope * ty), 1


def across(launches: Sequence[Sample], day: Sigma, sigma: Sigma | None = None) -> RatioEstimate:
    """B − A of sides that share no session: the spread between days is in the error, for each session of each side.

    The launches' own spread where each side has two launches and more, else that of ``sigma``.
    """
    a, b = ([item.log for item in launches if item.side == side] for side in (0, 1))
    own = (
        welch(a, b)
        if sigma is None
        else RatioEstimate(
            math.fsum(b) / len(b) - math.fsum(a) / len(a), sigma.value * math.sqrt(1 / len(a) + 1 / len(b)), sigma.df
        )
    )
    # Of each side the sum of the squared shares of its sessions: 1 of one session, 1/k of k equal ones.
    counts = [Counter(item.session for item in launches if item.side == side) for side in (0, 1)]
    shares = [math.fsum((count / side.total()) ** 2 for count in side.values()) for side in counts]
    between = day.value**2 * math.fsum(shares)
    squared = own.error**2 + between
    parts = ((own.error**2, own.df), (between, day.df))
    inverse = math.fsum((part / squared) ** 2 / df for part, df in parts if df is not None)
    return RatioEstimate(own.log_ratio, math.sqrt(squared), 1.0 / inverse if inverse else None)


def random_days(launches: Sequence[Sample]) -> RatioEstimate:
    """B − A over all sessions, each with a random level: generalized least squares, spread by restricted likelihood.

    Degrees of freedom are those of the sessions where the sides share none, else those left within sessions; at least
    one.
    """
    middle = math.fsum(item.log for item in launches) / len(launches)
    days: dict[int, list[Sample]] = defaultdict(list)
    for item in launches:
        days[item.session].append(item._replace(log=item.log - middle))
    grid = [0.0, *(10.0 ** (step / 8.0) for step in range(-24, 41))]
    best = min((_fit(list(days.values()), len(launches), share) for share in grid), key=lambda fit: fit[0])
    shared = sum(len({item.side for item in day}) == 2 for day in days.values())
    freedom = len(days) - 2 if not shared else min(len(launches) - len(days) - 1, len(days) - 1 + shared)
    return RatioEstimate(best[1], best[2], float(max(1, freedom)))


def _fit(days: Sequence[Sequence[Sample]], count: int, share: float) -> tuple[float, float, float]:
    """At one ratio of the variance between days to that within: −2 log restricted likelihood, B − A, and its error."""
    s1 = sx = sxx = sy = sxy = syy = logs = 0.0
    for day in days:
        n, x, y = len(day), sum(item.side for item in day), math.fsum(item.log for item in day)
        shrink = share / (1.0 + n * share)
        s1 += n - shrink * n * n
        sx += x - shrink * n * x
        sxx += x - shrink * x * x
        sy += y - shrink * n * y
        sxy += math.fsum(item.log for item in day if item.side) - shrink * x * y
        syy += math.fsum(item.log**2 for item in day) - shrink * y * y
        logs += math.log1p(n * share)
    determinant = s1 * sxx - sx * sx
    effect = (s1 * sxy - sx * sy) / determinant
    level = (sy - effect * sx) / s1
    squares = max(syy - level * sy - effect * sxy, 1e-24)
    variance = squares / (count - 2)
    return (
        (count - 2) * math.log(variance) + logs + math.log(determinant),
        effect,
        math.sqrt(variance * s1 / determinant),
    )


class DaySpread(NamedTuple):
    """σ of a launch within a session, and σ between sessions; either is None if nothing shows it."""

    launch: Sigma | None
    day: Sigma | None


def spreads(groups: Iterable[tuple[Sequence[float], Sequence[int]]], of: str = "") -> DaySpread:
    """Both spreads from groups of equal launches, as logs with the session of each (analysis of variance).

    Groups of a single launch a session show what both make together, which is an upper bound of either.
    """
    cells: list[list[float]] = []
    between = between_freedom = effective = 0.0
    for logs, of_session in groups:
        by_session: dict[int, list[float]] = defaultdict(list)
        for log, session in zip(logs, of_session, strict=True):
            by_session[session].append(log)
        cells += by_session.values()
        if len(by_session) > 1:
            mean, count = math.fsum(logs) / len(logs), len(logs)
            sizes = [len(cell) for cell in by_session.values()]
            between += math.fsum(len(cell) * (math.fsum(cell) / len(cell) - mean) ** 2 for cell in by_session.values())
            between_freedom += len(sizes) - 1
            effective += count - math.fsum(size * size for size in sizes) / count
    launch = pooled(cells, of)
    if not between_freedom or between <= 0.0:
        return DaySpread(launch, None)
    size = effective / between_freedom
    square = between / between_freedom
    # What is left of the days beside the launches; never nothing, since few days may agree by chance.
    own = launch.value**2 if launch is not None else 0.0
    day = math.sqrt(max((square - own) / size, square / size / 4.0))
    return DaySpread(launch, Sigma(day, float(between_freedom), "measured", of))
