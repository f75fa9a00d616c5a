"""modded-nanogpt's logs: cumulative training time, one line a step, behind a copy of the source and nvidia-smi's table.

Source: the records of KellerJordan/modded-nanogpt (2024 to 2026). ``train_time`` is cumulative, without validation; a
step's time is the difference of two lines of consecutive steps. The host runs ahead of the device after every
synchronisation, so the first lines behind one are dispatch times. Before 2025 the clock was set to zero after ten
steps.
"""

from __future__ import annotations

import re
from itertools import islice
from operator import sub
from statistics import median
from typing import ClassVar, Final

from receipts.ingest.evidence.numbers import judged, number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT

# A record that was glued behind another ends it.
_LINE = re.compile(
    r"(?<!_)step:(\d{1,12})/\d{1,12} ((?:(?!step:\d).){0,300}?)train_time:\s*(\d{1,15}(?:\.\d{1,9})?)(ms|s)(?=\b|step:)"
    r"((?:(?!step:\d).){0,200})"
)
_LOSS = re.compile(r"(?<![a-z_])(train_loss|val_loss):\s*(\S{1,24})")
_RATE = re.compile(r"\btok(?:ens)?_(?:s|per_sec):\s*([\d.,]{1,24})")
_AVERAGE = re.compile(r"step_avg:\s*(nan|inf)")
_PEAK = re.compile(
    r"peak memory (?:allocated|consumption): (\d{1,12}) MiB(?:,? ?(?:peak memory )?reserved: (\d{1,12}) MiB)?"
)
_GPU = re.compile(r"\|\s{1,8}(\d{1,3})\s{1,8}((?:NVIDIA|AMD) \S.{0,40}?)\s{2,}(?:On|Off|N/A)\s")
_RUNNING = re.compile(
    r"Running (Python|PyTorch|Triton version) ([\w.+-]{1,60})(?:.{0,40}compiled for CUDA ([\d.]{1,10}))?"
)
_SETTING = re.compile(r"(?<!\w)(world_size|grad_accum_steps|train_batch_tokens|train_seq_len):(\d{1,12})(?!\S)")
_PATHS: Final = {
    "world_size": "hardware.chips",
    "grad_accum_steps": "batch.accumulation",
    "train_seq_len": "batch.sequence_length",
}
_UNTIMED: Final = 10
_AHEAD: Final = 5
_WINDOW: Final = 12
_MAX_GPUS: Final = 64
_MAX_SYNCED: Final = 10_000


class ModdedNanogpt(LineReader):
    """Reads modded-nanogpt's step lines and what stands at its head and foot."""

    source: ClassVar[str] = "modded-nanogpt"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"train_time:",
        b"peak memory allocated: ",
        b"peak memory consumption: ",
        b"Running Python ",
        b"Running PyTorch ",
        b"Running Triton ",
        b"  NVIDIA ",
        b"train_batch_tokens:",
        b"world_size:",
    )

    def __init__(self) -> None:
        super().__init__()
        self._lines = 0
        self._last: tuple[int, float] | None = None
        self._taken: tuple[int, float] | None = None
        self._uncounted = 0
        self._synced: list[int] = []
        self._gpus: dict[int, tuple[str, int]] = {}
        self._validation: tuple[float, str, int] | None = None
        self._memory: MemoryRow | None = None
        self._versions: list[tuple[str, str, str, int]] = []
        self._settings: dict[str, tuple[int, int]] = {}
        self._bad = self._good = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; none needs the next."""
        if "train_time:" in text:
            at = 0
            while (match := _LINE.search(text, at)) is not None:
                # Of glued records the second one's text lies behind the first one's numbers.
                at = match.end(4)
                self._step(match, number)
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
        elif (match := _RUNNING.search(text)) and len(self._versions) < 10:
            self._versions.append((match[1], match[2], match[3] or "", number))
        return False

    def spans(self, text: str) -> Spans:
        """Step, loss, time and rate of one line of training."""
        match = _LINE.search(text)
        if (
            match is None
            or _LINE.search(text, match.end(4))
            or "val_" in text
            or "peak " in text
            or _AVERAGE.search(match[5])
        ):
            return {}
        found = {"step": match.span(1), "milliseconds" if match[4] == "ms" else "seconds": match.span(3)}
        if loss := _LOSS.search(text, match.start(2), match.end(2)):
            found["loss"] = loss.span(2)
        if rate := _RATE.search(text, match.start(5), match.end(5)):
            found["tokens_per_second"] = rate.span(1)
        return {} if "train_loss" in match[5] else found

    def many(self, columns: Columns) -> bool:
        """Take lines of training whose clock goes on; none of them the first."""
        try:
            steps = columns.whole("step")
            figures = {name: columns.floats(name) for name in columns.names if name in {"loss", "tokens_per_second"}}
            unit, factor = ("milliseconds", 1e-3) if "milliseconds" in columns else ("seconds", 1.0)
            times = [time * factor for time in columns.decimals(unit)]
        except ValueError:
            return False
        if self._last is None or min(steps) <= 1:
            return False
        gone = list(map(sub, steps, [self._last[0], *steps]))
        spent = list(map(sub, times, [self._last[1], *times]))
        if 0 in gone or (min(spent) < 0 and any(time < 0 < count for count, time in zip(gone, spent, strict=True))):
            return False
        if gone.count(1) < len(gone):
            spent = [time if count == 1 else ABSENT for count, time in zip(gone, spent, strict=True)]
        figures["step_seconds"] = spent
        bad, good = judged(figures.get("loss", ()))
        self._bad, self._good = self._bad or bad, self._good or good
        self._lines += len(steps)
        self._last = self._taken = steps[-1], times[-1]
        self.reading.steps.extend(steps, figures)
        return True

    def finish(self) -> Reading | None:
        """The reading; the machine's facts only where the steps are this program's."""
        if not self._lines:
            return None
        reading = self.reading
        reading.records = self._lines
        if self._bad or self._good:
            reading.diverged = self._bad
        self._dispatched()
        if self._memory is not None:
            reading.memory.append(self._memory)
        if self._gpus:
            name, line = next(iter(self._gpus.values()))
            reading.state("hardware.chips", len(self._gpus), f"{len(self._gpus)} rows of nvidia-smi", line)
            reading.state("hardware.accelerator", name, name, line)
        self._batch()
        if self._validation is not None:
            loss, text, line = self._validation
            reading.state("measurement.loss.validation", loss, text, line)
        if self._versions:
            reading.see("framework", "modded-nanogpt", "backend")
        for what, version, cuda, line in self._versions:
            path = {"Python": "platform.python", "PyTorch": "wheels.torch"}.get(what, "wheels.triton")
            reading.state(path, version, f"{what} {version}", line)
            if cuda:
                reading.state("platform.cuda", cuda, f"compiled for CUDA {cuda}", line)
        return reading

    def _batch(self) -> None:
        """What forks print of their settings; the batch is counted in tokens, and a receipt's in sequences."""
        for name, path in _PATHS.items():
            value, line = self._settings.get(name, (0, 0))
            if value and path not in self.reading.stated:
                self.reading.state(path, value, f"{name}:{value}", line)
        (tokens, line), (length, _) = (
            self._settings.get(name, (0, 0)) for name in ("train_batch_tokens", "train_seq_len")
        )
        if length and tokens and tokens % length == 0:
            self.reading.state("batch.global_batch", tokens // length, f"train_batch_tokens:{tokens} of {length}", line)

    def _step(self, match: re.Match[str], line: int) -> None:
        self._lines += 1
        step = int(match[1])
        seconds = float(match[3]) * (1e-3 if match[4] == "ms" else 1.0)
        found = dict(_LOSS.findall(f"{match[2]} {match[5]}"))
        train, validation = number(found.get("train_loss", "")), number(found.get("val_loss", ""))
        for loss in (train, validation):
            if loss is not None:
                self._bad, self._good = self._bad or loss - loss != 0, self._good or loss - loss == 0
        if ("val_loss" in found and "train_loss" not in found) or "val_bpb:" in match[2]:
            if validation is not None:
                self._validation = (validation, f"step:{step} val_loss:{found['val_loss']}", line)
            if len(self._synced) < _MAX_SYNCED:
                self._synced.append(step + 1)
            if self._last is None or self._last[0] < step:
                # The line of the step itself was left out: the clock stood still from here on.
                self._last = (step, seconds)
            return
        if self._taken == (step, seconds):
            # The same line once more: of another rank, or of a console beside a file.
            return
        last, self._last = self._last, (step, seconds)
        self._taken = self._last
        values: dict[str, float | None] = {"loss": train}
        if last is not None and seconds < last[1] and step > last[0]:
            self._reset(step)
        elif last is not None and step == last[0] + 1:
            values["step_seconds"] = seconds - last[1]
        if (rate := _RATE.search(match[5])) is not None:
            values["tokens_per_second"] = number(rate[1])
        self.reading.steps.put(step, values)
        if step == 1 or (step <= _UNTIMED and _AVERAGE.search(match[5])):
            self.reading.not_steady[step] = "warmup"

    def _reset(self, step: int) -> None:
        """The clock went back: what came before it was warm-up that the program itself does not count."""
        for earlier in islice(self.reading.steps, self._uncounted, None):
            if earlier < step:
                self.reading.not_steady.setdefault(earlier, "warmup")
        self._uncounted = len(self.reading.steps) - self.reading.steps.lost

    def _dispatched(self) -> None:
        """Steps right behind a synchronisation whose time no device can have: the host had not yet been held up."""
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


READERS = (ModdedNanogpt,)
