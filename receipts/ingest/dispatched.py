"""Which steps must not enter a steady window where a loop times its dispatches, by what the file itself shows.

MaxText's seconds are times between dispatches. The first steps return before the device has worked, print rates above
any chip's peak, and a later step pays the time back; the work of an evaluation, a checkpoint or the profiler's end
falls into the step after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from receipts.ingest.reading import Reading, Reason

# Against the median of all steps of the file. No step of one program takes half of its usual time.
FAST: Final = 2.0
SLOW: Final = 2.0
# A step that an evaluation or a checkpoint precedes, and that shows it.
DELAYED: Final = 1.5
STALL: Final = 5.0
# Fewer steps have no median to speak of.
ENOUGH: Final = 3
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
    """Fill ``reading.not_steady``. What the source's own words say of a step is before what its times suggest."""
    steps = reading.steps
    numbers = steps.numbers()
    seconds = steps.column("step_seconds")
    reasons = dict(events.marked)
    # Positions of the steps whose rate no chip has, or is far above the file's own.
    tflops = steps.column("tflops_per_second_per_chip")
    ceiling = NO_CHIP_TFLOPS if events.peak_tflops is None else events.peak_tflops
    beyond = {at for at, rate in enumerate(tflops) if rate is not None and rate > ceiling}
    rates = steps.column("tokens_per_second_per_chip")
    if 2 * rates.count(None) > len(rates):
        rates = tflops
    if 2 * rates.count(None) > len(rates):
        rates = [1 / taken if taken is not None and taken > 0 else None for taken in seconds]
    usual = _median(rates)
    if usual is not None:
        limit = FAST * usual
        beyond.update(at for at, rate in enumerate(rates) if rate is not None and rate > limit)
    for at in sorted(beyond):
        reasons.setdefault(numbers[at], "impossible")
        # What was not waited for is paid by the step that follows.
        if numbers[at] + 1 in steps:
            reasons.setdefault(numbers[at] + 1, "impossible")
    usual = _median(seconds)
    # The first step of a process, what follows it at a compile's pace, and one step more.
    for step in sorted(events.first):
        reasons.setdefault(step, "compile")
        step += 1
        while usual is not None and (steps.get(step, "step_seconds") or 0.0) > SLOW * usual:
            reasons.setdefault(step, "compile")
            step += 1
        if step in steps:
            reasons.setdefault(step, "warmup")
    if usual is not None:
        for step, reason in events.after.items():
            if (steps.get(step, "step_seconds") or 0.0) > DELAYED * usual:
                reasons.setdefault(step, reason)
        limit = STALL * usual
        for at, taken in enumerate(seconds):
            if taken is not None and taken > limit:
                reasons.setdefault(numbers[at], "stall")
    reading.not_steady = {step: reasons[step] for step in sorted(reasons) if step in steps}


def _median(values: list[float | None]) -> float | None:
    """The median of what is there; None with fewer than `ENOUGH` figures, or where it is nothing."""
    there = [value for value in values if value is not None and 0 <= value < float("inf")]
    return (median(there) or None) if len(there) >= ENOUGH else None
