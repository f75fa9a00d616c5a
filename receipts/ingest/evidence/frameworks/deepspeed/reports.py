"""DeepSpeed's reports beside its steps: timers, the flops profiler's block, the summary of collectives."""

from __future__ import annotations

import re

from receipts.base.units import SECONDS
from receipts.ingest.evidence.reading import Reading, Timing

_TIMER = re.compile(r"([\w()-]{1,60}): ([\d.]{1,20})")
_OWN_TIMER = re.compile(r"\[Rank \d+\]\s+(?:rank=\d+ )?time \(ms\)|rank=\d+ time \(ms\)|_microstep:|log_dist\]")
# Of a micro batch the names end in `_microstep`.
_STEP_TIMERS = re.compile(
    r"\[Rank (\d{1,9})\] time \(ms\) \| (?:fwd|forward): (\d{1,12}\.\d+) \| (?:bwd|backward): (\d{1,12}\.\d+) \|"
    r".*\| step: (\d{1,12}\.\d+)"
)
_MESSAGE = re.compile(r"^\s*(?:\S+:\s+)?[\d.]+ ?[KMGT]?B\s+(\d{1,12})\s+([\d.]{1,20})\s")
_OPERATOR = re.compile(r"^\s*(?:\S+:\s+)?([a-z]\w{2,60})\s*$")
_LATENCY = re.compile(r"\b(fwd|bwd|step|iter) latency:\s+([\d.]{1,12}) (s|ms|us)\b")
_PROFILED = re.compile(r"Profile Summary at step (\d{1,12})")
_SETTING = re.compile(r"(?<!\w)(world size|data parallel size|batch size per GPU):\s{2,80}(\d{1,9})\s*$")
_PATHS = {
    "world size": "hardware.chips",
    "data parallel size": "parallelism.data",
    "batch size per GPU": "batch.micro_batch",
}
MAX_NAMES = 1000


def timers(text: str, reading: Reading) -> bool:
    """A ``time (ms) | name: x | …`` line of DeepSpeed (Megatron's own looks the same otherwise); whether it was one."""
    if _OWN_TIMER.search(text) is None:
        return False
    found = _TIMER.findall(text, text.index("time (ms)"))
    for name, milliseconds in found:
        _add(reading, name, 1, _number(milliseconds, 1e-3))
    return bool(found)


def engine_step(text: str) -> tuple[int, float] | None:
    """The rank and the seconds of one global step, as the engine's timers have it; None for any other line.

    It is forward, backward and update of all micro batches; what lies between two steps is not in it.
    """
    match = _STEP_TIMERS.search(text)
    return (int(match[1]), sum(float(part) for part in match.groups()[1:]) / 1e3) if match else None


def profile(text: str, reading: Reading, line: int) -> int | None:
    """A line of the flops profiler; the step that its summary names, if it names one.

    Its FLOPS are 3 (or 2 and the recompute factor) forward passes over time: what the hardware did, not the model.
    """
    if match := _PROFILED.search(text):
        return int(match[1])
    if match := _SETTING.search(text):
        if int(match[2]):
            reading.state(_PATHS[match[1]], int(match[2]), f"{match[1]}: {match[2]}", line)
    elif match := _LATENCY.search(text):
        _add(reading, f"flops_profiler.{match[1]}", 1, _number(match[2], SECONDS[match[3]]))
    return None


class Collectives:
    """The table that `dist.log_summary` prints: sizes, counts and latencies below each operator's name."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._operator = ""

    def line(self, text: str) -> bool:
        """Take a line below the head; False where the table has ended."""
        if match := _MESSAGE.match(text):
            if self._operator:
                name = f"comm.{self._operator}"
                _add(self._reading, name, int(match[1]), _number(match[2], 1e-3))
            return True
        if match := _OPERATOR.match(text):
            self._operator = match[1]
            return True
        return False


def _add(reading: Reading, name: str, samples: int, seconds: float | None) -> None:
    before = reading.timings.get(name)
    if seconds is None or (before is None and len(reading.timings) >= MAX_NAMES):
        return
    taken, total = (before.samples, before.seconds or 0.0) if before else (0, 0.0)
    reading.timings[name] = Timing(taken + samples, total + seconds)


def _number(text: str, factor: float) -> float | None:
    return float(text) * factor if text.count(".") <= 1 and text != "." else None
