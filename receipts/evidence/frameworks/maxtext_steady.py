"""Which of MaxText's steps must not enter a steady window, by what the file itself shows.

MaxText's seconds are times between dispatches. The first steps return before the device has worked, print rates above
any chip's peak, and a later step pays the time back; the work of an evaluation, a checkpoint or the profiler's end
falls into the step after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from receipts.evidence.reading import Reading, Reason
from receipts.evidence.steps import Steps

# Against the median of all steps of the file. No step of one program takes half of its usual time.
FAST: Final = 2.0
SLOW: Final = 2.0
# A step that an evaluation or a checkpoint precedes, and that shows it.
DELAYED: Final = 1.5
STALL: Final = 5.0
# Fewer steps have no median to speak of.
ENOUGH: Final = 4
# No chip of today computes this much, in any type.
NO_CHIP_TFLOPS: Final = 20_000.0


@dataclass(slots=True)
class Events:
    """What the file tells of steps: the first ones of a process, profiled ones, those after an eval or checkpoint."""

    first: set[int] = field(default_factory=set)
    marked: dict[int, Reason] = field(default_factory=dict)
    after: dict[int, Reason] = field(default_factory=dict)
    peak_tflops: float | None = None


def not_steady(reading: Reading, events: Events) -> None:
    """Fill ``reading.not_steady``. What the source's own words say of a step stands before what its times suggest."""
    steps = reading.steps
    seconds = _by_step(steps, "step_seconds")
    found = dict(events.marked)
    fast = _impossible(steps, seconds, events.peak_tflops)
    for step in steps.numbers():
        if step in fast:
            found.setdefault(step, "impossible")
            if step + 1 in steps:
                found.setdefault(step + 1, "impossible")
    _beginnings(steps, seconds, events.first, found)
    if len(seconds) >= ENOUGH:
        usual = median(seconds.values())
        for step, taken in seconds.items():
            reason = events.after.get(step)
            if reason is not None and taken > DELAYED * usual:
                found.setdefault(step, reason)
            elif taken > STALL * usual:
                found.setdefault(step, "stall")
    reading.not_steady = {step: found[step] for step in sorted(found) if step in steps}


def _by_step(steps: Steps, name: str) -> dict[int, float]:
    pairs = zip(steps.numbers(), steps.column(name), strict=True)
    return {step: value for step, value in pairs if value is not None and 0 <= value < float("inf")}


def _impossible(steps: Steps, seconds: Mapping[int, float], peak: float | None) -> set[int]:
    tflops = _by_step(steps, "tflops_per_second_per_chip")
    ceiling = NO_CHIP_TFLOPS if peak is None else peak
    found = {step for step, rate in tflops.items() if rate > ceiling}
    rates = _by_step(steps, "tokens_per_second_per_chip") or tflops
    if len(rates) < len(seconds) / 2:
        rates = {step: 1 / taken for step, taken in seconds.items() if taken > 0}
    if len(rates) >= ENOUGH:
        usual = median(rates.values())
        found |= {step for step, rate in rates.items() if usual > 0 and rate > FAST * usual}
    return found


def _beginnings(steps: Steps, seconds: Mapping[int, float], first: set[int], found: dict[int, Reason]) -> None:
    """The first step of a process, what follows it at a compile's pace, and one step more."""
    usual = median(seconds.values()) if len(seconds) >= ENOUGH else None
    for step in sorted(first):
        found.setdefault(step, "compile")
        step += 1
        while usual is not None and seconds.get(step, 0.0) > SLOW * usual:
            found.setdefault(step, "compile")
            step += 1
        if step in steps:
            found.setdefault(step, "warmup")
