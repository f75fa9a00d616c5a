"""Which steps of a run must not enter a steady window: its start, what still carries it, and stalls.

Step logs of this family say little of why a step was slow, so that times decide: the start is what stands before the
first step of ordinary speed, and a stall is a step far outside the spread that the other steps have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Final

from receipts.evidence.reading import Reading

# A start longer than this is a phase of its own: a ramp of the batch or of the sequence.
_MAX_START: Final = 10
_SETTLED: Final = 1.5
_STALL: Final = 2.5
_SIGMAS: Final = 5.0
_LEAST_SPREAD: Final = 0.02
_LEAST_STEPS: Final = 6


def mark(reading: Reading, starts: Iterable[int], carrying: Iterable[int] = ()) -> None:
    """Fill ``not_steady`` from the steps' times.

    ``starts`` are the first records after the start of a process; ``carrying`` are records whose average still holds
    such a step, because the source did not reset its clock.
    """
    numbers = reading.steps.numbers()
    column = reading.steps.column("step_seconds")
    times = {step: seconds for step, seconds in zip(numbers, column, strict=True) if seconds is not None}
    first = numbers[0] if numbers else None
    for step in starts:
        if step in reading.steps:
            reading.not_steady.setdefault(step, "warmup")
    for step in carrying:
        reading.not_steady.setdefault(step, "warmup")
    if first in reading.not_steady and reading.not_steady[first] == "warmup":
        for step in _start(times):
            reading.not_steady.setdefault(step, "warmup")
    for step in _stalls({step: seconds for step, seconds in times.items() if step not in reading.not_steady}):
        reading.not_steady[step] = "stall"


def _start(times: dict[int, float]) -> list[int]:
    """The steps before the first of ordinary speed; empty where none of the first ten has it."""
    if len(times) < 3:
        return []
    ordinary = _SETTLED * sorted(times.values())[len(times) // 10]
    slow: list[int] = []
    for step, seconds in times.items():
        if seconds <= ordinary:
            return slow
        slow.append(step)
        if len(slow) > _MAX_START:
            return []
    return []


def _stalls(times: dict[int, float]) -> list[int]:
    if len(times) < _LEAST_STEPS:
        return []
    middle = median(times.values())
    if not math.isfinite(middle) or middle <= 0:
        return []
    logs = {step: math.log(seconds / middle) for step, seconds in times.items() if seconds > 0}
    spread = max(_LEAST_SPREAD, 1.4826 * median(map(abs, logs.values())))
    return [step for step, far in logs.items() if far > math.log(_STALL) and far > _SIGMAS * spread]
