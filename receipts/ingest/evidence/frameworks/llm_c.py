"""llm.c's console and main.log, and the lines of its PyTorch twin `train_gpt2.py`.

Source: `train_gpt2.cu`, `llmc/logger.h` (2024). The time is of one step; ``tok/s`` is a moving average over all
processes; ``-100.0%`` is the MFU of a chip that its table lacks, and ``(+nanz)`` the z-score before its window is full:
neither is a number of the run. Console steps count from 1, those of main.log from 0.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import ClassVar, Final

from receipts.ingest.evidence.numbers import judged, number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT, Steps

_STEP = re.compile(r"(?<!_)step\s+(\d{1,12})(?:\s*/\s*\d{1,12})?(?=\s*[:|])")
_LOSS = re.compile(r"\bloss:? +(\S{1,24})")
_NORM = re.compile(r"\bnorm:? +(\S{1,24})")
_TIME = re.compile(r"(?<![\w.])(\d{1,12}(?:\.\d{1,12})?) ms\b")
_MFU = re.compile(r"(-?\d{1,6}(?:\.\d{1,6})?)% [\w/ ]{0,30}MFU")
_RATE = re.compile(r"(\d[\d,]{0,18}(?:\.\d{1,6})?) tok/s")
_LOGGED = re.compile(
    r"(?<![A-Za-z_])s:(\d{1,12}) (?:trl|tel):(-?[\d.]{1,24}|-?nan|-?inf)"
    r"(?: lr:[-+.\de]{1,24})?(?: norm:([\d.]{1,24}|-?nan|-?inf))?"
)
_MEMORY = re.compile(r"device memory usage: (\d{1,12}) MiB / (\d{1,12}) MiB")
_PEAK = re.compile(r"peak memory consumption: (\d{1,12}) MiB")
_VALIDATION = re.compile(r"^\s*val loss (\S{1,24})\s*$")
_AVERAGE = re.compile(r"total average iteration time: ([\d.]{1,24}) ms")
_ROW = re.compile(r"\| ([\w ]{1,24}?)\s{1,60}\| (\S(?:.{0,60}?\S)?)\s*\|\s*$")
_BATCH = re.compile(
    r"batch_size B=(\d{1,9}) \* seq_len T=(\d{1,9}) \* num_processes=(\d{1,9}) and total_batch_size=(\d{1,12})"
)
_ACCUMULATION = re.compile(r"setting grad_accum_steps=(\d{1,9})")
_FIGURES: Final = {
    "loss": _LOSS,
    "grad_norm": _NORM,
    "milliseconds": _TIME,
    "mfu": _MFU,
    "tokens_per_second": _RATE,
}
_MAX_RECORD: Final = 300
_TABLE: Final = {
    "sequence length T": "batch.sequence_length",
    "micro batch size B": "batch.micro_batch",
    "batch size B": "batch.micro_batch",
    "num_processes": "hardware.chips",
    "vocab_size V": "model.vocabulary",
    "num_layers L": "model.depth",
    "num_heads NH": "model.heads",
    "channels C": "model.hidden",
    "num_parameters": "model.parameters_total",
}


class LlmC(LineReader):
    """Reads llm.c's lines."""

    source: ClassVar[str] = "llm.c"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b" tok/s",
        # Behind `| loss ` stands a figure here, and elsewhere `scale`.
        *(b"| loss " + figure for figure in (b"-", b"n", b"i", *(str(digit).encode() for digit in range(10)))),
        b"train loss ",
        b" trl:",
        b" tel:",
        b"device memory usage: ",
        b"peak memory consumption: ",
        b"val loss ",
        b"total average iteration time: ",
        b"batch_size B=",
        b"setting grad_accum_steps=",
        b"| sequence length T ",
        b"batch size B ",
        b"| total batch size ",
        b"| num_processes ",
        b"| vocab_size V ",
        b"| num_layers L ",
        b"| num_heads NH ",
        b"| channels C ",
        b"| num_parameters ",
        b"| device  ",
        b"| precision ",
        b"| recompute ",
    )

    def __init__(self) -> None:
        super().__init__()
        self._lines = 0
        self._console = False
        self._broken = ""
        self._row: MemoryRow | None = None
        self._validation: tuple[float, str, int] | None = None
        self._unknown_peak = self._bad = self._good = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; True after the first part of a record that was broken in two."""
        broken, self._broken = self._broken, ""
        if broken and "tok/s" in text and _STEP.search(text) is None:
            # A terminal breaks words and numbers, an editor breaks at blanks: a number that goes on is one number.
            within = (broken[-1:] + text[:1]).isdigit() or (broken[-1:] + text[:1]).isalpha()
            text = broken + text if within else f"{broken.rstrip()} {text.lstrip(' >')}"
        elif broken:
            self._cut(broken, number - 1)
        if "tok/s" in text:
            self._step(text, number)
        elif "loss " in text and _STEP.search(text) is not None and _LOSS.search(text) is not None:
            # The page or the terminal was too narrow for the record.
            self._broken = text[:_MAX_RECORD]
            return True
        elif " trl:" in text or " tel:" in text:
            self._logged(text, number)
        else:
            self._other(text, number)
        return False

    def spans(self, text: str) -> Spans:
        """Step and figures of one record of the console, or of the file beside it."""
        logged = list(_LOGGED.finditer(text))
        if "tok/s" not in text and len(logged) == 1 and " trl:" in text and " tel:" not in text:
            found = {"entry": logged[0].span(1), "loss": logged[0].span(2)}
            return found if logged[0][3] is None else {**found, "grad_norm": logged[0].span(3)}
        starts = list(_STEP.finditer(text))
        if len(starts) != 1 or text.count("tok/s") != 1:
            return {}
        found = {"step": starts[0].span(1)}
        for name, pattern in _FIGURES.items():
            match = pattern.search(text, starts[0].start())
            if match is None and name in {"loss", "milliseconds"}:
                return {}
            if match is not None:
                word = match[1].rstrip(",|")
                if number(word) is None:
                    return {}
                found[name] = match.start(1), match.start(1) + len(word)
        return found

    def many(self, columns: Columns) -> bool:
        """Take records, of which none is the first, and none the first without a peak to divide by."""
        entry = "entry" in columns
        try:
            steps = columns.whole("entry" if entry else "step")
            read = columns.decimals if entry else columns.floats
            figures = {name: read(name) for name in columns.names if name not in {"entry", "step"}}
        except ValueError:
            return False
        if entry and min(figures.get("grad_norm", [0.0])) < 0:
            return False
        if not entry:
            shares = figures.get("mfu", [0.0])
            if not self._console or 1 in steps or (min(shares) < 0 and not self._unknown_peak):
                return False
            figures["step_seconds"] = [time / 1e3 for time in figures.pop("milliseconds")]
            if "mfu" in figures:
                figures["mfu"] = [share / 100 if share >= 0 else ABSENT for share in shares]
        self._lines += len(steps)
        bad, good = judged(figures["loss"], figures.get("grad_norm", ()))
        self._bad, self._good = self._bad or bad, self._good or good
        if not (entry and self._console):
            self.reading.steps.extend(steps, figures)
        return True

    def finish(self) -> Reading | None:
        """The reading, with the last validation loss."""
        self._cut(self._broken, 0)
        if not self._lines:
            return None
        reading = self.reading
        reading.records = self._lines
        if self._bad or self._good:
            reading.diverged = self._bad
        if self._row is not None:
            reading.memory.append(self._row)
        if self._validation is not None:
            loss, text, line = self._validation
            reading.state("measurement.loss.validation", loss, text, line)
        tokens = reading.counters.pop("tokens_per_step", 0)
        length = reading.stated.get("batch.sequence_length")
        if tokens and length is not None and tokens % length.value == 0:
            text = f"total batch size {tokens} tokens of {length.value}"
            reading.state("batch.global_batch", tokens // length.value, text, length.place.line)
        if "batch.micro_batch" in reading.stated or "model.depth" in reading.stated:
            reading.see("framework", "llm.c", "backend")
        return reading

    def _step(self, text: str, line: int) -> None:
        starts = [match.start() for match in _STEP.finditer(text)] or [0]
        for start, end in pairwise([*starts, len(text)]):
            self._slow(text[start:end], line)

    def _cut(self, text: str, line: int) -> None:
        """A record whose rest never came; other programs print such a beginning, but no z-scores."""
        if "z)|" in text:
            self._step(text, line)

    def _slow(self, text: str, line: int) -> None:
        """A step line of another form: each figure is looked for by what stands beside it."""
        step, loss, time = _STEP.search(text), _LOSS.search(text), _TIME.search(text)
        if step is None or loss is None or time is None:
            return
        norm, mfu, rate = _NORM.search(text), _MFU.search(text), _RATE.search(text)
        self._put(
            int(step[1]),
            number(loss[1].rstrip(",|")),
            number(norm[1].rstrip(",|")) if norm else None,
            float(time[1]),
            float(rate[1].replace(",", "")) if rate else None,
            float(mfu[1]) if mfu else None,
            line,
        )

    def _put(
        self,
        step: int,
        loss: float | None,
        norm: float | None,
        milliseconds: float,
        rate: float | None,
        share: float | None,
        line: int,
    ) -> None:
        if not self._console and len(self.reading.steps):
            # What main.log counts from 0 gives way to the console's own numbers.
            self.reading.steps = Steps()
        self._console = True
        self._lines += 1
        if share is not None and share < 0:
            share = None
            if not self._unknown_peak:
                self._unknown_peak = True
                self.reading.remark("missing", "MFU is -100 %: llm.c knows no peak of this chip", line)
        values = {
            "loss": loss,
            "grad_norm": norm,
            "step_seconds": milliseconds / 1e3,
            "tokens_per_second": rate,
            "mfu": None if share is None else share / 100,
        }
        self.reading.steps.put(step, values)
        if step == 1:
            self.reading.not_steady[step] = "warmup"
        self._judge(loss, norm)

    def _logged(self, text: str, line: int) -> None:
        for match in _LOGGED.finditer(text):
            self._entry(match, line)

    def _entry(self, match: re.Match[str], line: int) -> None:
        self._lines += 1
        loss = number(match[2])
        if " tel:" in match[0]:
            if loss is not None:
                self._validation = (loss, match[0], line)
            return
        norm = number(match[3]) if match[3] else None
        self._judge(loss, norm)
        if not self._console:
            self.reading.steps.put(int(match[1]), {"loss": loss, "grad_norm": norm})

    def _judge(self, loss: float | None, norm: float | None) -> None:
        if loss is not None:
            if loss - loss != 0 or (norm is not None and norm != norm):
                self._bad = True
            else:
                self._good = True

    def _other(self, text: str, line: int) -> None:
        if match := _MEMORY.search(text):
            self._lines += 1
            used, limit = int(match[1]) << 20, int(match[2]) << 20
            self._row = MemoryRow(Place(line), phase="post_init", bytes_used=used, bytes_limit=limit)
        elif match := _PEAK.search(text):
            if self._console or self._lines:
                self.reading.memory.append(MemoryRow(Place(line), phase="steady", peak_bytes=int(match[1]) << 20))
        elif match := _VALIDATION.search(text):
            if (loss := number(match[1])) is not None:
                self._validation = (loss, match[0].strip(), line)
        elif match := _AVERAGE.search(text):
            if (mean := number(match[1])) is not None:
                self.reading.state("measurement.stated.step_seconds", mean / 1e3, match[0], line)
                self.reading.state("measurement.stated.statistic", "mean", match[0], line)
        elif match := _BATCH.search(text):
            self._lines += 1
            batch, length, chips, tokens = (int(word) for word in match.groups())
            if min(batch, length, chips, tokens) > 0:
                self.reading.state("batch.micro_batch", batch, f"B={batch}", line)
                self.reading.state("batch.sequence_length", length, f"T={length}", line)
                self.reading.state("hardware.chips", chips, f"num_processes={chips}", line)
                self.reading.counters["tokens_per_step"] = tokens
        elif match := _ACCUMULATION.search(text):
            if int(match[1]):
                self.reading.state("batch.accumulation", int(match[1]), match[0], line)
        elif match := _ROW.search(text):
            self._table(match[1], match[2], line)

    def _table(self, name: str, word: str, line: int) -> None:
        value = number(word)
        text = f"{name} | {word}"
        if name in _TABLE and value is not None and value.is_integer() and 1 <= value < 2**53:
            self.reading.state(_TABLE[name], int(value), text, line)
        elif name == "total batch size" and value is not None and value.is_integer() and 1 <= value < 2**53:
            self.reading.counters["tokens_per_step"] = int(value)
        elif name == "device":
            self.reading.state("hardware.accelerator", word, text, line)
        elif name == "precision" and word.upper() in ("BF16", "FP16", "FP32", "TF32"):
            self.reading.state("numerics.compute_dtype", word.lower(), text, line)
        elif name == "recompute" and value is not None:
            self.reading.state("numerics.recompute", "none" if value == 0 else f"level {word}", text, line)


READERS = (LlmC,)
