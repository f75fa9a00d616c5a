"""Logs of Megatron-LM and of what grew from it: Megatron-Bridge, Megatron-DeepSpeed and its forks.

One reader for all, because they share the iteration line, the arguments dump and the memory line, and only the whole
file shows which of them wrote it. Sources are named at each part; formats from v1.0 (2020) to core 0.20 (2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise, repeat
from math import nan
from typing import Final

from receipts.ingest import megatron, record_reader
from receipts.ingest.megatron import NestedDump
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Reading
from receipts.ingest.record import LineRecord, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import rising
from receipts.ingest.vocabulary import Label
from receipts.readers.megatron import bridge, iteration, startup
from receipts.readers.megatron.iteration import Divergence, Profiler
from receipts.readers.megatron.startup import DUMP_BEGIN, Dump

_STARTED: Final = re.compile(r"\[before the start of training step\]|^\W*training \.\.\.")
_ENDED: Final = ("[after training is done]", "exiting program")
_FLOPS: Final = re.compile(r"Effective Tera Flops per GPU: (\d{1,9}(?:\.\d{1,6})?)")
# Its own check ends the run before such an iteration is printed; the words alone may be its source. Sources:
# `loss_func` and `check_for_nan_in_grad`; `validate_result` of core 0.10 on.
_CHECKED: Final = re.compile(
    r"(?:\bRank \d{1,7}: |\bUnexpected result [^'\n]{1,120}\(message=')(found (?:NaN|Inf) in local [^.')]{1,80})"
)
_RATE: Final = "tflops_per_second_per_chip"
# The host as lanes name it: the lines were printed by its own training loop.
_HOSTS: Final = {
    "megatron": "megatron-lm",
    "megatron-bridge": "megatron-bridge",
    "megatron-deepspeed": "megatron-deepspeed",
}
# A record's date is right before it.
_NEAR: Final = 200
_MAX_REMARKED: Final = 10
_MIN_SKIPPED: Final = 10  # records that all skip: no loss scale takes so long to find its place
_MAX_KEPT: Final = 300_000


class Megatron(RecordReader, table="megatron"):
    """Iteration records, arguments, memory, and what they show of the run: divergence, warm-up, stalls."""

    rank = iteration.RANK
    forms = (iteration.ITERATION, iteration.STEP_TIME, iteration.MEMORY)
    goes_back_at_start = True
    # `steady` marks them, by the times too.
    finds_firsts = False
    prefix = 60

    def __init__(self) -> None:
        super().__init__()
        # Steps that updated nothing.
        self._skipped: set[int] = set()
        self._samples: tuple[int, float] | None = None
        self._dump = Dump()
        self._block = NestedDump()
        self._times = bridge.StepTimes()
        self._profiler = Profiler()
        self._divergence = Divergence(self.reading)
        self._launch = startup.Launch()
        self._last: int | None = None
        self._carrying: set[int] = set()
        self._lengths: dict[int, int] = {}
        self._bridge = self._world = self._deepspeed = False
        self._undated_depths = self._reinforcement = self._micro_dates = False

    def line(self, text: str, number: int) -> bool:
        """Take one line, of which a record may be only a part."""
        more = super().line(text, number)
        head = iteration.ITERATION.head.search(text) if "iteration" in text else None
        if head is not None:
            self._small(text[head.start() :], number)
        return more

    def spans(self, text: str) -> Spans:
        """The places of the figures of one whole record, or of one step time; memory has to be read."""
        return {} if "memory (" in text else super().spans(text)

    def label(self, word: str) -> Label | None:
        """What a label means, in any spelling."""
        return iteration.label_of(word) or iteration.label(word)

    def complete(self, names: Iterable[str]) -> bool:
        """Whether a record has a time, or two figures; a line of memory has a head of its own."""
        fields = [known.field for name in names if (known := self.label(name)) is not None]
        return "step_seconds" in fields or len(fields) > 1 or "first_rank_seconds" in fields or "iterations" in names

    def find(self, text: str) -> list[LineRecord]:
        """The records on a line; a last cell that was cut has no figure."""
        records = super().find(text)
        for record in records:
            end = len(text[: record.stop].rstrip())
            cut = [name for name, span in record.spans.items() if span[1] == end and "step" in record.spans]
            for name in cut:
                if not iteration.closed(name, text[slice(*record.spans[name])]):
                    del record.spans[name]
        return records

    def inside(self) -> bool:
        """Whether a dump of arguments or a configuration goes on."""
        return self._dump.open or self._block.open

    def rows(self, rows: RecordRows) -> None:
        """Take iterations, step times, both in turn, or one rank's memory."""
        if "iterations" in rows.counts:
            start = [head.start() for head in iteration.MEMORY.head.finditer(rows.text)][-1]
            self._bridge |= iteration.memory_rows(self.reading, rows.text[start:], rows.lines[0])
            return
        times, rates = (rows.figures.pop(name, None) for name in ("first_rank_seconds", "first_rank_rate"))
        self._bridge |= times is not None
        if times and next(iter(rows.columns.names)) == iteration.FIRST_RANK:
            # The iteration is on the second line of each pair.
            rows.lines = rows.columns.ends
        pairs = list(zip(times, rates or repeat(nan), strict=False)) if times else None
        if not rows.steps:
            for seconds, rate in pairs or ():
                self._times.give(self.reading, seconds, rate)
        elif len(rows.steps) > 1 and not rising(rows.steps, -1 if self._last is None else self._last):
            for at, row in enumerate(rows):
                self._iterations(row, pairs[at : at + 1] if pairs else None)
        else:
            self._iterations(rows, pairs)

    def _iterations(self, rows: RecordRows, times: list[tuple[float, float]] | None) -> None:
        """Take iterations whose numbers rise."""
        self._look(rows)
        figures, steps = rows.figures, rows.steps
        skipped, nans = figures.pop("skipped", None), figures.pop("nans", [])
        for length, number in zip(figures.pop("sequence_length", ()), rows.lines, strict=False):
            if 0 < length < 1e12 and len(self._lengths) < 100:
                self._lengths.setdefault(int(length), number)
        if -1.0 in figures.pop("loss_scale", ()) and 0.0 in figures.get("grad_norm", ()):
            # DeepSpeed's engine keeps both to itself, and the fork prints these in their place.
            del figures["grad_norm"]
            self._deepspeed = True
        if skipped is not None and len(self._skipped) < _MAX_KEPT:
            befores = [steps[0] - 1 if self._last is None else self._last, *steps[:-1]]
            for step, before, count in zip(steps, befores, skipped, strict=False):
                if count >= max(1, step - before):
                    self._skipped.add(step)
        consumed = figures.pop("consumed", None)
        if consumed is not None and "global_batch" in figures:
            # The batch of each iteration: what the samples that a run has consumed make, else what is printed.
            ran = []
            for step, samples, batch in zip(steps, consumed, figures["global_batch"], strict=True):
                known = self._samples if self._samples is not None and step > self._samples[0] else None
                at, count = known or ((0, 0.0) if step == 1 else (step, samples))
                each = (samples - count) / max(1, step - at)
                ran.append(each if each >= 1 and each == int(each) else batch)
                self._samples = (step, samples)
            figures["global_batch"] = ran
        # Note the first record after a start, and the one that still carries it.
        for step in steps[:2]:
            last, self._last = self._last, step
            if step == last:
                continue
            if self.fresh or step <= 1 or (last is not None and step < last):
                self.starts.add(step)
                self.fresh = False
            elif self._micro_dates and last in self.starts:
                # From core 0.16 on, which dates to the microsecond, the first record does not reset the clock.
                self._carrying.add(step)
        if _RATE not in figures or min(figures[_RATE]) <= 0:
            figures[_RATE] = self._times.of_rows(self.reading, rows, times)
        self._divergence.take(rows, skipped, nans)
        if self._profiler.active and len(self.reading.not_steady) < _MAX_KEPT:
            self.reading.not_steady.update(dict.fromkeys(steps, "profile"))
        self._last = steps[-1]
        self.put(rows)

    def _look(self, rows: RecordRows) -> None:
        """What the words of a record show of the program that printed it."""
        head = iteration.ITERATION.head.search(rows.text)
        at = head.start() if head else 0
        before, record = rows.text[max(0, at - _NEAR) : at], rows.text[at:]
        self._deepspeed = self._deepspeed or iteration.DEEPSPEED.search(record) is not None
        self._reinforcement = self._reinforcement or iteration.REINFORCEMENT.search(record) is not None
        if "hip mem usage" in record:
            self.reading.see("runtime", "rocm", "backend", rows.lines[0])
        date = iteration.DATE.search(before)
        self._micro_dates |= bool(date and date[2])
        if iteration.DEPTHS.search(record) and iteration.LONG_RATE.search(record):
            # The program's own date is in brackets; a collector's does not.
            _, bracket, inside = before.rpartition("[")
            self._undated_depths |= not (bracket and iteration.CLOCK.search(inside))

    def finish(self) -> Reading | None:
        """The reading, its source named by the dialect that the whole file shows."""
        super().finish()
        reading = self.reading
        if not self.taken and len(self._times):
            self._times.alone(reading)
            self.starts.add(1)
        stated = self._dump.values or self._block.values or self._world
        if not (reading.steps or reading.memory or stated or self._divergence.checked):
            return None
        reading.records = max(1, len(reading.steps) + reading.steps.restarts)
        if self._samples and len(numbers := reading.steps.numbers()) > 1 and numbers[0] > 1:
            # What a log's first record began with is printed nowhere: it ran as the next one.
            reading.steps.add(numbers[0], {"global_batch": reading.steps.get(numbers[1], "global_batch")})
        reading.source = self._dialect()
        if self.taken or len(self._times):
            reading.see("framework", _HOSTS[reading.source], "backend")
        if self._dump.values:
            megatron.state_arguments(reading, self._dump.values)
        if self._block.values:
            bridge.configure(reading, self._block)
        self._launch.state(reading)
        if len(self._lengths) == 1 and "batch.sequence_length" not in reading.stated:
            length, number = next(iter(self._lengths.items()))
            reading.state("batch.sequence_length", length, f"actual seqlen: {length}", number)
        version = reading.stated.get("wheels.megatron-core")
        reading.version = None if version is None else str(version.value)
        interval = self._dump.values.get("log_interval", ("", 0))[0]
        self._divergence.judge(interval, reinforced=self._reinforcement)
        numbers = reading.steps.numbers()
        if len(numbers) > 1 and numbers[0] == numbers[1] - numbers[0]:
            # The first record averages over everything since the start.
            self.starts.add(numbers[0])
        gaps = {later - step for step, later in pairwise(numbers)}
        gaps |= {int(interval)} if interval.isdigit() and len(interval) < 10 else set()
        reading.steps.interval = gaps.pop() if len(gaps) == 1 else None
        arguments = {name: value for name, (value, _) in self._dump.values.items()}
        for step in self._profiler.steps(arguments, numbers):
            reading.not_steady[step] = "profile"
        record_reader.mark_not_steady(reading, self.starts, self._carrying)
        if len(self._skipped) < len(reading.steps) or len(self._skipped) >= _MIN_SKIPPED:
            # Of a few records that all skip, as a loss scale finds its place, nothing is known.
            reading.not_steady |= dict.fromkeys(sorted(self._skipped), "skipped")
        return reading

    def judge(self, rows: RecordRows) -> None:
        """Left to `Divergence`, which knows of skipped iterations."""

    def other(self, text: str, number: int) -> None:
        """Take a line of a dump, the beginning of one, or a line that says one thing."""
        if self._dump.open:
            self._dump.take(text, number)
            return
        if self._block.open:
            self._block.take(text, number)
            return
        if "arguments -" in text and DUMP_BEGIN.search(text):
            self._dump.begin()
        for marker in ("Configuration Summary (Non-Default", "_target_: megatron.bridge"):
            if marker in text and not self._block.open:
                self._bridge = True
                self._block.begin(text[: text.find(marker)])
        self._small(text, number)

    def _small(self, text: str, number: int) -> None:
        """Lines that say one thing."""
        reading = self.reading
        startup.STATEMENTS.take(reading, text, number)
        self._world |= "using world size:" in text
        if "parallelism:" in text and "egatron" in text:
            startup.degrees(reading, text, number)
        if "Theoretical memory" in text:
            iteration.state_footprints(reading, text)
        if "Falling back to Torch" in text and len(reading.remarks) < _MAX_REMARKED:
            reading.remark("note", text.strip()[-200:], number)
        if " in local " in text and (match := _CHECKED.search(text)):
            self._divergence.check(match[1].strip(), number)
        if "ActivityProfilerController" in text:
            self._profiler.take(text)
        self._launch.take(text, number)
        self.fresh |= _STARTED.search(text) is not None
        reading.ended |= "SIGTERM" not in text and any(words in text for words in _ENDED)
        match = _FLOPS.search(text)
        if match and self._last is not None and float(match[1]) > 0:
            self._deepspeed = True
            reading.steps.add(self._last, {_RATE: float(match[1])})

    # What the whole file shows.

    def _dialect(self) -> str:
        if self._bridge:
            return "megatron-bridge"
        if self._deepspeed or self._dump.values.get("deepspeed", ("", 0))[0] == "True":
            return "megatron-deepspeed"
        # Both date every record since the learning rate has six decimals. Of those that were quoted without their date
        # Bridge's documentation has the losses of several depths, and most others are of Megatron-LM.
        undated = self._undated_depths and not (self._dump.values or self.reading.memory)
        return "megatron-bridge" if undated else "megatron"


READERS = (Megatron,)
