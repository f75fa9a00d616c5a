"""What the receipts say of the number that a claim names, or of the shape that it says ran or did not fit.

Before any rule. Only measured launches can carry a claim. Stated numbers can refute one: where their ratio, with the
rounding of their last printed digits, lies outside what is claimed. A shape was sustained by so many launches, or ran
out of memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.judging.bound import Bound
from receipts.judging.claim import Claim
from receipts.judging.effect import effect_is_open, noise_of
from receipts.judging.facts import ceiling_grade
from receipts.judging.grade import sustained
from receipts.judging.verdict import (
    Assessment,
    Comparison,
    Finding,
    Level,
    MetricResult,
    PathAnswer,
    Question,
)
from receipts.metrics import Launch, Metric
from receipts.metrics.registry import MetricReading
from receipts.receipt.leaves import find_leaf

if TYPE_CHECKING:
    from receipts.judging.facts import Facts
    from receipts.judging.rulebook import RuleSet


_RANGE = re.compile(r"(?P<low>[\d.,]+)\s*(?:-|–|to|\.\.)\s*(?P<high>[\d.,]+)(?P<unit>.*)")
MIN_LAUNCHES = 3
NAMED = 4  # open facts that a reason names
CONFIDENCE = 0.95


def of_pair(claim: Claim, comparison: Comparison, rules: RuleSet) -> Assessment:
    """A candidate against a baseline: the effect's interval held against the claim's band."""
    bound, metric = claim.bound, metrics.get(comparison.metric)
    result = comparison.headline
    assert bound is not None
    if comparison.asked != comparison.metric and bound.of != "improvement":
        return Assessment("open", f"{metrics.get(comparison.asked).title} is not on both sides")
    if result is None or metric.summary == "outcome":
        return Assessment("open", f"{metric.title} is a fact of one launch and carries no effect")
    effect = result.effect
    if effect.low is None or effect.high is None or effect.low90 is None or effect.high90 is None:
        return _as_stated(bound, metric, result)
    low, high = _oriented(bound, metric, effect.low, effect.high)
    if claim.kind == "equivalence":
        # The 90 % interval inside the band is a two one-sided test at 5 %.
        narrow = _oriented(bound, metric, effect.low90, effect.high90)
        state = "holds" if bound.judge(*narrow) == "holds" else bound.judge(low, high)
        state = "open" if state == "holds" and bound.judge(*narrow) != "holds" else state
        low, high = narrow if state == "holds" else (low, high)
    else:
        state = bound.judge(low, high)
    shown = f"{_of(bound, metric)} {low:.4g} to {high:.4g}, claimed {bound.text}; {effect.why}"
    unnamed = effect_is_open(comparison.findings, metric, rules)
    doubt = _doubt(comparison) or ("the effect is open: a rule forbids to name one" if unnamed else "")
    if doubt and (state == "holds" or unnamed):
        return Assessment("open", f"{doubt}; {shown}", low, high)
    return Assessment(state, shown, low, high)


def _oriented(bound: Bound, metric: Metric, low: float, high: float) -> tuple[float, float]:
    """The interval of what the bound speaks of: the metric's ratio, or how many times as good."""
    if bound.of == "improvement" and metric.better == "lower":
        return 1.0 / high, 1.0 / low
    return low, high


def _of(bound: Bound, metric: Metric) -> str:
    return "improvement" if bound.of == "improvement" else f"ratio of {metric.title}"


def _doubt(comparison: Comparison) -> str:
    """Why the interval of a comparison cannot support a claim; empty where it can."""
    if comparison.comparable != "yes":
        on_comparability = (item for item in comparison.findings if item.question is Question.COMPARABLE)
        places = list(dict.fromkeys(item.at for item in on_comparability if item.level is not Level.SHOWN))
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        return f"comparable {comparison.comparable}: {', '.join(places[:NAMED])}{more}"
    return "" if comparison.path == "witnessed" else f"path {comparison.path}"


def _as_stated(bound: Bound, metric: Metric, result: MetricResult) -> Assessment:
    """Stated numbers, or launches without a known spread: they can contradict a claim, and never carry it."""
    if result.stated_ratio is None or "none" in (result.a.source, result.b.source):
        return Assessment("open", result.effect.why or f"{metric.title} is not on both sides")
    stated = {result.a.source, result.b.source} & {"stated", "derived"}
    if not stated:
        return Assessment("open", result.effect.why)
    (a_low, a_high), (b_low, b_high) = _rounded(result.a), _rounded(result.b)
    if a_low <= 0.0 or b_low <= 0.0:
        return Assessment("open", "a stated number is too coarse to take a ratio of")
    low, high = _oriented(bound, metric, b_low / a_high, b_high / a_low)
    shown = f"{_of(bound, metric)} {low:.4g} to {high:.4g} as stated, claimed {bound.text}"
    if bound.judge(low, high) == "fails":
        return Assessment("fails", shown, low, high)
    return Assessment("open", f"{result.effect.why}; {shown}", low, high)


def _rounded(reading: MetricReading) -> tuple[float, float]:
    """How far a stated number reaches: half its last printed digit, or the range that its text states."""
    from receipts.base.units import read_printed
    from receipts.stats.rounding import half_of

    assert reading.value is not None
    ends = _RANGE.fullmatch(reading.text.strip()) if reading.text else None
    if ends is not None:
        low, high = (read_printed(f"{end}{ends['unit']}") for end in (ends["low"], ends["high"]))
        if low is not None and high is not None and low.value <= reading.value <= high.value:
            return low.value - low.half, high.value + high.half
    half = half_of(reading.value, reading.text)
    return reading.value - half, reading.value + half


def silent(item: Finding, launches: Sequence[Launch]) -> bool:
    """Whether an offense is no more than a leaf that the launches leave out: that contradicts no number."""
    known = bool(launches) and find_leaf(item.at) is not None
    return known and not any(item.at in launch.stated for launch in launches)


def of_value(
    claim: Claim, launches: Sequence[Launch], about: Sequence[Finding], path: PathAnswer, facts: Facts | None
) -> Assessment:
    """A value of the candidate alone, such as its MFU or the peak of its fullest chip."""
    bound, metric = claim.bound, metrics.get(claim.metric_name)
    assert bound is not None
    readings = [launch.read(metric) for launch in launches]
    values = [item.value for item in readings if item.value is not None]
    how = "recomputed" if launches[0].summary is not None else "as stated"
    grade = f"{how}: {launches[0].basis}" if metric.name == "mfu" else None
    if len(values) < len(readings):
        return Assessment("open", f"{metric.title} is not on every launch", grade=grade)
    offenses = [item for item in about if item.level is Level.ERROR and item.spoils(metric.taint)]
    offense = min(offenses, key=lambda item: silent(item, launches), default=None)
    if offense is not None:
        what = f"{offense.code} {offense.at}: {offense.found}"
        return Assessment("open" if silent(offense, launches) else "fails", what, grade=grade)
    measured = all(item.source in ("steps", "memory") for item in readings)
    if not measured:
        low = min(_rounded(item)[0] for item in readings)
        high = max(_rounded(item)[1] for item in readings)
        why = f"{_shown(metric, low, high)} as stated, claimed {bound.text}"
        if bound.judge(low, high) == "fails":
            return Assessment("fails", why, low, high, grade)
        return Assessment("open", f"{why}; what it was taken from was not kept", low, high, grade)
    interval = _interval(metric, values, launches[0], facts)
    if interval is None:
        # The peak of one launch is a fact: it contradicts "at most", and does not carry it.
        outside = metric.summary == "memory" and any(bound.judge(value, value) == "fails" for value in values)
        why = f"{_shown(metric, min(values), max(values))} on {len(values)} launch{'es' if len(values) > 1 else ''}"
        if outside:
            return Assessment("fails", f"{why}, claimed {bound.text}", min(values), max(values), grade)
        return Assessment("open", f"{why}: {MIN_LAUNCHES} launches would show its spread", grade=grade)
    low, high = interval
    why = f"{_shown(metric, low, high)} over {len(values)} launches, claimed {bound.text}"
    state = bound.judge(low, high)
    on_metric = (item for item in about if not item.taints or item.spoils(metric.taint))
    waiting = next((item for item in on_metric if item.level is Level.OPEN), None)
    if state == "holds" and (path != "witnessed" or waiting is not None):
        doubt = f"path {path}" if path != "witnessed" else f"{waiting.code} {waiting.found}" if waiting else ""
        return Assessment("open", f"{doubt}; {why}", low, high, grade)
    return Assessment(state, why, low, high, grade)


def _interval(
    metric: Metric, values: Sequence[float], launch: Launch, facts: Facts | None
) -> tuple[float, float] | None:
    """The 95 % interval of one side's location; None where nothing tells its spread."""
    from receipts.stats.log_ratio import contrast

    logs = [math.log(value) for value in values if value > 0.0]
    if len(logs) < len(values):
        return None
    if facts is not None and metric.name in facts.exact_memory:
        return min(values), max(values)
    floor = None
    if len(logs) < MIN_LAUNCHES:
        floor = noise_of(metric, launch.lane, facts.noise if facts is not None else None)
        if floor is None:
            return None
    estimate = contrast([logs], [1.0], floor)
    half = estimate.half_width(CONFIDENCE)
    return math.exp(estimate.log_ratio - half), math.exp(estimate.log_ratio + half)


def _shown(metric: Metric, low: float, high: float) -> str:
    if low == high:
        return f"{metric.title} {metrics.shown(metric, low)}"
    return f"{metric.title} {metrics.shown(metric, low)} to {metrics.shown(metric, high)}"


_SHAPE = ("hardware.chips", "batch.sequence_length", "batch.micro_batch", "model.depth")


def of_ceiling(
    claim: Claim, launches: Sequence[Launch], about: Sequence[Finding], path: PathAnswer, facts: Facts | None
) -> Assessment:
    """How often the shape was sustained.

    *Validated*: by three launches, on two days or two hosts. *Repeated*: by two launches. *Single*: by one.
    """
    good = [launch for launch in launches if sustained(launch)]
    shapes = {(launch.settings.shape, *(launch.stated.get(path) for path in _SHAPE)) for launch in launches}
    if len(shapes) > 1:
        return Assessment("open", "the launches ran at different shapes; a ceiling is one shape")
    offense = next((item for item in about if item.level is Level.ERROR and item.taints), None)
    if not good or offense is not None:
        outcome = str(launches[0].stated["run.outcome"])
        reason = "no step of it was kept" if outcome == "ok" else outcome
        if offense is not None:
            reason = f"{offense.code} {offense.at}: {offense.found}"
        return Assessment("fails", f"no launch sustained it: {reason}", grade="none")
    runs = [launch.parsed.receipt.run for launch in good]
    days = {run.started.date() for run in runs}
    hosts = {run.host for run in runs if run.host is not None}
    grade = ceiling_grade(len(good), len(days), len(hosts)).replace("peak", "single")
    why = f"{grade}: {len(good)} launch{'es' if len(good) > 1 else ''}, {len(days)} days, {len(hosts)} hosts"
    if claim.bound is not None:
        value = of_value(claim, good, about, path, facts)
        if value.state != "holds":
            return Assessment(value.state, f"{why}; {value.why}", value.low, value.high, grade)
        why = f"{why}; {value.why}"
    if grade == "single":
        return Assessment("open", why, grade=grade)
    if path != "witnessed":
        return Assessment("open", f"{why}; path {path}", grade=grade)
    return Assessment("holds", why, grade=grade)


def of_misfit(launches: Sequence[Launch], facts: Facts | None) -> Assessment:
    """What does not fit: an out-of-memory receipt at that shape, and nothing of that size or larger that fitted."""
    fitted = [launch for launch in launches if launch.stated["run.outcome"] == "ok"]
    if fitted:
        return Assessment("fails", f"{fitted[0].parsed.name} ended well: it fits")
    ran_out = [launch for launch in launches if launch.stated["run.outcome"] == "oom"]
    if not ran_out:
        return Assessment("open", f"the launch ended {launches[0].stated['run.outcome']}, and not out of memory")
    if facts is None:
        return Assessment("open", "no store was asked whether something of that shape fitted")
    shape: list[Any] = [ran_out[0].stated.get(path) for path in _SHAPE]
    if None in shape:
        missing = ", ".join(path for path, value in zip(_SHAPE, shape, strict=True) if value is None)
        return Assessment("open", f"its shape is not stated: {missing}")
    for other in (item for item in facts.shapes if item.is_of(ran_out[0].settings.shape)):
        if other.chips is None or other.sequence_length is None or other.micro_batch is None or other.depth is None:
            continue
        theirs = (other.sequence_length, other.micro_batch, other.depth)
        larger = all(size >= int(mine) for size, mine in zip(theirs, shape[1:], strict=True))
        if larger and other.chips <= int(shape[0]):
            launched = f"sequence {theirs[0]:,}, micro batch {theirs[1]}, depth {theirs[2]} on {other.chips} chips"
            return Assessment("fails", f"{other.launches} launches fitted at {launched}")
    if any(launch.parsed.receipt.run.provenance != "measured" for launch in ran_out):
        return Assessment("open", "the failure is quoted and not measured")
    return Assessment("holds", f"{len(ran_out)} out-of-memory launches at that shape, and nothing that fitted")
