"""Which steps of a run must not enter a steady window: its start, what still carries it, and stalls.

Step logs of this family say little of why a step was slow, so that times decide: the start is what is before the
first step of ordinary speed, and a stall is a step far outside the spread that the other steps have.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from receipts.ingest.evidence.reading import Reading

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
    times = reading.steps.column("step_seconds")
    for step in starts:
        if step in reading.steps:
            reading.not_steady.setdefault(step, "warmup")
    for step in carrying:
        reading.not_steady.setdefault(step, "warmup")
    if numbers and reading.not_steady.get(numbers[0]) == "warmup":
        for step in _start(numbers, times):
            reading.not_steady.setdefault(step, "warmup")
    for step in _stalls(reading, numbers, times):
        reading.not_steady[step] = "stall"


def slow(reading: Reading, steps: Iterable[int]) -> list[int]:
    """Those of some steps that took far longer than most of the file's."""
    known = [seconds for seconds in reading.steps.column("step_seconds") if seconds is not None]
    limit = _STALL * median(known) if known else math.inf
    return [step for step in steps if (reading.steps.get(step, "step_seconds") or 0.0) > limit]


def _start(numbers: Sequence[int], times: Sequence[float | None]) -> list[int]:
    """The steps before the first of ordinary speed; empty where none of the first ten has it."""
    known = sorted(seconds for seconds in times if seconds is not None)
    if len(known) < 3:
        return []
    ordinary = _SETTLED * known[len(known) // 10]
    slow: list[int] = []
    for step, seconds in zip(numbers, times, strict=True):
        if seconds is None:
            continue
        if seconds <= ordinary:
            return slow
        slow.append(step)
        if len(slow) > _MAX_START:
            return []
    return []


def _stalls(reading: Reading, numbers: Sequence[int], times: Sequence[float | None]) -> list[int]:
    marked = reading.not_steady
    known = array(
        "d", (time for step, time in zip(numbers, times, strict=True) if time is not None and step not in marked)
    )
    if len(known) < _LEAST_STEPS:
        return []
    middle = median(known)
    if not math.isfinite(middle) or middle <= 0:
        return []
    spread = array("d", (abs(math.log(seconds / middle)) for seconds in known if seconds > 0))
    limit = max(math.log(_STALL), _SIGMAS * max(_LEAST_SPREAD, 1.4826 * median(spread)))
    return [
        step
        for step, seconds in zip(numbers, times, strict=True)
        if seconds is not None and seconds > 0 and math.log(seconds / middle) > limit and step not in marked
    ]
