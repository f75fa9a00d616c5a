"""A launch as metrics see it: its steady segment and the values that follow from it.

Its typical step is the median steady step, or the mean of logged intervals; its rate is what somebody pays for: the
tokens of the same steps over their wall time, stalls and what lies between the steps included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Any

from receipts.axes.lane import Lane
from receipts.metrics.chips import Account, account
from receipts.metrics.readings import READERS, rate_from_total
from receipts.metrics.registry import MetricReading
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.measurement import Measurement
from receipts.stats.distributions import median

if TYPE_CHECKING:
    from receipts.axes import Difference
    from receipts.axes.replicates import LaunchSettings, Rhythm
    from receipts.metrics.flops import WorkPerToken
    from receipts.metrics.registry import Metric
    from receipts.metrics.stated import Numbers
    from receipts.stats.steady import LaunchSummary, Segment

ENOUGH_STEPS = 100  # of interval means that are too few to judge whether they are steady
UNMEASURED = Measurement.model_construct()
LONG = 1.5  # times the level: a step that held other work beside its own
NOT_STEADY = ("warmup", "compile", "recompile", "checkpoint", "eval", "profile", "data")


class Launch:
    """One receipt under its lane. Everything is computed on first use and kept."""

    def __init__(self, parsed: Parsed, lane: Lane, settings: LaunchSettings | None = None) -> None:
        self.parsed = parsed
        self.lane = lane
        self.measurement = parsed.receipt.measurement or UNMEASURED
        self._shared = settings

    def __repr__(self) -> str:
        return f"Launch({self.parsed.name!r}, lane={self.lane.name!r})"

    @cached_property
    def settings(self) -> LaunchSettings:
        """What follows from its settings; one value for all launches of a configuration that a session reads."""
        from receipts.axes.replicates import LaunchSettings  # what is compared from files has no shape and no signature

        return self._shared or LaunchSettings(self.parsed)

    def difference(self, other: Launch, lane: Lane) -> Difference:
        """What differs between its settings and another's, under a lane."""
        from receipts.axes.difference import difference_under

        values = self.settings.effective, other.settings.effective
        return difference_under(lane, self.parsed, other.parsed, values=values)

    @cached_property
    def account(self) -> Account:
        """Its memory by phase and chip."""
        return account(self.parsed)

    @cached_property
    def stated(self) -> Mapping[str, Any]:
        """Stated leaves by path."""
        return self.parsed.stated

    @cached_property
    def durations(self) -> tuple[float, ...]:
        """Every step's duration in order, or the means over intervals, in seconds; empty if neither is kept."""
        return self.measurement.step_durations_seconds or self.measurement.interval_means_seconds or ()

    @cached_property
    def walls(self) -> tuple[float, ...]:
        """Seconds of wall time of every step, what lies between it and the one before included; empty if unknown."""
        walls = self.measurement.step_wall_seconds or ()
        return walls if len(walls) == len(self.durations) and math.fsum(walls) > 0.0 else ()

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Tokens per second of every step, where a log prints them and nothing tells the tokens of a step."""
        rates = self.measurement.step_tokens_per_second or ()
        return rates if rates and min(rates) > 0.0 and len(rates) == len(self.durations or rates) else ()

    @cached_property
    def series(self) -> tuple[float, ...]:
        """What steadiness is judged by: durations of steps, else the seconds that a token of each took."""
        return self.durations or tuple(1.0 / rate for rate in self.rates)

    def by_steps(self) -> Launch:
        """The same launch with the rate of its steps alone: beside others that kept no wall time."""
        other = copy(self)
        for made_of_walls in ("pace", "rate", "of_rate", "numbers"):
            vars(other).pop(made_of_walls, None)
        vars(other)["walls"] = ()
        return other

    @cached_property
    def distinct_steps(self) -> frozenset[tuple[float, ...]]:
        """Step times that no second launch can have."""
        from receipts.axes.replicates import distinct_steps  # what is read alone is not held against another

        return distinct_steps(self.parsed)

    @cached_property
    def rhythm(self) -> Rhythm | None:
        """How its steps go up and down, which no second launch shares."""
        from receipts.axes.replicates import rhythm

        return rhythm(self.parsed)

    @cached_property
    def flagged(self) -> Mapping[str, tuple[int, ...]]:
        """Positions of steps by flag."""
        return {str(flag): steps for flag, steps in (self.measurement.step_flags or {}).items()}

    @cached_property
    def unshown(self) -> Mapping[str, Sequence[int]]:
        """Slow steps by the flag that says they were something else, where nothing shows it."""
        if not any(self.flagged.values()):
            return {}
        from receipts.metrics.readings import unshown  # most receipts flag their warm-up alone

        return unshown(self.parsed, self.durations, self.flagged)

    @cached_property
    def excluded(self) -> frozenset[int]:
        """Positions that never enter the steady segment: flagged steps, and those outside a stated window.

        What a flag alone says of slow steps leaves none out.
        """
        positions = {index for flag in NOT_STEADY for index in self.flagged.get(flag, ())}
        positions.difference_update(*self.unshown.values())
        window = self.measurement.window
        if window is not None:
            length = len(self.series)
            positions.update(range(min(window.start or 0, length)))
            if window.stop is not None:
                positions.update(range(window.stop, length))
        return frozenset(positions)

    @cached_property
    def after_window(self) -> tuple[float, ...]:
        """Durations of ordinary steps that a stated window leaves out at its end."""
        window = self.measurement.window
        if window is None or window.stop is None:
            return ()
        flagged = {index for positions in self.flagged.values() for index in positions}
        return tuple(self.durations[i] for i in range(window.stop, len(self.durations)) if i not in flagged)

    @cached_property
    def timed(self) -> bool:
        """Whether steps are kept, and each of them took time."""
        return bool(self.durations) and min(self.durations) > 0

    @cached_property
    def segment(self) -> Segment | None:
        """The steady segment; None without steps."""
        if not self.series or min(self.series) <= 0.0:
            return None
        from receipts.stats.steady import steady_segment

        window = self.measurement.window
        windowed = window is not None and window.start is not None
        return steady_segment(self.series, self.excluded, self.lane.minimum_steps, windowed=windowed)

    @cached_property
    def interval_steps(self) -> tuple[int, ...]:
        """How many steps each duration is the mean of, where intervals were logged; empty if each is of one step."""
        steps = self.measurement.interval_steps or ()
        return steps if len(steps) == len(self.durations) and any(count != 1 for count in steps) else ()

    @cached_property
    def summary(self) -> LaunchSummary | None:
        """Summary over the steady segment; None if there is no steady segment."""
        if self.segment is None or self.segment.status != "steady" or not self.durations:
            return None
        from receipts.stats.steady import summarize

        return summarize(self.durations, self.segment)

    @cached_property
    def step_seconds(self) -> float | None:
        """The location of the steady segment: its median step, or the mean of its intervals; None without one.

        A few means over many steps have a location too. R205 leaves the question of its effect open.
        """
        if self.segment is None:
            return None
        if self.segment.status == "too_few" and self.interval_steps:
            return self.level if sum(self.segment.of(self.interval_steps)) >= ENOUGH_STEPS else None
        return self.level if self.segment.status == "steady" else None

    @cached_property
    def level(self) -> float | None:
        """The same of a launch that is not steady, over every step that no flag and no window leaves out."""
        if self.segment is None or not self.segment.kept or not self.durations:
            return None
        if self.interval_steps:
            return _weighted_mean(self.segment.of(self.durations), self.segment.of(self.interval_steps))
        start, stop, left_out = self.segment[:3]
        if left_out == tuple(range(start, start + len(left_out))):
            return self.median(start + len(left_out), stop)
        return median(self.segment.of(self.durations))

    @cached_property
    def pace(self) -> float | None:
        """Seconds that a step of the segment cost: its wall time, else the sum of its steps, over their number."""
        if self.segment is None or not self.segment.kept or not self.durations:
            return None
        seconds = self.segment.of(self.walls or self.durations)
        if self.interval_steps:
            return _weighted_mean(seconds, self.segment.of(self.interval_steps))
        return math.fsum(seconds) / len(seconds)

    @cached_property
    def rate(self) -> float | None:
        """Tokens per second over the segment, steady or not; None if nothing tells the tokens."""
        if self.segment is None or not self.segment.kept:
            return None
        if not self.durations:  # equal steps: what each token took, on average
            return self.segment.kept / math.fsum(self.segment.of(self.series))
        tokens: float | None = self.tokens_per_step
        if tokens is None and self.rates:
            each = map(mul, self.segment.of(self.rates), self.segment.of(self.durations))
            tokens = math.fsum(each) / self.segment.kept
        return tokens / self.pace if tokens is not None and self.pace else None

    @property
    def steady(self) -> bool:
        """Whether its numbers are those of a steady segment, or of interval means over steps enough."""
        return self.step_seconds is not None or bool(self.segment and self.segment.status == "steady")

    def counting(self, positions: Iterable[int]) -> tuple[int, float]:
        """Of steps that are left out: how many are of ordinary length, and by what share the level moves with them."""
        assert self.segment is not None
        assert self.level is not None
        more = [seconds for at in positions if (seconds := self.durations[at]) < LONG * self.level]
        return len(more), median([*self.segment.of(self.durations), *more]) / self.level - 1

    def median(self, start: int, stop: int) -> float:
        """The median step from one position to before another."""
        return median(self.durations[start:stop])

    @cached_property
    def numbers(self) -> Numbers:
        """What its stated numbers and its steps make of its rate."""
        from receipts.metrics.stated import Numbers  # what a list of launches never asks

        return Numbers(self)

    @cached_property
    def tokens_per_step(self) -> int | None:
        """Tokens a step: stated, else global batch times sequence length."""
        stated = self.stated.get("measurement.tokens_per_step")
        if stated is not None:
            return int(stated)
        batch, length = self.stated.get("batch.global_batch"), self.stated.get("batch.sequence_length")
        return int(batch * length) if batch is not None and length is not None else None

    @cached_property
    def steps_trained(self) -> int | None:
        """Optimizer steps until the last loss, those before a resumed launch too; None if they are not counted."""
        counts = [self.stated.get("measurement.steps") or 0, sum(self.interval_steps) or len(self.durations)]
        counts.append(max(self.stated.get("measurement.loss.steps") or (-1,)) + 1)
        return max(counts) + (self.stated.get("run.start_step") or 0) if any(counts) else None

    @cached_property
    def work(self) -> WorkPerToken | None:
        """FLOPs a token, where they are stated, and the formula that names them; None if nothing does.

        Beside a stated MFU they are as stated, for rules to hold against it.
        """
        flops, formula = (self.stated.get(f"measurement.stated.{name}") for name in ("flops_per_token", "formula"))
        if flops is None:
            return None
        from receipts.metrics.flops import WorkPerToken, geometry_of, work_per_token

        if self.stated.get("measurement.stated.mfu") is not None:
            return WorkPerToken(formula or "no formula", float(flops))
        return work_per_token(float(flops), formula, geometry_of(self.stated))

    @cached_property
    def peak(self) -> float | None:
        """Dense peak a chip in FLOP/s: as stated, else of the accelerator in the compute type; never a default.

        A peak of an accelerator that no registry knows stands beside a stated MFU alone: nothing else holds it.
        """
        stated = self.stated.get("measurement.stated.peak_flops_per_second")
        machine = find_accelerator(self.stated.get("hardware.accelerator", ""))
        if stated is not None and (machine is not None or self.stated.get("measurement.stated.mfu") is not None):
            return float(stated)
        return machine.peak(self.peak_dtype) if machine is not None and self.peak_dtype is not None else None

    @property
    def peak_dtype(self) -> str | None:
        """The type whose peak it is: as stated, else the one that it computed in."""
        dtype = self.stated.get("measurement.stated.peak_dtype", self.stated.get("numerics.compute_dtype"))
        return None if dtype is None else str(dtype)

    @property
    def basis(self) -> str:
        """What its MFU is made of, in words: formula, FLOPs a token, and the peak."""
        count = f"{self.work.formula}, {self.work.flops / 1e9:,.4g} GFLOP/token" if self.work else "no formula"
        divisor = f"{self.peak / 1e12:,.4g} TFLOP/s {self.peak_dtype or 'type not stated'}" if self.peak else "no peak"
        return f"{count}, of {divisor}"

    def read(self, metric: Metric) -> MetricReading:
        """The metric's value for this launch, with where it came from; None if its steps are not steady."""
        return READERS[metric.summary](self, metric)

    def shown(self, metric: Metric) -> MetricReading:
        """The value to show: that of a launch that is not steady too, which says so and is not a sample."""
        reading = self.read(metric)
        if reading.value is not None or metric.summary not in ("step", "rate"):
            return reading
        if metric.summary == "step":
            return reading if self.level is None else MetricReading(self.level, 1, "unsteady", self.of_steps)
        total = rate_from_total(self, metric.name, self.rate)
        return reading if total is None else MetricReading(total, 1, "unsteady", self.of_rate)

    @cached_property
    def of_steps(self) -> str | None:
        """What a number from the steps is: `median of 12 of 20 steps`."""
        if self.segment is None:
            return None
        kept, every = self.segment.kept, len(self.durations)
        if self.interval_steps:
            steps = sum(self.segment.of(self.interval_steps))
            return f"mean of {steps:,} steps in {kept:,} of {every:,} intervals"
        return f"median of {kept:,} of {every:,} steps"

    @cached_property
    def of_rate(self) -> str | None:
        """What a rate from the steps is: `tokens over the wall time of 12 of 20 steps`."""
        if self.segment is None:
            return None
        what, unit = "wall time" if self.walls else "time", "intervals" if self.interval_steps else "steps"
        return f"tokens over the {what} of {self.segment.kept:,} of {len(self.series):,} {unit}"


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(weights)
