"""MLPerf Training's records: settings, progress, evaluations and the end, with the time of each.

Source: mlcommons/logging (mllog/mllog.py, mllog/constants.py, compliance rules v3.1 to v6.1) and the callbacks of
submissions on NeMo, Megatron, MaxText and PyTorch. Counts and step times: `progress`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, ClassVar, Final

from receipts.ingest import record_reader as megatron_steady
from receipts.ingest.literals import number as figure
from receipts.ingest.megatron import NestedDump, configure_nemo
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.readers.mlperf.progress import BlockRecord, Blocks, Work
from receipts.readers.mlperf.records import (
    EVALUATED,
    NOTE,
    MllogRecord,
    MlperfSystem,
    describe,
    integer,
    keep_last,
    objects,
    record_of,
    state_launch,
    state_setting,
)
from receipts.receipt.accelerators import find_accelerator

_COUNTS: Final = ("samples_count", "step", "step_num", "epoch_num")
_SECONDS: Final = ("train_step_time", "train_step_timing in s", "train_step_timing", "step_time")
_LOSSES: Final = ("reduced_train_loss", "train_loss", "loss")
_LOSS: Final = ("train_loss", "loss")  # records of a loss alone
# Rules of GPT-3's benchmark count tokens where they say epochs, steps or samples.
_COUNTS_TOKENS: Final = "gpt3"
_LANGUAGE: Final = ("gpt", "llama", "mixtral", "deepseek")  # their accuracy is a loss
_MAX_RECORDS: Final = 3_000_000
_MAX_SEEN: Final = 500_000


class Mlperf(LineReader):
    """One reader for the records, the system description and, where NeMo printed it, the configuration."""

    source: ClassVar[str] = "mlperf"
    anchors: ClassVar[tuple[bytes, ...]] = (b":::MLLOG", b":::SYSJSON", b":::DLPAL", b"Experiment configuration *")

    def __init__(self) -> None:
        super().__init__()
        self._block = NestedDump()
        self._work = Work(None, None, by_tokens=False)
        self._blocks = Blocks()
        self._starts: set[int] = set()
        self._fresh = self._began = self._stopped = self._evaluates = False
        self._span: int | None = None
        self._first: int | None = None
        self._throughput: tuple[float, int] | None = None
        self._losses: list[tuple[int, str, float, bool, float]] = []
        self._before: BlockRecord | None = None
        self._times = [math.inf, -math.inf]
        self._seen: set[int] = set()

    def line(self, text: str, number: int) -> bool:
        """Take one line; True while a configuration dump goes on."""
        if ":::MLLOG" in text:
            # Where a record stood before, clock and all, a second handler wrote it, or another rank.
            printed = text[text.index(":::MLLOG") :].rstrip()
            digest = hash(printed)
            known = digest in self._seen and '"time_ms"' in printed
            if len(self._seen) < _MAX_SEEN:
                self._seen.add(digest)
            if known:
                return self._block.open
            for document in objects(text, ":::MLLOG"):
                if (record := record_of(document, number)) is not None:
                    self._record(record)
            return self._block.open
        if ":::SYSJSON" in text:
            for document in objects(text, ":::SYSJSON"):
                self.reading.records += 1
                describe(self.reading, document, number)
            return self._block.open
        if ":::DLPAL" in text:
            state_launch(self.reading, text, number)
            return self._block.open
        if "Experiment configuration *" in text:
            self._block.begin(text[: text.find("*")])
            return True
        return self._block.open and self._block.take(text, number)

    def finish(self) -> Reading | None:
        """The reading, or None where the file holds no record of MLPerf."""
        reading = self.reading
        if not reading.records:
            return None
        if self._block.values:
            # The rules' name of the optimizer is a family; the program's own says which it is.
            family = reading.stated.pop("numerics.optimizer", None)
            configure_nemo(reading, self._block)
            if family is not None:
                reading.stated.setdefault("numerics.optimizer", family)
        length = reading.stated.get("batch.sequence_length")
        self._work = self._work._replace(length=length.value if length else None)
        # Losses are numbered by the step at which they stand; a count of an unknown unit stays what it is.
        work, steps = self._work, reading.steps
        if not work.batch and self._losses:
            reading.remark("missing", "no global_batch_size: losses are numbered by their samples", 0)
        units = {name: self._blocks.unit(name, work) or 1 for name in {name for _, name, *_ in self._losses}}
        for count, name, loss, fresh, each in self._losses:
            step, seconds = count // units[name], each * units[name]
            values = {"loss": loss, "step_seconds": seconds if seconds > 0 and math.isfinite(seconds) else None}
            if work.batch:
                values["global_batch"] = float(work.batch)
            steps.put(step, values)
            if fresh:
                self._starts.add(step)
        gaps = {later - step for step, later in pairwise(steps.numbers())}
        if gaps:
            steps.interval = min(gaps)
        self._blocks.evaluates_inside = not self._evaluates
        reading.means = self._blocks.series(self._work)
        if self._throughput and self._work.batch and reading.means is None:
            rate, line = self._throughput
            text = f"throughput {rate:.9g} samples/s"
            reading.state("measurement.stated.step_seconds", self._work.batch / rate, text, line)
            reading.state("measurement.stated.statistic", "mean", text, line)
        if self._losses:
            reading.diverged = any(not math.isfinite(loss) for _, _, loss, *_ in self._losses)
        for path, at in zip(("run.started", "run.finished"), self._times, strict=True):
            if math.isfinite(at):
                text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                reading.state(path, text, f"time_ms {at * 1e3:.0f}")
        if self._began and not self._stopped:
            reading.remark("note", "run_start without run_stop: the log ends before the run does")
        megatron_steady.mark_not_steady(reading, self._starts)
        return reading

    def _record(self, record: MllogRecord) -> None:
        key = record.key
        self.reading.records += 1
        if math.isfinite(record.at):
            # A setting above ``run_start`` with a later clock was put there after the launch.
            first, last = self._times
            last = record.at if key == "run_start" and not self._began else max(last, record.at)
            self._times = [min(first, record.at), last]
        if key in (*_LOSS, "tracked_stats"):
            self._progress(record)
        elif key in ("run_start", "block_start", "eval_stop"):
            if key == "run_start":
                # A launch that was started again is its last attempt.
                self._fresh = self._began = True
                self._stopped = self.reading.ended = False
                self._throughput = None
                self._blocks.restart()
            counted = record.counted("samples_count", "first_epoch_num", *_COUNTS)
            span, begins = record.counted("epoch_count"), record.counted("first_epoch_num")
            self._span, self._first = (span[1] if span else None), (begins[1] if begins else None)
            if counted is None and key == "run_start":
                counted = "samples_count", 0
            marks = _marks(counted, record)
            self._before = self._blocks.begin(marks) if marks else None
        elif key in ("block_stop", "eval_start"):
            self._end(record)
        elif key == "eval_accuracy":
            self._evaluated(record)
        elif key == "run_stop":
            self._stopped = self.reading.ended = True
            status = record.metadata.get("status")
            if isinstance(status, str) and status != "success":
                self.reading.remark("note", f"run_stop says {status[:60]!r}: the target was not reached", record.line)
        else:
            state_setting(self.reading, key, record.value, record.line)
            if key == "global_batch_size":
                self._work = self._work._replace(batch=integer(record.value) or self._work.batch)
            elif key == "submission_benchmark":
                self._work = self._work._replace(by_tokens=str(record.value).startswith(_COUNTS_TOKENS))

    def _end(self, record: MllogRecord) -> None:
        self._evaluates |= record.key == "eval_start"
        counted, first = record.counted(*_COUNTS), record.counted("first_epoch_num")
        span = record.counted("epoch_count") or (self._span is not None and ("", self._span))
        if counted is None and first and span:
            # Some end a block by where it began, and some by where the next one begins.
            begun = self._first is None or first[1] <= self._first
            counted = "epoch_num", first[1] + span[1] * begun
        self._blocks.end(_marks(counted, record))
        self._before = None

    def _evaluated(self, record: MllogRecord) -> None:
        value, name = figure(record.value), self.reading.stated.get("model.name")
        if value is None or not math.isfinite(value):
            return
        counts = [counted for count in EVALUATED if (counted := record.counted(count)) is not None]
        self._blocks.evaluated.update(number for _, number in counts if number)
        for count, number in (("eval_accuracy", value), *counts):
            keep_last(self.reading, NOTE + count, number, f"{count} {number}", record.line)
        if name and str(name.value).startswith(_LANGUAGE):
            keep_last(self.reading, "measurement.loss.validation", value, f"eval_accuracy {value}", record.line)

    def _progress(self, record: MllogRecord) -> None:
        marks = _marks(record.counted(*_COUNTS), record)
        mark = marks[0] if marks else None
        stats: Mapping[str, Any] = record.value if isinstance(record.value, dict) else {}
        loss = figure(record.value) if record.key in _LOSS else None
        if record.key == "tracked_stats":
            loss = next((value for name in _LOSSES if (value := figure(stats.get(name))) is not None), None)
            seconds = next((value for name in _SECONDS if (value := _positive(stats.get(name)))), None)
            rate = _positive(stats.get("throughput"))
            if rate is not None and not (self._stopped and self._throughput):
                self._throughput = (rate, record.line)  # behind the end, a block that was cut short prints its own
            if mark is not None and (seconds or rate):
                self._blocks.timed(mark, seconds=seconds, rate=rate)
        if mark is None:
            return
        self._blocks.add(marks)
        if loss is None or len(self._losses) >= _MAX_RECORDS:
            return
        before, each = self._before, math.nan
        if before is not None and mark.name == before.name and mark.total > before.total:
            each = (mark.at - before.at) / (mark.total - before.total)
        self._losses.append((mark.total, mark.name, loss, self._fresh, each))
        self._fresh, self._before = False, mark


class MlperfPlatform(LineReader):
    """Reads the name of the platform: a constant of the submitter's code, which outlives the machine that it named."""

    source: ClassVar[str] = "mlperf-platform"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"submission_platform"',)

    def line(self, text: str, number: int) -> bool:
        """Take one line."""
        for document in objects(text, ":::MLLOG"):
            record = record_of(document, number)
            name = record.value if record is not None and record.key == "submission_platform" else None
            if isinstance(name, str) and find_accelerator(name) is not None:
                self.reading.records += 1
                self.reading.state("hardware.accelerator", name[:80], f"submission_platform {name[:80]}", number)
        return False


def _marks(counted: tuple[str, int] | None, record: MllogRecord) -> tuple[BlockRecord, ...]:
    """The mark of a record, and of the step beside its samples or epochs; the names that count epochs are one."""
    if counted is None:
        return ()
    mark = BlockRecord("epoch" if "epoch" in counted[0] else counted[0], counted[1], record.at)
    step = record.counted("step", "step_num") if mark.name in ("samples_count", "epoch") else None
    return (mark, BlockRecord(*step, record.at)) if step else (mark,)


def _positive(value: Any) -> float | None:
    number = figure(value)
    return number if number is not None and math.isfinite(number) and number > 0 else None


READERS = (Mlperf, MlperfPlatform, MlperfSystem)
