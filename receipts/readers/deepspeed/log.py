"""DeepSpeed's log: steps, the throughput timer, the pipeline engine, overflow, memory, timers.

Sources: `deepspeed/utils/timer.py`, `runtime/engine.py`, `runtime/pipe/engine.py`, `runtime/utils.py`
(`see_memory_usage`), 0.1 (2020) to 0.19 (2026). Samples are of the global batch. Reports, the timer and the engine's
timers print one step over several lines. Under Megatron-DeepSpeed the steps are Megatron's, and this reading claims
none.

DeepSpeed's reports beside its steps: memory, timers, the flops profiler's block, the summary of collectives.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from receipts.base.units import BINARY, SECONDS
from receipts.ingest.literals import FIGURE, number
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Peaks, Reading
from receipts.ingest.record import Form, RecordColumns, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT, MAX_STEPS, Steps, rising
from receipts.ingest.vocabulary import Label
from receipts.readers.deepspeed.configuration import STATEMENTS, DeepSpeedConfig, batch_size

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


_TIME = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d):(\d\d):(\d\d)[,.](\d{3})")
_BLANKS = re.compile(r"(?<=\w) +(?=[a-z])")
_OVERFLOW: Final = ("OVERFLOW! Rank", "loss scale overflow! Rank", "Overflow detected. Skipping step")
_AT_ONCE: Final = 0.02
# Rates that wait for the batch to be stated: those of a page, or of the beginning of a log.
_MAX_RATES: Final = 1000
_UNUSED: Final = ("micro", "RunningAvgSamplesPerSec")
_ANY: Final = ("reported", "samples_per_second", "mean_samples_per_second", "bytes_used")
_PIPELINE: Final = frozenset({"loss", "step_seconds"})


class DeepSpeed(RecordReader, table="deepspeed"):
    """Reads DeepSpeed's own lines, in its logs and in those of programs that run on it."""

    companions: ClassVar[tuple[bytes, ...]] = (b"elapsed time per iteration", b"elapsed_time_per_iteration_ms=")
    forms = (
        # A throughput line of any version, and the beginning of one that a page or a terminal broke.
        Form(
            re.compile(
                r"(?:\[timer\.py:[^\]]{0,30}\]?\s{0,8})?(?:epoch=\d{1,9}/micro_step=(?P<micro>\d{1,12})"
                r"(?:/global_step=(?P<step>\d{1,12}))?|(?<![\w/.])\d{1,9}/(?P<plain>\d{1,12}),\s(?=Running|Samples))"
                r"|\[timer\.py:"
            ),
            (re.compile(rf"(?P<label>[A-Z][A-Za-z ]{{5,40}})=(?P<word>{FIGURE})"),),
            end=re.compile(r".*?Max *Mem[A-Za-z ]{3,40}=\s?[\d.]{1,20}\s?GB"),
        ),
        Form(re.compile(r"\bstep=(?P<reported>\d{1,12}), skipped=(?P<skipped>\d{1,12})\b"), ()),
        Form(
            re.compile(r"\bsteps?:\s{0,12}(?P<step>\d{1,12})(?:\s{0,12}/\s{0,12}\d{1,12})?\s{1,12}(?=loss:)"),
            (re.compile(rf"(?P<label>loss|iter time \(s\)|peak \w{{5,7}} \(MB\)):\s{{0,12}}(?P<word>{FIGURE})"),),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._config = DeepSpeedConfig(self.reading)
        self._collectives = Collectives(self.reading)
        self._usage = Peaks(self.reading, None)
        self._engine = EngineTimers()
        self._megatron = self._pipeline = self._hopeless = False
        self._reported = (0, 0)
        self._overflows = 0
        self._overflow_at: float | None = None
        self._batch: int | None = None
        self._asked_at = -1
        self._rates: dict[int, float] = {}

    def inside(self) -> bool:
        """Whether the user's JSON or the table of collectives goes on."""
        return self._config.open or self._collectives.open

    def spans(self, text: str) -> Spans:
        """The places of the figures that are kept, on a line that is one whole record."""
        spans = super().spans(text)
        return {name: span for name, span in spans.items() if name not in _UNUSED} if "step" in spans else spans

    def label(self, word: str) -> Label | None:
        """What a label means; a page that was copied may have put blanks into it."""
        return self.labels.get(word) or self.labels.get(_BLANKS.sub("", word))

    def complete(self, names: Iterable[str]) -> bool:
        """Whether it is a report, a throughput line, or a line of the pipeline engine."""
        fields = {known.field if (known := self.label(name)) else name for name in names}
        return not fields.isdisjoint(_ANY) or fields >= _PIPELINE

    def many(self, columns: RecordColumns) -> bool:
        """Take records; one by one where an overflow may be of the first, or where two lines name two steps."""
        if self._overflow_at is not None or ("reported" in columns and "step" in columns):
            pair = [columns.figures.get(name) for name in ("reported", "step")]
            if self._overflow_at is not None or pair[0] != pair[1]:
                return False
        return super().many(columns)

    def rows(self, rows: RecordRows) -> None:
        """Take records of a form, or of a report and a throughput line in turn."""
        self._config.close()
        self.taken += len(rows.lines)
        # Of a report and a throughput line the second has figures.
        rows.lines = rows.columns.ends
        self.keep_memory(rows)
        if reported := rows.counts.get("reported"):
            skips = rows.counts["skipped"]
            for step, skipped in zip(reported, skips, strict=True):
                before, self._reported = self._reported, (step, skipped)
                if before[0] < step and step - before[0] == skipped - before[1]:
                    self.reading.not_steady[step] = "skipped"
            if skipped := next((count for count in reversed(skips) if count), 0):
                self.reading.counters["skipped_steps"] = skipped
            self._put([step for step in reported if step], {})
        if "loss" in rows.figures:
            self._pipeline = True
            self.judge(rows)
            self._put(rows.steps, {name: rows.figures[name] for name in _PIPELINE & rows.figures.keys()})
        elif "samples_per_second" in rows.figures:
            self._throughput(rows)
        if self._overflow_at is not None:
            now = _seconds_of_day(rows.text)
            if now is not None and 0 <= now - self._overflow_at < _AT_ONCE:
                self.reading.not_steady.update(dict.fromkeys(rows.steps or reported or (), "skipped"))
            self._overflow_at = None

    def finish(self) -> Reading | None:
        """The reading; without steps where Megatron's own iteration lines tell them."""
        self._close(cut=True)
        self._config.close()
        self._config.settle()
        self.taken += self._config.records
        reading = super().finish()
        if reading is None:
            return None
        if self._rates and (batch := self._samples()):
            # The batch was stated below the steps.
            for step, rate in self._rates.items():
                if step in reading.steps:
                    reading.steps.add(step, {"step_seconds": batch / rate})
        self._engine.put(reading)
        reading.diverged = self._hopeless or reading.diverged
        if self._overflows:
            reading.counters["overflow_steps"] = self._overflows
        if self._megatron:
            reading.steps = Steps()
            reading.not_steady.clear()
        elif self._pipeline:
            reading.steps.interval = self._config.steps_per_print
        reading.not_steady = {step: why for step, why in reading.not_steady.items() if step in reading.steps}
        if self._overflows or reading.counters.get("skipped_steps"):
            reading.remark(
                "note", "steps were skipped for overflow: they are cheap, and running averages of samples/s hold them"
            )
        return reading

    def other(self, text: str, number: int) -> None:
        """Take a line of a block or a table, or one that says one thing."""
        if self._config.open:
            self._config.more(text)
        elif not (self._collectives.open and self._collectives.line(text)):
            if "time (ms) |" in text:
                self.taken += timers(text, self.reading)
                self._engine.take(text)
            elif "elapsed" in text and "iteration" in text:
                self._megatron, self.follows = True, False
            elif any(word in text for word in _OVERFLOW):
                self.taken += 1
                self._overflows += 1
                self._overflow_at = _seconds_of_day(text)
            elif "Comm. Op" in text:
                self.taken += 1
                self._collectives.open = True
            elif "already at minimum" in text:
                self.taken += 1
                self._hopeless = True
                self.reading.remark("note", "the loss scale reached its minimum: every step overflows", number)
            elif " latency:" in text or "Profile Summary" in text or " size:  " in text or "size per GPU:  " in text:
                step = profile(text, self.reading, number)
                if step is not None:
                    self.taken += 1
                    # The profile named after step N is of the step that runs next.
                    self.reading.not_steady.update(dict.fromkeys((step, step + 1), "profile"))
            elif "Max_MA" not in text and "mem_allocated:" not in text:
                self._config.line(text, number)
            self.taken += usage(text, number, self._usage)

    def _throughput(self, rows: RecordRows) -> None:
        rates, batch = rows.figures["samples_per_second"], self._samples()
        rows.steps = rows.steps or self._older(rows.counts.get("micro") or rows.counts.get("plain") or ())
        if not rows.steps:
            return
        known = [0 < rate < 1e15 for rate in rates]
        if batch is None and len(self._rates) < _MAX_RATES:
            waiting = [item for item, good in zip(zip(rows.steps, rates, strict=True), known, strict=True) if good]
            self._rates.update(waiting[: _MAX_RATES - len(self._rates)])
        seconds = [batch / rate if good else ABSENT for rate, good in zip(rates, known, strict=True)] if batch else []
        self._put(rows.steps, {"step_seconds": seconds} if batch else {})

    def _put(self, steps: Sequence[int], figures: dict[str, list[float]]) -> None:
        """Add to steps that another line printed, or that an attempt before a restart had."""
        known = self.reading.steps
        if steps and rising(steps, -1) and known.fresh(steps):
            known.extend(steps, figures)
            return
        for at, step in enumerate(steps):
            values = {name: column[at] for name, column in figures.items() if column[at] != ABSENT}
            known.add(step, values)

    def _samples(self) -> int | None:
        """Samples of a step; asked anew only where something was stated since."""
        if self._batch is None and len(self.reading.stated) != self._asked_at:
            self._asked_at = len(self.reading.stated)
            self._batch = batch_size(self.reading)
        return self._batch

    def _older(self, micros: Sequence[int]) -> list[int]:
        """The steps of lines that name micro steps alone, as before 2023; a report above names the step."""
        accumulation = self.reading.stated.get("batch.accumulation")
        if accumulation is None or accumulation.value <= 1:
            return list(micros)
        step = self._reported[0]
        return [step] if step and list(micros) == [step * accumulation.value] else []


def _seconds_of_day(text: str) -> float | None:
    match = _TIME.search(text)
    if match is None:
        return None
    hours, minutes, seconds, thousandths = (int(part) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + thousandths / 1000


READERS = (DeepSpeed,)
