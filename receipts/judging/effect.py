"""The effect of B's launches against A's on a metric: which numbers carry one, and against whose spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from receipts.axes.lane import Lane
from receipts.judging.rule import PairCase
from receipts.metrics import Launch, Metric
from receipts.metrics.registry import MetricReading

if TYPE_CHECKING:
    from receipts.stats.equivalence import Effect
    from receipts.stats.log_ratio import Sigma

OF_DAYS: Final = ("step", "rate")  # summaries of metrics whose level moves from day to day
_NO_SPREAD: Final = (
    "the launches of each side agree to the last digit: record finer times, or launches that are no copies"
)


def effect_of(pair: PairCase, metric: Metric, a: Sequence[MetricReading], b: Sequence[MetricReading]) -> Effect:
    """The effect of B against A on one metric, by launches; ``unproven`` where numbers are merely stated.

    ``a`` and ``b`` are what the launches of the pair read of it: a rule asks what the answer is made of, too.
    """
    if metric.name not in pair.effects:
        pair.effects[metric.name] = _effect(pair, metric, a, b)
    return pair.effects[metric.name]


def effect_of_pair(pair: PairCase) -> Effect:
    """The effect on the pair's own metric, as rules ask for it."""
    a, b = ([launch.read(pair.metric) for launch in group] for group in (pair.group_a, pair.group_b))
    return effect_of(pair, pair.metric, a, b)


def _effect(pair: PairCase, metric: Metric, a: Sequence[MetricReading], b: Sequence[MetricReading]) -> Effect:
    from receipts.stats import effect as effects
    from receipts.stats.equivalence import DEFAULT_DELTA

    why = _unproven(pair, metric, a, b)
    values_a = [item.value for item in a if item.value is not None]
    values_b = [item.value for item in b if item.value is not None]
    if why:
        return effects.unproven(why, len(values_a), len(values_b))
    better: Literal["lower", "higher"] = "lower" if metric.better == "lower" else "higher"
    if pair.facts is not None and metric.name in pair.facts.exact_memory:
        fact = effects.exactly(values_a, values_b, better=better)
        if fact is not None:
            return fact
    noise = noise_of(metric, pair.lane, pair.facts.noise if pair.facts is not None else None)
    alike = min(len(values_a), len(values_b)) > 1 and len(set(values_a)) == len(set(values_b)) == 1
    if alike and noise is None and metric.summary in ("step", "rate"):
        # No machine is so even: the clock is too coarse, or they are copies. Memory and losses may well agree.
        return effects.unproven(_NO_SPREAD, len(values_a), len(values_b))
    delta = pair.lane.smallest_effect(metric.name)
    return effects.compare(
        values_a,
        values_b,
        better=better,
        sigma=noise,
        delta=delta,
        delta_source=DEFAULT_DELTA if delta is None else f"set by lane {pair.lane.name}",
        times_a=_times(pair.group_a),
        times_b=_times(pair.group_b),
        largest_spread=_largest_spread(pair, metric),
        sessions=sessions_of(pair.group_a, pair.group_b) if metric.summary in OF_DAYS else None,
        day=pair.facts.day if pair.facts is not None else None,
        pooled_days=pair.pooled,
    )


def sessions_of(a: Sequence[Launch], b: Sequence[Launch]) -> tuple[list[int], list[int]]:
    """The session of each launch of two sides, by their starts and the sessions that they declare."""
    from receipts.stats.sessions import sessions

    runs = [launch.parsed.receipt.run for launch in (*a, *b)]
    numbers = sessions([run.started.timestamp() for run in runs], [run.session for run in runs])
    return numbers[: len(a)], numbers[len(a) :]


def _unproven(pair: PairCase, metric: Metric, a: Sequence[MetricReading], b: Sequence[MetricReading]) -> str:
    """Why no effect can be given; empty where one can."""
    if metric.summary == "outcome":
        return "an outcome belongs to one launch and has no effect"
    for side, readings, group in (("A", a, pair.group_a), ("B", b, pair.group_b)):
        without = [launch for launch, item in zip(group, readings, strict=True) if item.value is None]
        if without and all(launch.shown(metric).value is not None for launch in without):
            return f"no steady segment in {len(without)} of {len(group)} launches of {side}: {_instead(pair)}"
        if without:
            return f"{metric.title} is not on side {side}"
    if is_stated(metric, (*a, *b)):
        return "the numbers are only stated; the steps or memory rows behind them were not kept"
    return ""


def is_stated(metric: Metric, readings: Sequence[MetricReading]) -> bool:
    """Whether some number of a metric that steps or memory rows give is only stated."""
    measured = metric.summary in ("step", "rate", "memory")
    return measured and any(item.source in ("stated", "derived") for item in readings)


def _instead(pair: PairCase) -> str:
    """What gives a number where no steps are steady: longer runs, or the total of a loop that stops at its target."""
    totals = all("measurement.goodput.step_seconds" in launch.stated for launch in (*pair.group_a, *pair.group_b))
    return "run longer, or compare -m training_seconds" if totals else "run longer"


def noise_of(metric: Metric, lane: Lane, measured: Sigma | None) -> Sigma | None:
    """The noise floor of step times and rates: measured by the store's own repeats, else as the lane declares it."""
    from receipts.stats.log_ratio import Sigma

    if metric.summary not in ("step", "rate"):
        return None
    declared = Sigma(lane.sigma, lane.sigma_df, "declared", lane.sigma_from) if lane.sigma is not None else None
    return measured or declared


def _largest_spread(pair: PairCase, metric: Metric) -> float | None:
    """The largest log ratio of the metric between two equal launches that the store has shown; None where it has not.

    Step times have their own. The highest live peaks of two launches lie no further apart than those of some chip do.
    """
    if pair.facts is None:
        return None
    if metric.name == "peak_bytes":
        share = pair.facts.chip_spread
        return -math.log1p(-share) if share is not None and share < 1 else None
    return pair.facts.largest_spread if metric.summary in ("step", "rate") else None


def _times(group: Sequence[Launch]) -> list[float | None]:
    """Start times in seconds; a launch whose start is only known to the day has none."""
    runs = [launch.parsed.receipt.run for launch in group]
    return [run.started.timestamp() if run.started_stated is None else None for run in runs]
