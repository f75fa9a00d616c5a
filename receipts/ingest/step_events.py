"""What happened at the steps that a log prints: compiles between them, and steps that must not enter a steady window.

A step is printed when it has ended, so a compile belongs to the step that is printed next. One that no step follows
came after the last step, and cost none.

`not_steady` judges steps where a loop times its dispatches, by what the file itself shows. MaxText's seconds are times
between dispatches. The first steps return before the device has worked, print rates above any chip's peak, and a later
step pays the time back; the work of an evaluation, a checkpoint or the profiler's end falls into the step after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from receipts.ingest.reading import CompileEvent, CompileSpan, Reading, Reason
from receipts.ingest.steps import step_of

MAX_EVENTS: Final = 10_000
# Steps that are looked at one by one; of the others, those behind a compilation.
MAX_STEPS: Final = 64
MAX_KEPT: Final = 10_000
# Lines that look as if they named a step, and name none.
MAX_STRANGE: Final = 200


class CompileOrder:
    """Compiles and printed steps of one log in their order."""

    def __init__(self) -> None:
        # Numbers of printed steps, ascending, and compiles, each with how many of those had been printed.
        self._steps: list[int] = []
        self._built: list[tuple[int, CompileEvent]] = []
        self._strange = 0
        self.follows = True

    def look(self, text: str) -> None:
        """Take a line of another source, which may name a step."""
        step = step_of(text)
        if step is None:
            self._strange += 1
            self.follows = self.follows and self._strange < MAX_STRANGE
            return
        if (not self._steps or step > self._steps[-1]) and len(self._steps) < MAX_KEPT:
            self._steps.append(step)
        self.follows = len(self._steps) < MAX_STEPS

    def compiled(self, why: str = "") -> CompileEvent:
        """A program was compiled; ``why`` is empty for the first of its function, and may be filled in later."""
        event = CompileEvent(why)
        if len(self._built) < MAX_EVENTS:
            self._built.append((len(self._steps), event))
        self.follows = self._strange < MAX_STRANGE
        return event

    def undo(self) -> str:
        """Forget the last compile, which did not take place, and return its cause."""
        return self._built.pop()[1].why if self._built else ""

    def place(self, reading: Reading) -> bool:
        """Put each compile between the steps printed before and after it; False where the log shows too few steps.

        Behind the last printed step none follows where every step is printed; else some may, and it has no place.
        """
        compile_ = reading.compile
        if len(self._steps) < 2:
            compile_.unplaced = [event for _, event in self._built]
            return False
        every = self._steps[1] - self._steps[0]
        begun = self._steps[0] - min(self._steps[0] or 1, every)
        ended = [0, *(step - begun for step in self._steps)]
        compile_.steps, compile_.spans = ended[-1], []
        for printed, event in self._built:
            if printed < len(self._steps):
                compile_.spans.append(CompileSpan(1, ended[printed], ended[printed + 1], event.why))
            elif every > 1:
                compile_.spans.append(CompileSpan(1, why=event.why))
        return True


def place(file: str, line: str | int) -> str:
    """``train.py:41``: the file's name alone, as folders differ between machines."""
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


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
