"""llm.c's console and main.log, and the lines of its PyTorch twin `train_gpt2.py`.

Source: `train_gpt2.cu`, `llmc/logger.h` (2024). The time is of one step; ``tok/s`` is a moving average over all
processes; ``-100.0%`` is the MFU of a chip that its table lacks, and ``(+nanz)`` the z-score before its window is full:
neither is a number of the run. Console steps count from 1, those of main.log from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final

from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.literals import FIGURE, integer, number
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT, Steps

_VALIDATED = re.compile(rf"(?<![A-Za-z_])s:\d{{1,12}} tel:({FIGURE})")
_MEMORY = re.compile(r"device memory usage: (\d{1,12}) MiB / (\d{1,12}) MiB")
_PEAK = re.compile(r"peak memory consumption: (\d{1,12}) MiB")
_VALIDATION = re.compile(r"^\s*val loss (\S{1,24})\s*$")
_AVERAGE = re.compile(r"total average iteration time: ([\d.]{1,24}) ms")
_ROW = re.compile(r"\| ([\w ]{1,24}?)\s{1,60}\| (\S(?:.{0,60}?\S)?)\s*\|\s*$")
# April 2024: one process, whose settings stand in lines of their own from `max_seq_len` on.
_FIRST: Final = "max_seq_len"
_PLAIN = re.compile(r"\s*([a-z][\w ]{1,30}): (\d{1,15})\s*$")
_TOKENS = re.compile(r"batch_size B=.{0,80} and total_batch_size=(\d{1,12})")
_STATEMENTS: Final = Statements("llm_c")
_SETTINGS: Final = Settings("llm_c")


class LlmC(RecordReader, table="llm_c"):
    """Reads llm.c's lines."""

    source: ClassVar[str] = "llm.c"
    forms = (
        Form(
            re.compile(r"(?<!_)step\s+(?P<step>\d{1,12})(?:\s*/\s*(?P<total>\d{1,12}))?(?=\s*[:|])"),
            (
                re.compile(rf"\b(?P<label>loss|norm):? +(?P<word>{FIGURE})(?=[\s,|)]|$)"),
                re.compile(
                    rf"(?<![\w.])(?<!time )(?<!time: )(?P<word>{FIGURE})"
                    r"(?: (?=ms\b|tok/s)|% [\w/ ]{0,30}(?=MFU))(?P<label>ms|tok/s|MFU)"
                ),
            ),
            end=re.compile(r".*?(?:tok/s|\(took [\d.]{1,24} ms\))"),
        ),
        Form(
            re.compile(r"(?<![A-Za-z_])s:(?P<step>\d{1,12}) (?=trl:)"),
            (re.compile(rf"\b(?P<label>trl|norm):(?P<word>{FIGURE})"),),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._lines = 0
        self._console = self._below = False
        self._row: MemoryRow | None = None
        self._average: tuple[float, str, int] | None = None
        self._total = 0

    def complete(self, names: Iterable[str]) -> bool:
        """A record of the console has a time; one of main.log has none."""
        return {"loss", "ms"} <= set(names) or "trl" in names

    def inside(self) -> bool:
        """Whether settings go on below the first one."""
        return self._below

    def partial(self, text: str) -> bool:
        """Other programs print such a beginning, but no z-scores."""
        return "z)|" in text

    def rows(self, rows: RecordRows) -> None:
        """Take records; what main.log counts from 0 gives way to the console's own numbers."""
        if "trl" in rows.columns:
            if not self._console:
                self.put(rows)
            return
        if not self._console and len(self.reading.steps):
            self.reading.steps = Steps()
        self._console = True
        self._total = max(rows.counts.get("total", [0]))
        unknown = [line for line, share in zip(rows.lines, rows.values("mfu"), strict=True) if ABSENT < share < 0]
        if unknown:
            self.reading.remark("missing", "MFU is -100 %: llm.c knows no peak of this chip", unknown[0])
        self.put(rows)

    def finish(self) -> Reading | None:
        """The reading, with the last validation loss."""
        super().finish()
        reading = self.reading
        reading.records += self._lines
        if not reading.records:
            return None
        if self._row is not None:
            reading.memory.append(self._row)
        # Of an excerpt the average is over steps that are not in it.
        if self._average is not None and len(reading.steps) >= self._total:
            reading.state("measurement.stated.step_seconds", *self._average)
            reading.state("measurement.stated.statistic", "mean", *self._average[1:])
        tokens = reading.counters.pop("tokens_per_step", 0)
        length = reading.stated.get("batch.sequence_length")
        if tokens and length is not None and tokens % length.value == 0:
            text = f"total batch size {tokens} tokens of {length.value}"
            reading.state("batch.global_batch", tokens // length.value, text, length.place.line)
        if "batch.micro_batch" in reading.stated or "model.depth" in reading.stated:
            reading.see("framework", "llm.c", "backend")
        return reading

    def other(self, text: str, line: int) -> None:
        """Take a line that is no record of a step."""
        if match := _MEMORY.search(text):
            self._lines += 1
            used, limit = int(match[1]) << 20, int(match[2]) << 20
            self._row = MemoryRow(Place(line), phase="post_init", bytes_used=used, bytes_limit=limit)
        elif (match := _PEAK.search(text)) and (self.taken or self._lines):
            self.reading.memory.append(MemoryRow(Place(line), phase="steady", peak_bytes=int(match[1]) << 20))
        plain = _PLAIN.match(text) if self._below or _FIRST in text else None
        self._below = plain is not None and (self._below or plain[1] == _FIRST)
        if plain is not None:
            self._table(plain[1], plain[2], line)
        elif match := _VALIDATED.search(text) or _VALIDATION.search(text):
            if (loss := number(match[1])) is not None:
                self._lines += "tel:" in match[0]
                self.validated(loss, match[0].strip(), line)
        elif match := _AVERAGE.search(text):
            if (mean := number(match[1])) is not None:
                self._average = mean / 1e3, match[0], line
        elif _STATEMENTS.take(self.reading, text, line):
            if match := _TOKENS.search(text):
                self._lines += 1
                self.reading.counters["tokens_per_step"] = int(match[1])
        elif match := _ROW.search(text):
            self._table(match[1], match[2], line)

    def _table(self, name: str, word: str, line: int) -> None:
        if stated := _SETTINGS.read(name, word):
            # Names that end in its symbol are its own: a log that ends before the first step has its table.
            self._lines += name[-1].isupper()
            self.reading.state(*stated, f"{name} | {word}", line)
        elif name == "total batch size" and (tokens := integer(word)):
            self.reading.counters["tokens_per_step"] = tokens


READERS = (LlmC,)
