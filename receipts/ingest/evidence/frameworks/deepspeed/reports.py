"""DeepSpeed's reports beside its steps: memory, timers, the flops profiler's block, the summary of collectives."""

from __future__ import annotations

import re
from array import array
from typing import Final

from receipts.base.units import BINARY, SECONDS
from receipts.ingest.evidence.frameworks.deepspeed.configuration import STATEMENTS
from receipts.ingest.literals import number
from receipts.ingest.reading import Peaks, Reading
from receipts.ingest.steps import MAX_STEPS

# `deepspeed/runtime/utils.py` (`see_memory_usage`), 0.1 (2020) to 0.19 (2026): GB is 2**30 bytes.
_USAGE = re.compile(r"(?<!\w)(Max_MA|Max_CA|MA|CA)\s+([\d.]{1,20})\s*([MG])B")
_OLD_USAGE = re.compile(r"\b(max_mem_allocated|max_cache_allocated|mem_allocated): ([\d.]{1,20}) GB")
_NAMES: Final = {
    "MA": "bytes_used",
    "Max_MA": "peak_bytes",
    "Max_CA": "peak_reserved_bytes",
    "mem_allocated": "bytes_used",
    "max_mem_allocated": "peak_bytes",
    "max_cache_allocated": "peak_reserved_bytes",
}
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


def usage(text: str, line: int, peaks: Peaks) -> bool:
    """Take a line of `see_memory_usage`, which resets the peaks whenever it prints: the largest line counts."""
    cells = _USAGE.findall(text) + [(*cell, "G") for cell in _OLD_USAGE.findall(text)]
    known = [(name, word, unit) for label, word, unit in cells if (name := _NAMES.get(label))]
    for name, word, unit in known:
        if (value := number(word)) is not None:
            peaks.keep(name, value * BINARY[unit], line, last=name == "bytes_used")
    return bool(known)


def timers(text: str, reading: Reading) -> bool:
    """A ``time (ms) | name: x | …`` line of DeepSpeed (Megatron's own looks the same otherwise); whether it was one."""
    if _OWN_TIMER.search(text) is None:
        return False
    pairs = _TIMER.findall(text, text.index("time (ms)"))
    for name, milliseconds in pairs:
        reading.time(name, _number(milliseconds, 1e-3))
    return bool(pairs)


def profile(text: str, reading: Reading, line: int) -> int | None:
    """A line of the flops profiler; the step that its summary names, if it names one.

    Its FLOPS are 3 (or 2 and the recompute factor) forward passes over time: what the hardware did, not the model.
    """
    if match := _PROFILED.search(text):
        return int(match[1])
    if not STATEMENTS.take(reading, text, line) and (match := _LATENCY.search(text)):
        reading.time(f"flops_profiler.{match[1]}", _number(match[2], SECONDS[match[3]]))
    return None


class EngineTimers:
    """The engine's own timers, a line a step: forward, backward and update of all micro batches."""

    def __init__(self) -> None:
        self._seconds = array("d")
        self._rank = ""

    def take(self, text: str) -> None:
        """Keep a step of the first rank that prints them; what lies between two steps is not in it."""
        match = _STEP_TIMERS.search(text)
        if match is not None and match[1] == (self._rank or match[1]) and len(self._seconds) < MAX_STEPS:
            self._rank = match[1]
            self._seconds.append(sum(map(float, match.groups()[1:])) / 1e3)

    def put(self, reading: Reading) -> None:
        """Put steps where no line prints their time by number, and each has timers, the last one perhaps not."""
        steps = reading.steps
        numbers = steps.numbers()
        timed = any(value is not None for value in steps.column("step_seconds"))
        if not self._seconds or timed or (numbers and numbers[-1] - len(self._seconds) not in (0, 1)):
            return
        for step, seconds in enumerate(self._seconds, 1):
            steps.add(step, {"step_seconds": seconds})
        reading.not_steady.setdefault(1, "warmup")
        reading.state("measurement.timer", "DeepSpeed timers: forward, backward, update")


class Collectives:
    """The table that `dist.log_summary` prints: sizes, counts and latencies below each operator's name."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._operator = ""
        self.open = False

    def line(self, text: str) -> bool:
        """Take a line below the head; False, and `open` no more, where the table has ended."""
        if match := _MESSAGE.match(text):
            if self._operator:
                self._reading.time(f"comm.{self._operator}", _number(match[2], 1e-3), int(match[1]))
            return True
        if match := _OPERATOR.match(text):
            self._operator = match[1]
            return True
        self.open = False
        return False


def _number(text: str, factor: float) -> float | None:
    return float(text) * factor if text.count(".") <= 1 and text != "." else None
