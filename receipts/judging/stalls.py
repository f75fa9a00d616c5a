"""Where typical step and throughput of a pair part: by stalls and gaps that a median does not hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from receipts import metrics
from receipts.base.units import change
from receipts.judging.effect import effect_of
from receipts.judging.rule import PairCase
from receipts.metrics import Launch
from receipts.metrics.readings import wall_time

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
    """The two ratios, where they part by more than the smallest effect that matters; None where they agree.

    They are those of the two effects where these give one, so that a comparison prints one number of each.
    """
    a, b = (_steps(group) for group in (pair.group_a, pair.group_b))
    if a is None or b is None:
        return None
    typical = _ratio(pair, "step_seconds") or math.exp(b.typical - a.typical)
    throughput = _ratio(pair, "tokens_per_second") or math.exp(b.tokens - a.tokens - (b.pace - a.pace))
    apart = b.tokens - a.tokens - math.log(throughput) - math.log(typical)
    if abs(apart) <= math.log1p(delta(pair)):
        return None
    group, letter = (pair.group_b, "B") if apart > 0.0 else (pair.group_a, "A")
    return Parting(typical, throughput, f"{_where(group[0])} of {letter}")


def _ratio(pair: PairCase, name: str) -> float | None:
    """B over A of a metric as the effect has it; None where the launches give no effect on it."""
    metric = metrics.get(name)
    a, b = ([launch.read(metric) for launch in group] for group in (pair.group_a, pair.group_b))
    return effect_of(pair, metric, a, b).ratio


def delta(pair: PairCase) -> float:
    """The smallest effect that matters on the rate of a pair."""
    set_by_lane = pair.lane.smallest_effect("tokens_per_second")
    return SMALLEST_EFFECT if set_by_lane is None else set_by_lane


def outside(launch: Launch) -> tuple[float, float] | None:
    """The share of a launch's wall time outside steps, compile and named spans: at least, and at most.

    What start-up may have taken is between the two. None where no program told the time of the launch by category: a
    start and a finish that somebody typed leave time that nobody spent.
    """
    spans = wall_time(launch)
    if "idle" not in spans:
        return None
    whole, rest = math.fsum(spans.values()), spans["idle"]
    return max(0.0, rest - START_UP_SECONDS) / whole, rest / whole


class _Steps(NamedTuple):
    """Logs of a side's geometric means: typical step, seconds that a step costs, tokens a step."""

    typical: float
    pace: float
    tokens: float


def _steps(group: Sequence[Launch]) -> _Steps | None:
    steady = [item for item in group if item.summary is not None and not item.interval_steps]
    if not group or len(steady) < len(group):
        return None
    values = ((item.step_seconds, item.pace, item.tokens_per_step or 1) for item in steady)
    typical, pace, tokens = ([math.log(value) for value in column if value] for column in zip(*values, strict=True))
    return _Steps(*(math.fsum(column) / len(column) for column in (typical, pace, tokens)))


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
