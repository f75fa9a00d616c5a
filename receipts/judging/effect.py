"""The effect of B's launches against A's on each metric: which numbers carry one, and against whose spread.

A metric's result is each side's number, the effect, and whether a finding forbids to name it. Typical step and
throughput of a pair may part, by stalls and gaps that a median does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from receipts import metrics
from receipts.axes.lane import Lane
from receipts.base.units import change
from receipts.judging.rule import PairCase, Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, MetricResult, Question
from receipts.metrics import Launch, Metric
from receipts.metrics.readings import wall_time
from receipts.metrics.registry import MetricReading

if TYPE_CHECKING:
    from receipts.stats.equivalence import Effect
    from receipts.stats.log_ratio import Sigma


OF_DAYS: Final = ("step", "rate")  # summaries of metrics whose level moves from day to day
_NO_SPREAD: Final = (
    "the launches of each side agree to the last digit: record finer times, or launches that are not copies"
)


def effect_of(pair: PairCase, metric: Metric) -> Effect:
    """The effect of B against A on one metric, by launches; ``unproven`` if numbers are merely stated."""
    if metric.name not in pair.effects:
        pair.effects[metric.name] = _effect(pair, metric)
    return pair.effects[metric.name]


def effect_of_pair(pair: PairCase) -> Effect:
    """The effect on the pair's own metric, as rules ask for it."""
    return effect_of(pair, pair.metric)


def _effect(pair: PairCase, metric: Metric) -> Effect:
    from receipts.stats import effect as effects
    from receipts.stats.equivalence import DEFAULT_DELTA

    a, b = ([launch.read(metric) for launch in group] for group in (pair.group_a, pair.group_b))
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
    """Why no effect can be given; empty if one can."""
    if metric.summary == "outcome":
        return "an outcome belongs to one launch and has no effect"
    for side, readings, group in (("A", a, pair.group_a), ("B", b, pair.group_b)):
        without = [launch for launch, item in zip(group, readings, strict=True) if item.value is None]
        if without and all(launch.shown(metric).value is not None for launch in without):
            # The total of a loop that stops at its target is a number too.
            every = (*pair.group_a, *pair.group_b)
            totals = all("measurement.goodput.step_seconds" in launch.stated for launch in every)
            do = "run longer, or compare -m training_seconds" if totals else "run longer"
            return f"no steady segment in {len(without)} of {len(group)} launches of {side}: {do}"
        if without:
            return f"{metric.title} is not on side {side}"
    if is_stated(metric, (*a, *b)):
        return "the numbers are only stated; the steps or memory rows behind them were not kept"
    return ""


def is_stated(metric: Metric, readings: Sequence[MetricReading]) -> bool:
    """Whether some number of a metric that steps or memory rows give is only stated."""
    measured = metric.summary in ("step", "rate", "memory")
    return measured and any(item.source in ("stated", "derived") for item in readings)


def noise_of(metric: Metric, lane: Lane, measured: Sigma | None) -> Sigma | None:
    """The noise floor of step times and rates: measured by the store's own repeats, else as the lane declares it."""
    from receipts.stats.log_ratio import Sigma

    if metric.summary not in ("step", "rate"):
        return None
    declared = Sigma(lane.sigma, lane.sigma_df, "declared", lane.sigma_from) if lane.sigma is not None else None
    return measured or declared


def _largest_spread(pair: PairCase, metric: Metric) -> float | None:
    """The largest log ratio of the metric between two equal launches that the store has shown; None if it has not.

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


START_UP_SECONDS: Final = 120.0  # interpreter, imports, devices and first data, which no span names
SMALLEST_EFFECT: Final = 0.01
_ORDINALS: Final = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Parting(NamedTuple):
    """Both ratios of a pair, B over A, and where the difference went."""

    typical: float
    throughput: float
    why: str

    def __str__(self) -> str:
        return f"typical step {change(self.typical)}, throughput {change(self.throughput)}: {self.why}"


def parting(pair: PairCase) -> Parting | None:
    """The two ratios, where they part by more than the smallest effect that matters; None if they agree.

    They are those of the two effects where these give one, so that a comparison prints one number of each.
    """
    a, b = (_steps_of(group) for group in (pair.group_a, pair.group_b))
    if a is None or b is None:
        return None
    steps, rates = (effect_of(pair, metrics.get(name)).ratio for name in ("step_seconds", "tokens_per_second"))
    (typical_a, pace_a, tokens_a), (typical_b, pace_b, tokens_b) = a, b
    typical = steps or math.exp(typical_b - typical_a)
    throughput = rates or math.exp(tokens_b - tokens_a - (pace_b - pace_a))
    apart = tokens_b - tokens_a - math.log(throughput) - math.log(typical)
    if abs(apart) <= math.log1p(delta_of_parting(pair)):
        return None
    group, letter = (pair.group_b, "B") if apart > 0.0 else (pair.group_a, "A")
    return Parting(typical, throughput, f"{_where(group[0])} of {letter}")


def delta_of_parting(pair: PairCase) -> float:
    """The smallest effect that matters on the rate of a pair."""
    set_by_lane = pair.lane.smallest_effect("tokens_per_second")
    return SMALLEST_EFFECT if set_by_lane is None else set_by_lane


def time_outside_steps(launch: Launch) -> tuple[float, float] | None:
    """The share of a launch's wall time outside steps, compile and named spans: at least, and at most.

    What start-up may have taken is between the two. None if no program told the time of the launch by category: a
    start and a finish that somebody typed leave time that was not spent.
    """
    spans = wall_time(launch)
    if "idle" not in spans:
        return None
    whole, rest = math.fsum(spans.values()), spans["idle"]
    return max(0.0, rest - START_UP_SECONDS) / whole, rest / whole


UNLIKE: Final = 0.01  # chance of equal launches to lie so far apart


def apart_from(others: Sequence[float], own: Iterable[float | None]) -> str:
    """How far other launches of a configuration lie from some, where that is beyond their spread; else empty."""
    from receipts.base.units import signed_percent
    from receipts.stats.log_ratio import welch

    logs = [math.log(value) for value in own if value]
    if min(len(logs), len(others)) < 2:
        return ""
    estimate = welch(logs, [math.log(value) for value in others])
    unlike = 2.0 * min(estimate.above(0.0), estimate.below(0.0)) < UNLIKE
    return signed_percent(math.expm1(estimate.log_ratio)) if unlike else ""


def _steps_of(group: Sequence[Launch]) -> tuple[float, ...] | None:
    """Logs of a side's geometric means: typical step, seconds that a step costs, tokens a step."""
    steady = [item for item in group if item.summary is not None and not item.interval_steps]
    if not group or len(steady) < len(group):
        return None
    values = ((item.step_seconds, item.pace, item.tokens_per_step or 1) for item in steady)
    columns = ([math.log(value) for value in column if value] for column in zip(*values, strict=True))
    return tuple(math.fsum(column) / len(column) for column in columns)


def _where(launch: Launch) -> str:
    """Where a launch lost what its typical step does not show: between steps, or in some of them."""
    segment, typical = launch.segment, launch.step_seconds
    assert segment is not None
    assert typical is not None
    steps = segment.of(launch.durations)
    mean, wall = math.fsum(steps) / len(steps), launch.pace or 0.0
    if wall - mean > mean - typical:
        return f"gaps between steps, {(wall - mean) / wall:.1%} of the wall time"
    every = round(len(steps) / max(1, sum(step > mean for step in steps)))
    if mean <= typical or every < 2:
        return "steps that vary"
    return f"stalls in every {_ORDINALS[every]} step" if every < len(_ORDINALS) else f"stalls in one step of {every}"


# Of one kind with every rate: each says how long the same work took.
_OF_TIME = ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds")


def answering(asked: Metric, launches: Sequence[Launch]) -> Metric:
    """The metric that was asked for, or where some launch lacks it the first of its kind that every launch has."""

    def known(metric: Metric) -> bool:
        return all(launch.shown(metric).value is not None for launch in launches)

    if asked.summary not in ("step", "rate") or known(asked):
        return asked
    return next(filter(known, map(metrics.get, _OF_TIME)), asked)


def alike(*groups: Sequence[Launch]) -> tuple[tuple[Launch, ...], ...]:
    """The groups, their rates read in one way: by the wall time of all, else by the steps of all."""
    walls = [bool(launch.walls) for group in groups for launch in group]
    if all(walls) or not any(walls):
        return tuple(map(tuple, groups))
    return tuple(tuple(item.by_steps() for item in group) for group in groups)


def metric_results(pair: PairCase, beside: Sequence[str]) -> Iterable[MetricResult]:
    """The metric of the comparison, and those beside it for which both sides have a number."""
    names = dict.fromkeys((pair.metric.name, *beside))
    parted = parting(pair)
    for name in names:
        metric = metrics.get(name)
        reading_a, reading_b = _shown(pair.group_a, metric), _shown(pair.group_b, metric)
        if name != pair.metric.name and (reading_a.value is None or reading_b.value is None):
            continue
        ratio = reading_b.value / reading_a.value if reading_a.value and reading_b.value else None
        effect = effect_of(pair, metric)
        middles = (reading_a.value, reading_b.value)
        if effect.ratio is not None:
            values_a, values_b = ([launch.read(metric) for launch in group] for group in (pair.group_a, pair.group_b))
            reading_a, reading_b = fitted(reading_a, reading_b, values_a, values_b, effect.ratio)
        if parted is not None and {metric.summary, pair.metric.summary} == {"step", "rate"}:
            effect = replace(effect, kind="unproven", why=str(parted))
        yield MetricResult(metric.name, metric.unit, reading_a, reading_b, effect, ratio, *middles)


def fitted(
    a: MetricReading,
    b: MetricReading,
    values_a: Sequence[MetricReading],
    values_b: Sequence[MetricReading],
    ratio: float,
) -> tuple[MetricReading, MetricReading]:
    """Both sides' numbers as the effect has them, so that B over A is its ratio: their geometric means.

    Where a drift was taken out, they are the means at the middle of all launches: the mean of all logs is what least
    squares keeps.
    """
    logs_a, logs_b = ([math.log(item.value) for item in side if item.value] for side in (values_a, values_b))
    launches = len(logs_a) + len(logs_b)
    center = math.fsum((*logs_a, *logs_b)) / launches
    first = math.exp(center - len(logs_b) / launches * math.log(ratio))
    return _mean(a, first, len(logs_a)), _mean(b, first * ratio, len(logs_b))


def _mean(reading: MetricReading, value: float, launches: int) -> MetricReading:
    text = reading.text if launches == 1 else f"geometric mean of {launches} launches"
    return replace(reading, value=value, text=text)


def named_effect(result: MetricResult, findings: Sequence[Finding], rules: RuleSet) -> MetricResult:
    """The result; its effect keeps its numbers, and loses its name where an offense spoils what it is made of.

    What is merely unknown takes no name away: it keeps the effect *unattributed*.
    """
    effect = result.effect
    errors = [item for item in findings if item.level is Level.ERROR and not item.unmeasured]
    if effect.kind in ("unproven", "ambiguous") or not effect_is_open(errors, metrics.get(result.metric), rules):
        return result
    return replace(result, effect=replace(effect, kind="unproven"))


def effect_is_open(findings: Iterable[Finding], metric: Metric, rules: RuleSet) -> bool:
    """Whether some offense or open question speaks against an effect on a metric.

    A rule about the very effect that was computed does not silence it.
    """
    on_effect = (item for item in findings if item.question is Question.EFFECT and item.level is not Level.SHOWN)
    heavy = (item for item in on_effect if not item.taints or item.spoils(metric.taint))
    return any(item.code not in rules.about(Topic.EFFECT) for item in heavy)


def _shown(group: Sequence[Launch], metric: Metric) -> MetricReading:
    """The number of a side: of its samples, else of what its launches show without being one."""
    samples = [reading for launch in group if (reading := launch.read(metric)).value is not None]
    # The geometric middle of the launches: the median of their values.
    readings = samples or [launch.shown(metric) for launch in group]
    values = sorted(item.value for item in readings if item.value is not None)
    if not values:
        return readings[0]
    middle = len(values) // 2
    value = values[middle] if len(values) % 2 else (values[middle - 1] * values[middle]) ** 0.5
    text = readings[0].text if len(values) == 1 else f"middle of {len(values)} launches"
    return MetricReading(value, len(values), readings[0].source, text)
