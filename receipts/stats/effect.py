"""The effect: what the launches of B and A show about the ratio of a metric, B over A.

Launches are the units and logs the scale, so that a metric and its reciprocal (step time, tokens a second) get one
verdict and swapping the sides mirrors it. Quantities without noise are compared exactly: tokens a step, parameters,
FLOPs a token, and memory where the store shows that it does not vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from receipts.stats.equivalence import (
    CONFIDENCE,
    DEFAULT_DELTA,
    EQUIVALENCE_CONFIDENCE,
    MIN_LAUNCHES,
    SMALLEST_EFFECT,
    Better,
    Design,
    Effect,
    EquivalenceTest,
    Kind,
)
from receipts.stats.log_ratio import (
    TRIMMED_FROM,
    RatioEstimate,
    Sigma,
    against_floor,
    beside_drift,
    paired,
    pooled,
    trimmed,
    trimmed_pairs,
    welch,
)
from receipts.stats.sessions import (
    Pairs,
    Sample,
    across,
    common,
    in_one_go,
    interleaved_pairs,
    order_kind,
    outliers,
    random_days,
    samples,
    within,
    without_slope,
)


def shown_exact(groups: Iterable[Sequence[float]]) -> bool | None:
    """Whether launches that differ in nothing always agree; None if no group has two launches."""
    pairs = [group for group in groups if len(group) >= 2]
    return all(len(set(group)) == 1 for group in pairs) if pairs else None


OWN = "from the launches of the two sides"
Turns = tuple[list[float], list[float]]  # start times of both sides' launches


def compare(
    a: Sequence[float],
    b: Sequence[float],
    *,
    better: Better = "lower",
    sigma: Sigma | None = None,
    delta: float | None = None,
    times_a: Sequence[float | None] | None = None,
    times_b: Sequence[float | None] | None = None,
    pairs: Pairs | None = None,
    largest_spread: float | None = None,
    delta_source: str = DEFAULT_DELTA,
    sessions: tuple[Sequence[int], Sequence[int]] | None = None,
    day: Sigma | None = None,
    pooled_days: bool = False,
) -> Effect:
    """Compare launches of B with launches of A.

    `a` and `b` hold one location per launch: the median step time, a rate, or any positive metric; `better` is its
    good direction. `times_a` and `times_b` are start times in seconds. Launches that took turns at a steady pace are
    compared with linear drift removed, those with breaks between them in pairs; `pairs` (positions in `a` and `b`)
    states the pairing outright. `sigma` is the noise floor and `largest_spread` the largest log ratio between two equal
    launches that the lane has shown. `delta` is the smallest effect that matters. People set it, `delta_source` names
    who, and noise does not change it.

    `sessions` are the sessions of A's and of B's launches; without them all are of one. Launches of several are
    compared within the sessions that both sides share. Where they share none, the spread between days is part of the
    interval: `day`, without which there is none. With `pooled_days` all count, each session with a level of its own.
    """
    test = EquivalenceTest(
        n_a=len(a),
        n_b=len(b),
        better=better,
        delta=SMALLEST_EFFECT if delta is None else delta,
        delta_source=delta_source,
        order="unknown",
        floor=sigma if sigma is not None and sigma.value > 0.0 else None,
        largest_spread=largest_spread,
    )
    if not a or not b:
        return test.without_interval("single", f"side {'B' if a else 'A'} has no launch with a steady segment")
    if not all(0.0 < value < math.inf for value in (*a, *b)):
        return test.without_interval("single", "a launch's value is not a positive number, so there is no ratio")
    timed = times_a is not None and times_b is not None and (len(times_a), len(times_b)) == (len(a), len(b))
    logs = [math.log(value) for value in a], [math.log(value) for value in b]
    of_a, of_b = sessions or ([0] * len(a), [0] * len(b))
    if len({*of_a, *of_b}) > 1:
        launches = samples(*logs, of_a, of_b, times_a if timed else None, times_b if timed else None)
        if pooled_days or not common(of_a, of_b):
            return _over_days(test, launches, day, pooled_days=pooled_days)
        launches = [item for item in launches if item.session in common(of_a, of_b)]
        if len({item.session for item in launches}) > 1:
            return _in_sessions(test.of(launches), launches)
        sides = [[item for item in launches if item.side == side] for side in (0, 1)]
        test, logs = test.of(launches), ([item.log for item in sides[0]], [item.log for item in sides[1]])
        times_a, times_b = ([item.time for item in side] for side in sides)
    turns: Turns | None = None
    if pairs is not None:
        pairs, test = tuple(pairs), replace(test, order="interleaved")
    elif timed:
        test = replace(test, order=order_kind(times_a or (), times_b or ()))
        if test.order != "unknown":
            turns = [time or 0.0 for time in times_a or ()], [time or 0.0 for time in times_b or ()]
        if test.order == "interleaved" and turns is not None:
            pairs = interleaved_pairs(*turns)
    return _judge(test, *logs, pairs, turns, day)


def unproven(why: str, n_a: int, n_b: int) -> Effect:
    """No number, and the reason: what was compared carries none."""
    test = EquivalenceTest(n_a, n_b, "lower", SMALLEST_EFFECT, "unknown", None, None)
    return test.without_interval("single", why)


def exactly(a: Sequence[float], b: Sequence[float], *, better: Better) -> Effect | None:
    """The effect on a quantity that equal launches never differ in: any difference is a fact, and none is equality.

    None if launches of one side disagree, so that it is not exact here, or where a value is not positive.
    """
    # Sets and not min < max: integers beyond 2**53 must not meet as floats.
    if len(set(a)) != 1 or len(set(b)) != 1 or not all(0.0 < value < math.inf for value in (a[0], b[0])):
        return None
    test = EquivalenceTest(len(a), len(b), better, 0.0, "unknown", None, None)
    good = (b[0] > a[0]) == (better == "higher")
    kind: Kind = "equivalent" if a[0] == b[0] else "faster" if good else "slower"
    why = "compared exactly: equal launches of this lane always agree on it"
    ratio = b[0] / a[0]
    exact_effect = test.without_interval("exact", why, kind, math.log(ratio))
    return replace(exact_effect, low=ratio, high=ratio, low90=ratio, high90=ratio)


def _judge(
    test: EquivalenceTest,
    a: Sequence[float],
    b: Sequence[float],
    pairs: Pairs | None,
    turns: Turns | None,
    day: Sigma | None,
) -> Effect:
    """Choose the design in one session, estimate, and give the verdict; `a` and `b` are logs."""
    if min(len(a), len(b)) < MIN_LAUNCHES:
        return _single(test, a, b)
    if turns is not None and test.order == "sequential":
        return _one_after_the_other(test, a, b, turns, day)
    design: Design
    if min(len(a), len(b)) >= TRIMMED_FROM and (robust := _beside_outliers(test, a, b, pairs, turns)) is not None:
        return robust
    if turns is not None and in_one_go(*turns):
        design, estimate = "turns", beside_drift(a, b, *turns)
        why = f"{len(a)} and {len(b)} launches in turns, t-test on the logs with linear drift removed"
    elif pairs is not None and len(pairs) >= MIN_LAUNCHES:
        design, estimate = "paired", paired([b[j] - a[i] for i, j in pairs])
        why = f"{len(pairs)} interleaved pairs, paired t-test on the log ratios"
    else:
        design, estimate = "welch", welch(a, b)
        why = f"{len(a)} and {len(b)} launches, Welch's t-test on the logs"
    return _by_own_spread(test, design, estimate, why, a, b)


def _beside_outliers(
    test: EquivalenceTest, a: Sequence[float], b: Sequence[float], pairs: Pairs | None, turns: Turns | None
) -> Effect | None:
    """The verdict with trimmed means, where some launches lie far from the others; None if there is none.

    One launch in ten that is 3 to 5 % slow hid an effect of 2 % in three of five sessions, however many the launches.
    """
    differences = [b[j] - a[i] for i, j in pairs] if pairs is not None else []
    steady = turns is not None and in_one_go(*turns)
    if turns is not None and steady:
        a, b = without_slope(a, b, *turns)
    in_pairs = not steady and len(differences) >= TRIMMED_FROM
    count = outliers(differences) if in_pairs else outliers(a, b)
    if not count:
        return None
    design: Design = "paired" if in_pairs else "turns" if steady else "welch"
    estimate = trimmed_pairs(differences) if in_pairs else trimmed(a, b)
    of = f"{len(differences)} interleaved pairs" if in_pairs else f"{len(a)} and {len(b)} launches"
    ends = "them" if in_pairs else "each side"
    why = f"{of}, {count} far from the others: trimmed means, the quarter at either end of {ends} left out"
    return test.verdict(design, estimate, "launches", why) if estimate.error > 0.0 else None


def _by_own_spread(
    test: EquivalenceTest, design: Design, estimate: RatioEstimate, why: str, a: Sequence[float], b: Sequence[float]
) -> Effect:
    """The verdict by the launches' own spread, or by the noise floor where they show none."""
    if estimate.error > 0.0:
        own = f"; {pooled((a, b), OWN)}" if design != "paired" else ""
        return test.verdict(design, estimate, "launches", f"{why}{own}")
    # Launches equal to the last digit tell of a coarse clock or of copies, not of a machine without noise.
    if test.floor is not None:
        estimate = against_floor(a, b, test.floor)
        return test.verdict(design, estimate, test.floor.source, f"{why}; they agree to the last digit: {test.floor}")
    return test.verdict(design, estimate, "launches", f"{why}; they agree to the last digit")


def _one_after_the_other(
    test: EquivalenceTest, a: Sequence[float], b: Sequence[float], turns: Turns, day: Sigma | None
) -> Effect:
    """All of one side, then all of the other: the drift that would make the effect is taken out, and not trusted.

    Its size comes from the launches' own slope, or from the spread between days, whichever is known better. A machine
    that drifts does so on no straight line: where the slope moved the sides' centers by as much as the effect, or by
    more than equality allows, the order decides nothing.
    """
    plain = welch(a, b)
    drifting = beside_drift(a, b, *turns)
    moved = abs(plain.log_ratio - drifting.log_ratio)
    why = f"{len(a)} and {len(b)} launches{test.one_after_the_other}; with the drift that they show in the interval"
    if day is not None:
        apart = across(samples(a, b, [0] * len(a), [1] * len(b)), day)
        if apart.half_width(CONFIDENCE) < drifting.half_width(CONFIDENCE):
            drifting, moved = apart, 0.0
            why = f"{len(a)} and {len(b)} launches{test.one_after_the_other}; with the lane's {_days(day)}"
    effect = _by_own_spread(test, "blocked", drifting, why, a, b)
    if effect.kind == "equivalent":
        reach = abs(drifting.log_ratio) + drifting.half_width(EQUIVALENCE_CONFIDENCE)
        carried = moved + reach > test.margin
    else:
        carried = abs(drifting.log_ratio) - drifting.half_width(CONFIDENCE) <= moved
    if carried and effect.kind != "ambiguous":
        why = f"{effect.why}; the drift moved the sides {math.expm1(moved):.1%} apart"
        return replace(effect, kind="ambiguous", confused="order", needed=None, why=why)
    naive = test.verdict("welch", plain, "launches", "")
    confused = effect.kind == "ambiguous" and naive.kind != "ambiguous"
    return replace(effect, confused="order", needed=None) if confused else effect


def _in_sessions(test: EquivalenceTest, launches: Sequence[Sample]) -> Effect:
    """Both sides in several sessions: within each, and never across."""
    count = len({item.session for item in launches})
    why = f"{test.n_a} and {test.n_b} launches in {count} sessions, compared within each"
    if min(test.n_a, test.n_b) >= MIN_LAUNCHES:
        estimate = within(launches)
        if estimate.error > 0.0:
            return replace(test.verdict("sessions", estimate, "launches", why), sessions=count)
    if test.floor is not None:
        estimate = within(launches, test.floor)
        effect = test.verdict("sessions", estimate, test.floor.source, f"{why}; {test.floor}")
        return replace(effect, sessions=count)
    log_ratio = within(launches, Sigma(1.0, None, "declared")).log_ratio
    why = f"{why}, and no noise floor: {MIN_LAUNCHES} launches per side would give an interval"
    return replace(test.without_interval("sessions", why, "unproven", log_ratio, MIN_LAUNCHES), sessions=count)


def _over_days(test: EquivalenceTest, launches: Sequence[Sample], day: Sigma | None, *, pooled_days: bool) -> Effect:
    """Sides that share no session, or that somebody asked to pool."""
    count = len({item.session for item in launches})
    counted = f"{test.n_a} and {test.n_b} launches of {count} sessions"
    logs = [[item.log for item in launches if item.side == side] for side in (0, 1)]
    shared = common(*([item.session for item in launches if item.side == side] for side in (0, 1)))
    if pooled_days and (shared or count > MIN_LAUNCHES) and min(map(len, logs)) >= MIN_LAUNCHES:
        why = f"{counted}, pooled as asked, with a random effect a session"
        return replace(test.verdict("pooled", random_days(launches), "launches", why), sessions=count)
    log_ratio = math.fsum(logs[1]) / test.n_b - math.fsum(logs[0]) / test.n_a
    why = f"{counted}, none of which has both sides"
    few = min(map(len, logs)) < MIN_LAUNCHES
    if day is None or (few and test.floor is None):
        why += f", and the spread of this lane {'between launches' if day else 'from day to day'} is not known"
        kind: Kind = "indicated" if test.indicates(log_ratio) else "unproven"
        effect = test.without_interval("days", why, kind, log_ratio)
    else:
        estimate = across(launches, day, test.floor if few else None)
        effect = test.verdict("days", estimate, "measured", f"{why}; {_days(day)}")
    confused = effect.kind in ("unproven", "ambiguous", "indicated")
    effect = replace(effect, sessions=0)
    return replace(effect, confused="days", needed=None) if confused else effect


def _days(day: Sigma) -> str:
    return f"spread from day to day: {day}"


def _single(test: EquivalenceTest, a: Sequence[float], b: Sequence[float]) -> Effect:
    """Fewer than three launches on a side: only the noise floor can tell their spread."""
    counted = "one launch per side" if len(a) == len(b) == 1 else f"{len(a)} and {len(b)} launches"
    if len(a) > 1 and len(b) > 1:
        counted += test.one_after_the_other
    # Three launches of one side show a spread of their own; strangers are asked where there are fewer.
    own = pooled((a, b), OWN, "launches") if max(len(a), len(b)) >= MIN_LAUNCHES else None
    floor = own or test.floor
    if floor is not None:
        return test.verdict("single", against_floor(a, b, floor), floor.source, f"{counted}; {floor}")
    log_ratio = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    needed = MIN_LAUNCHES
    if test.indicates(log_ratio):
        return test.without_interval("single", f"{counted}: {test.beyond(log_ratio)}", "indicated", log_ratio, needed)
    why = f"{counted} and no noise floor: {needed} launches per side would give an interval"
    return test.without_interval("single", why, "unproven", log_ratio, needed)
