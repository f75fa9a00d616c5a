"""modded-nanogpt's logs: cumulative training time, one line a step, behind a copy of the source and nvidia-smi's table.

Source: the records of KellerJordan/modded-nanogpt (2024 to 2026). ``train_time`` is cumulative, without validation; a
step's time is the difference of two lines of consecutive steps. The host runs ahead of the device after every
synchronization, so the first lines behind one are dispatch times. Before 2025 the clock was set to zero after ten
steps.

The program that a log begins with: scripts that read their own file and print it are known by its digest.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from operator import ne, sub
from statistics import median
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Statements
from receipts.ingest.literals import FIGURE, number
from receipts.ingest.reader import LineReader, Spans
from receipts.ingest.reading import IntervalMeans, MemoryRow, Place, Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT

_RULE: Final = "=" * 40  # what the scripts print behind the program
MAX_LINES: Final = 50_000


class PrintedProgram(LineReader):
    """States the digest of the lines from the one that reads the program's own file up to the rule behind it."""

    source: ClassVar[str] = "printed-program"
    anchors: ClassVar[tuple[bytes, ...]] = (b"code = f.read()",)

    def __init__(self) -> None:
        super().__init__()
        self._digest = hashlib.sha256()
        self._begun = self._lines = 0

    def line(self, text: str, number: int) -> bool:
        """Take a line of the program; False behind its end."""
        if self.reading.records or self._lines >= MAX_LINES:
            return False
        self._begun = self._begun or number
        if text.startswith(_RULE):
            self.reading.records = self._lines
            digest = self._digest.hexdigest()
            self.reading.state(
                "code.imported_digest", digest, f"the program as printed, {self._lines:,} lines", self._begun
            )
            return False
        self._digest.update(text.encode("utf-8", "replace") + b"\n")
        self._lines += 1
        return True


_AVERAGE = re.compile(r"step_avg:\s*(?:nan|inf)")
_PEAK = re.compile(
    r"peak memory (?:allocated|consumption): (\d{1,12}) MiB(?:,? ?(?:peak memory )?reserved: (\d{1,12}) MiB)?"
)
_GPU = re.compile(r"\|\s{1,8}(\d{1,3})\s{1,8}((?:NVIDIA|AMD) \S.{0,40}?)\s{2,}(?:On|Off|N/A)\s")
_STATEMENTS: Final = Statements("modded_nanogpt")
_DEVICE = re.compile(r"Running on device_name=(\S.{1,60}?) with world_size=(\d{1,6})(?!\w)")
_SETTING = re.compile(r"(?<!\w)(world_size|grad_accum_steps|train_batch_tokens|train_seq_len):(\d{1,12})(?!\S)")
_PATHS: Final = vocabulary.table("modded_nanogpt")["configuration"]
_UNTIMED: Final = 10
_AHEAD: Final = 5
_WINDOW: Final = 12
_MAX_GPUS: Final = 64
_MAX_SYNCED: Final = 10_000


class ModdedNanogpt(RecordReader, table="modded_nanogpt"):
    """Reads modded-nanogpt's step lines and what is at its head and foot."""

    needs = frozenset({"clock"})
    forms = (
        Form(
            re.compile(r"(?<!_)step:(?P<step>\d{1,12})/\d{1,12} "),
            (
                re.compile(
                    r"(?<![a-z_])(?P<label>train_loss|val_loss|train_time|tok(?:ens)?_(?:s|per_sec)):\s*"
                    rf"(?P<word>{FIGURE})(?P<unit>(?:ms|s)(?=\b|step:))?"
                ),
            ),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[int, float] = (-2, 0.0)
        self._taken: tuple[int, float] | None = None
        self._reset = 0
        self._total = 0.0
        self._synced: list[int] = []
        self._clock: dict[int, float] = {}
        self._device: tuple[str, int, int] | None = None
        self._gpus: dict[int, tuple[str, int]] = {}
        self._memory: MemoryRow | None = None
        self._settings: dict[str, tuple[int, int]] = {}

    def line(self, text: str, number: int) -> bool:
        """Take one line, and what is glued behind a record; none needs the next."""
        super().line(text, number)
        if match := _PEAK.search(text):
            reserved = int(match[2]) << 20 if match[2] else None
            self._memory = MemoryRow(
                Place(number), phase="steady", peak_bytes=int(match[1]) << 20, peak_reserved_bytes=reserved
            )
        elif "world_size:" in text or "train_batch_tokens:" in text:
            for name, word in _SETTING.findall(text):
                self._settings[name] = (int(word), number)
        elif match := _GPU.search(text):
            if len(self._gpus) < _MAX_GPUS:
                self._gpus.setdefault(int(match[1]), (match[2], number))
        elif match := _DEVICE.search(text):
            self._device = match[1], int(match[2]), number
        else:
            _STATEMENTS.take(self.reading, text, number)
        return False

    def spans(self, text: str) -> Spans:
        """The places of a record's figures, on a line with nothing else."""
        return {} if "peak " in text else super().spans(text)

    def rows(self, rows: RecordRows) -> None:
        """Take records: a step's time is the difference to the record before it."""
        clock = rows.figures.pop("clock")
        validation = rows.figures.pop("validation", None)
        if "loss" not in rows.figures and (validation is not None or "val_bpb:" in rows.text):
            words = rows.columns.words("val_loss") if validation else [b""] * len(clock)
            for step, seconds, word, line in zip(rows.steps, clock, words, rows.lines, strict=True):
                if (loss := number(word.decode())) is not None:
                    self.validated(loss, f"step:{step} val_loss:{word.decode()}", line)
                    self._total = seconds
                if len(self._synced) < _MAX_SYNCED:
                    self._synced.append(step + 1)
                    self._clock[step] = seconds
                if self._last[0] < step or seconds < self._last[1]:
                    # The line of the step itself was left out: the clock stood still from here on. Or a run begins
                    # anew.
                    self._last = (step, seconds)
            rows.figures["loss"] = validation or []
            self.judge(rows)
            self.taken += len(rows.steps)
            return
        # The same record once more is another rank's, or of a console beside a file.
        pairs = list(zip(rows.steps, clock, strict=True))
        kept = list(map(ne, pairs, [self._taken, *pairs]))
        rows.figures["clock"] = clock
        rows.keep(kept)
        clock = rows.figures.pop("clock")
        if not rows.steps:
            return
        gone = list(map(sub, rows.steps, [self._last[0], *rows.steps]))
        spent = list(map(sub, clock, [self._last[1], *clock]))
        if min(spent) < 0:
            # The clock went back: what came before it was warm-up that the program itself does not count.
            backs = (step for step, on, time in zip(rows.steps, gone, spent, strict=True) if time < 0 < on)
            self._reset = max(self._reset, *backs, 0)
        rows.figures["step_seconds"] = [
            time if count == 1 and time > 0 else ABSENT for count, time in zip(gone, spent, strict=True)
        ]
        self._last = self._taken = rows.steps[-1], clock[-1]
        if len(self._clock) < _MAX_SYNCED:
            self._clock.update(zip(rows.steps, clock, strict=True))
        if min(rows.steps) <= _UNTIMED and _AVERAGE.search(rows.text):
            self.starts.update(step for step in rows.steps if step <= _UNTIMED)
        self.put(rows)

    def finish(self) -> Reading | None:
        """The reading; the machine's facts only where the steps are this program's."""
        reading = super().finish()
        if reading is None:
            return None
        for step in reading.steps.numbers():
            if step < self._reset:
                reading.not_steady.setdefault(step, "warmup")
        # Steps right behind a synchronisation whose time no device can have: the host had not yet been held up.
        steps = self.reading.steps
        for first in self._synced:
            later = [steps.get(at, "step_seconds") for at in range(first + _AHEAD, first + _AHEAD + _WINDOW)]
            known = [seconds for seconds in later if seconds is not None]
            if len(known) < _AHEAD:
                continue
            usual = median(known)
            for at in range(first, first + _AHEAD):
                seconds = steps.get(at, "step_seconds")
                if seconds is not None and seconds < 0.85 * usual:
                    self.reading.not_steady.setdefault(at, "impossible")
        if self._memory is not None:
            reading.memory.append(self._memory)
        if self._gpus:
            name, line = next(iter(self._gpus.values()))
            reading.state("hardware.chips", len(self._gpus), f"{len(self._gpus)} rows of nvidia-smi", line)
            reading.state("hardware.accelerator", name, name, line)
        elif self._device is not None:
            name, chips, line = self._device
            reading.state("hardware.chips", chips, f"world_size={chips}", line)
            reading.state("hardware.accelerator", name, name, line)
        # What forks print of their settings; the batch is counted in tokens, and a receipt's in sequences.
        for name, path in _PATHS.items():
            value, line = self._settings.get(name, (0, 0))
            if value and path not in self.reading.stated:
                self.reading.state(path, value, f"{name}:{value}", line)
        tokens, line = self._settings.get("train_batch_tokens", (0, 0))
        length, _ = self._settings.get("train_seq_len", (0, 0))
        if length and tokens and tokens % length == 0:
            self.reading.state("batch.global_batch", tokens // length, f"train_batch_tokens:{tokens} of {length}", line)
        self._means()
        if self._validation is not None and self._total > 0:
            # The clock leaves out validation, and begins when its warm-up has ended.
            _, text, line = self._validation
            reading.state("measurement.goodput.step_seconds", self._total, f"{text} at {self._total:.9g} s", line)
        if "platform.python" in reading.stated:
            reading.see("framework", "modded-nanogpt", "backend")
        return reading

    def _means(self) -> None:
        """Where no single step has a time, the clock of every n-th line, or of every validation, gives means."""
        if any(seconds is not None for seconds in self.reading.steps.column("step_seconds")):
            return
        spans = [
            (later - step, end - begin)
            for (step, begin), (later, end) in pairwise(sorted(self._clock.items()))
            if end > begin and step >= self._reset
        ]
        if spans:
            seconds, counts = [time / count for count, time in spans], [count for count, _ in spans]
            self.reading.means = IntervalMeans(seconds, counts, "train_time")


READERS = (
    ModdedNanogpt,
    PrintedProgram,
)
