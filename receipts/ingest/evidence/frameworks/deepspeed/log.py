"""DeepSpeed's log: steps, the throughput timer, the pipeline engine, overflow, memory, timers.

Sources: `deepspeed/utils/timer.py`, `runtime/engine.py`, `runtime/pipe/engine.py`, `runtime/utils.py`
(`see_memory_usage`), 0.1 (2020) to 0.19 (2026). Samples are of the global batch, ``GB`` is 2**30 bytes, and
``RunningAvgSamplesPerSec`` (``SamplesPerSec`` of 2020) runs since step 2 with every cheap, skipped step in it: it is no
step's rate. Under Megatron-DeepSpeed the steps are Megatron's, and this reading claims none.
"""

from __future__ import annotations

import re
from array import array
from typing import ClassVar

from receipts.ingest.evidence.frameworks.deepspeed.configuration import DeepSpeedConfig, batch_size
from receipts.ingest.evidence.frameworks.deepspeed.memory import DeepSpeedMemory
from receipts.ingest.evidence.frameworks.deepspeed.reports import Collectives, engine_step, profile, timers
from receipts.ingest.evidence.frameworks.deepspeed.wrapped import Wrapped
from receipts.ingest.evidence.literal import balanced
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.rows import rising
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT, MAX_STEPS, Steps

_PROGRESS = re.compile(r"\bstep=(\d{1,12}), skipped=(\d{1,12})\b")
_COUNTERS = re.compile(r"(?:epoch=)?\d+/(?:micro_step=)?(\d{1,12})(?:/global_step=(\d{1,12}))?,")
_CELL = re.compile(
    r"(RunningAvgSamplesPerSec|CurrSamplesPerSec|SamplesPerSec|MaxMemAllocated|MemAllocated)=([^,\s\"'`]{1,40})"
)
_PIPELINE = re.compile(r"\bsteps?:\s*(\d{1,12})(?:\s*/\s*\d+)?\s+loss:\s*(\S{1,30})")
_SECONDS = re.compile(r"iter time \(s\):\s*(\S{1,30})")
_PEAKS = re.compile(r"peak (alloc|reverse|reserve) \(MB\):\s*([\d.]{1,20})")
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d):(\d\d):(\d\d)[,.](\d{3})")
_JSON = re.compile(r"(?:print_user_config\].*|:print\]\s+)json = (\{.*)$")
# Where a record begins; one that was glued behind another is read as one that has a line of its own.
_BEGIN = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \[[A-Z]|(?<!\w)steps: \d{1,12} loss: ")
_RECORDS = ("SamplesPerSec=", "skipped=", "iter time (s):")
_TIMER = ("CurrSamplesPerSec", "MemAllocated", "MaxMemAllocated")
_OVERFLOW = ("OVERFLOW! Rank", "loss scale overflow! Rank", "Overflow detected. Skipping step")
_AT_ONCE = 0.02
_MAX_BLOCK = 2000
# Rates that wait for the batch to be stated: those of a page, or of the beginning of a log.
_MAX_RATES = 1000


class DeepSpeed(LineReader):
    """Reads DeepSpeed's own lines, in its logs and in those of programs that run on it."""

    source: ClassVar[str] = "deepspeed"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"skipped=",
        b"SamplesPerSec=",
        b"iter time (s):",
        b"time (ms) |",
        b"OVERFLOW! Rank",
        b"loss scale overflow! Rank",
        b"Overflow detected. Skipping step",
        b"[timer.py:",
        b"Max_MA ",
        b"max_mem_allocated: ",
        b":print] ",
        b"json = {",
        b'"train_batch_size"',
        b'"train_micro_batch_size_per_gpu"',
        b"'train_micro_batch_size_per_gpu'",
        b"DeepSpeed info: version=",
        b"DeepSpeed Basic Optimizer",
        b"dist_world_size=",
        b", local_rank=",
        b" latency:  ",
        b"Profile Summary at step",
        b"world size:  ",
        b"data parallel size:  ",
        b"batch size per GPU:  ",
        b"Comm. Op  ",
        b"already at minimum - cannot decrease scale",
    )
    companions: ClassVar[tuple[bytes, ...]] = (b"elapsed time per iteration", b"elapsed_time_per_iteration_ms=")

    def __init__(self) -> None:
        super().__init__()
        self._config = DeepSpeedConfig(self.reading)
        self._collectives = Collectives(self.reading)
        self._records = 0
        self._megatron = False
        self._block: list[str] = []
        self._block_line = self._depth = 0
        self._in_table = False
        self._reported: tuple[int, int] | None = (0, 0)
        self._overflows = 0
        self._overflow_at: float | None = None
        self._pipeline = False
        self._memory = DeepSpeedMemory()
        self._batch: int | None = None
        self._asked_at = -1
        self._rates: dict[int, float] = {}
        self._timer = Wrapped()
        self._engine = array("d")
        self._engine_rank = 0

    def line(self, text: str, number: int) -> bool:
        """Take one line; True within the user's JSON, the table of collectives and a folded throughput line."""
        if self._timer.text:
            if self._timer.takes(text):
                return self._timer.more or self._record(*self._timer.take())
            self._record(*self._timer.take())
        if "[timer.py:" in text and self._timer.opens(text, number):
            return True
        if self._block:
            return self._continue_block(text)
        if self._in_table:
            self._in_table = self._collectives.line(text)
            if self._in_table:
                return True
        more = False
        for record in _parts(text):
            more = self._record(record, number)
        return more

    def _record(self, text: str, number: int) -> bool:
        if "SamplesPerSec=" in text:
            self._throughput(text, number)
        elif "skipped=" in text and (match := _PROGRESS.search(text)):
            self._progress(int(match[1]), int(match[2]), text)
        elif "iter time (s):" in text:
            self._pipe(text)
        elif "time (ms) |" in text:
            self._records += timers(text, self.reading)
            self._timed(text)
            if "mem_allocated:" in text:
                self._records += self._memory.usage(text, number)
        elif "elapsed" in text and "iteration" in text:
            self._megatron, self.follows = True, False
        else:
            return self._other(text, number)
        return False

    def spans(self, text: str) -> Spans:
        """Step, rate and memory of the throughput timer where it names the step, or a report's step and skips."""
        if len(_parts(text)) > 1:
            return {}
        progress = list(_PROGRESS.finditer(text))
        if "SamplesPerSec=" not in text:
            return {"reported": progress[0].span(1), "skipped": progress[0].span(2)} if len(progress) == 1 else {}
        match = _COUNTERS.search(text)
        cells = list(_CELL.finditer(text))
        if match is None or match[2] is None or len(cells) != 4 or len({cell[1] for cell in cells}) != 4:
            return {}
        return {"step": match.span(2), **{cell[1]: cell.span(2) for cell in cells if cell[1] in _TIMER}}

    def many(self, columns: Columns) -> bool:
        """Take steps as they are reported, timed, or both in turn; none of them the first one, and none skipped."""
        try:
            steps = columns.whole("step" if "step" in columns else "reported")
            reported = columns.whole("reported") if "reported" in columns else []
            rates = columns.floats("CurrSamplesPerSec") if "step" in columns else []
        except ValueError:
            return False
        known = self.reading.steps
        # After a restart the steps are known, and a line adds to them.
        again = steps[0] in known
        if steps[0] <= 1 or not rising(steps, -1) or not (again or known.fresh(steps)):
            return False
        if again and not all(step in known for step in steps):
            return False
        if reported and (reported != steps or not self._unskipped(columns)):
            return False
        if reported:
            self._records += len(steps)
            self._reported = steps[-1], int(columns.words("skipped")[-1])
        if rates:
            self._records += len(steps)
            self._timer_rows(columns)
        self._put(steps, rates, again=again)
        return True

    def _put(self, steps: list[int], rates: list[float], *, again: bool) -> None:
        batch = self._samples() if rates else None
        seconds = [batch / rate if 0 < rate < 1e15 else ABSENT for rate in rates] if batch else []
        if not again:
            self.reading.steps.extend(steps, {"step_seconds": seconds} if seconds else {})
            return
        for step, time in zip(steps, seconds, strict=False):
            self.reading.steps.add(step, {"step_seconds": None if time == ABSENT else time})

    def _unskipped(self, columns: Columns) -> bool:
        """Whether reports count no more skipped steps than the last one did."""
        skipped = set(columns.words("skipped"))
        last = self._reported
        return self._overflow_at is None and last is not None and skipped == {str(last[1]).encode()}

    def _timer_rows(self, columns: Columns) -> None:
        last: tuple[bytes, bytes] | None = None
        memory = zip(columns.words("MemAllocated"), columns.words("MaxMemAllocated"), strict=True)
        for line, words in zip(columns.ends, memory, strict=True):
            if words != last:
                last = words
                self._memory.timer(words[0].decode(), words[1].decode(), line)

    def finish(self) -> Reading | None:
        """The reading; without steps where Megatron's own iteration lines tell them."""
        if self._timer.text:
            self._record(*self._timer.take())
        reading = self.reading
        reading.records = self._records + self._config.records
        if not reading.records:
            return None
        self._memory.rows(reading)
        if self._rates and (batch := self._samples()):
            # The batch was stated below the steps.
            for step, rate in self._rates.items():
                if step in reading.steps:
                    reading.steps.add(step, {"step_seconds": batch / rate})
        self._engine_steps()
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

    def _timed(self, text: str) -> None:
        """Keep a step of the engine's timers, of the first rank that prints them."""
        found = engine_step(text)
        if found is not None and found[0] == (self._engine_rank if self._engine else found[0]):
            self._engine_rank = found[0]
            if len(self._engine) < MAX_STEPS:
                self._engine.append(found[1])

    def _engine_steps(self) -> None:
        """Steps by the engine's timers, one line each, where no line tells the time of a step by its number."""
        steps = self.reading.steps
        numbers = steps.numbers()
        timed = any(value is not None for value in steps.column("step_seconds"))
        if not self._engine or timed or (numbers and numbers[-1] != len(self._engine)):
            return
        for step, seconds in enumerate(self._engine, 1):
            (steps.add if step in steps else steps.put)(step, {"step_seconds": seconds})
        self.reading.not_steady.setdefault(1, "warmup")
        timer = "DeepSpeed timers: forward, backward, update"
        self.reading.state("measurement.timer", timer)

    def _progress(self, step: int, skipped: int, text: str) -> None:
        self._records += 1
        before, self._reported = self._reported, (step, skipped)
        if skipped:
            self.reading.counters["skipped_steps"] = skipped
        reading = self.reading
        if step == 0:
            return
        if step not in reading.steps:
            reading.steps.put(step, {})
        all_skipped = before is not None and before[0] < step and step - before[0] == skipped - before[1]
        if all_skipped or self._overflowed_now(text):
            reading.not_steady[step] = "skipped"
        self._overflow_at = None

    def _overflowed_now(self, text: str) -> bool:
        """Whether the last overflow was told in the same moment as this line, and so was of this very step."""
        now = _seconds_of_day(text)
        return self._overflow_at is not None and now is not None and 0 <= now - self._overflow_at < _AT_ONCE

    def _throughput(self, text: str, line: int) -> None:
        match = _COUNTERS.search(text)
        cells = dict(_CELL.findall(text))
        if len(cells) < 4:
            # A page that was copied may have put blanks into the labels.
            compact = text.replace(" ", "")
            match, cells = _COUNTERS.search(compact), dict(_CELL.findall(compact))
        if not cells:
            return
        self._records += 1
        self._memory.timer(cells.get("MemAllocated"), cells.get("MaxMemAllocated"), line)
        rate = number(cells.get("CurrSamplesPerSec", ""))
        if match is None or rate is None:
            return
        step = self._step(int(match[1]), int(match[2]) if match[2] else None)
        if step is None:
            return
        batch = self._samples()
        seconds = batch / rate if batch and 0 < rate < 1e15 else None
        if batch is None and 0 < rate < 1e15 and len(self._rates) < _MAX_RATES:
            self._rates[step] = rate
        if step in self.reading.steps:
            self.reading.steps.add(step, {"step_seconds": seconds})
        else:
            self.reading.steps.put(step, {"step_seconds": seconds})
        if step == 1:
            self.reading.not_steady.setdefault(step, "warmup")
        if self._overflowed_now(text):
            self.reading.not_steady[step], self._overflow_at = "skipped", None

    def _samples(self) -> int | None:
        """Samples of a step; asked anew only where something was stated since."""
        if self._batch is None and len(self.reading.stated) != self._asked_at:
            self._asked_at = len(self.reading.stated)
            self._batch = batch_size(self.reading)
        return self._batch

    def _step(self, micro: int, step: int | None) -> int | None:
        """The global step of a throughput line; before 2023 it names micro steps only, and the step stands above."""
        if step is not None:
            return step
        told = self._reported[0] if self._reported else 0
        accumulation = self.reading.stated.get("batch.accumulation")
        if accumulation is not None and accumulation.value > 1:
            return told if told and micro == told * accumulation.value else None
        return micro

    def _pipe(self, text: str) -> None:
        match, seconds = _PIPELINE.search(text), _SECONDS.search(text)
        if match is None or seconds is None:
            return
        self._records += 1
        self._pipeline = True
        step, loss = int(match[1]), number(match[2])
        self.reading.steps.put(step, {"loss": loss, "step_seconds": number(seconds[1])})
        if step == 1:
            self.reading.not_steady[step] = "warmup"
        if loss is not None:
            self.reading.diverged = bool(self.reading.diverged) or loss - loss != 0
        for kind, size in _PEAKS.findall(text):
            value = number(size)
            name = "peak_bytes" if kind == "alloc" else "peak_reserved_bytes"
            if value is not None and value < 1e9:
                self._memory.peak(name, round(value * (1 << 20)))

    def _other(self, text: str, line: int) -> bool:
        if any(word in text for word in _OVERFLOW):
            self._records += 1
            self._overflows += 1
            self._overflow_at = _seconds_of_day(text)
        elif "Max_MA" in text or "max_mem_allocated" in text:
            self._records += self._memory.usage(text, line)
        elif match := _JSON.search(text):
            return self._open_block(match[1], line)
        elif "Comm. Op" in text:
            self._records += 1
            self._in_table = True
            return True
        elif "already at minimum" in text:
            self._records += 1
            self.reading.diverged = True
            self.reading.remark("note", "the loss scale reached its minimum: every step overflows", line)
        elif " latency:" in text or "Profile Summary" in text or " size:  " in text or "size per GPU:  " in text:
            step = profile(text, self.reading, line)
            if step is not None:
                self._records += 1
                # The profile named after step N is of the step that runs next.
                self.reading.not_steady.update(dict.fromkeys((step, step + 1), "profile"))
        else:
            self._config.line(text, line)
        return False

    def _open_block(self, text: str, line: int) -> bool:
        self._depth = balanced(text)
        if self._depth <= 0:
            self._config.document(text, line)
            return False
        self._block, self._block_line = [text], line
        return True

    def _continue_block(self, text: str) -> bool:
        text = re.sub(r"^\s*[\w.-]{1,60}:\s(?=\s*[\"}\]])", "", text)
        self._block.append(text)
        self._depth += balanced(text)
        if self._depth > 0 and len(self._block) < _MAX_BLOCK and not text.startswith("["):
            return True
        lines, self._block = self._block, []
        self._config.document("\n".join(lines), self._block_line)
        return False


def _parts(text: str) -> list[str]:
    """The records of a line, of which the first one keeps what stands before it."""
    starts = [match.start() for match in _BEGIN.finditer(text)]
    if starts and not any(word in text[: starts[0]] for word in _RECORDS):
        del starts[0]
    return [text[start:stop] for start, stop in zip([0, *starts], [*starts, None], strict=True)]


def _seconds_of_day(text: str) -> float | None:
    match = _TIME.search(text)
    if match is None:
        return None
    hours, minutes, seconds, thousandths = (int(part) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + thousandths / 1000


READERS = (DeepSpeed,)
