"""The metrics of a comparison: each side's number, the effect, and whether a finding forbids to name it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from receipts import metrics
from receipts.judging.effect import effect_of
from receipts.judging.rule import PairCase
from receipts.judging.rulebook import RuleSet
from receipts.judging.stalls import parting
from receipts.judging.topic import Topic
from receipts.judging.verdict import Finding, Level, MetricResult, Question
from receipts.metrics import Launch, Metric
from receipts.metrics.registry import MetricReading

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
        values_a = [launch.read(metric) for launch in pair.group_a]
        values_b = [launch.read(metric) for launch in pair.group_b]
        reading_a, reading_b = _shown(pair.group_a, metric), _shown(pair.group_b, metric)
        if name != pair.metric.name and (reading_a.value is None or reading_b.value is None):
            continue
        ratio = reading_b.value / reading_a.value if reading_a.value and reading_b.value else None
        effect = effect_of(pair, metric, values_a, values_b)
        middles = (reading_a.value, reading_b.value)
        if effect.ratio is not None:
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
    return _location(samples or [launch.shown(metric) for launch in group])


def _location(readings: Sequence[MetricReading]) -> MetricReading:
    """The geometric middle of the launches: the median of their values."""
    values = sorted(item.value for item in readings if item.value is not None)
    if not values:
        return readings[0]
    middle = len(values) // 2
    value = values[middle] if len(values) % 2 else (values[middle - 1] * values[middle]) ** 0.5
    text = readings[0].text if len(values) == 1 else f"middle of {len(values)} launches"
    return MetricReading(value, len(values), readings[0].source, text)
