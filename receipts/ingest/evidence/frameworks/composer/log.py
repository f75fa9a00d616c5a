"""Composer's console: a head with the batch, and below it a line for each metric.

Source: `composer/loggers/console_logger.py`, 0.14 (2023) to 0.30 (2025). The head counts batches from 1, ``time/batch``
those before it. `SpeedMonitor` prints means over a window of batches, and nothing before the first window is full.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.records import RecordReader

_HEAD: Final = re.compile(r"\[(?:epoch=\d{1,9}(?:/\d{1,9})?\]\[)?batch=(\d{1,12})(?:/\d{1,12})?\]:\s*$")
_METRIC: Final = re.compile(r"\bTrain ([A-Za-z_][\w/.-]{1,100}): (\S{1,40})\s*$")
_SETTINGS: Final = vocabulary.table("composer")["configuration"]
_SIZES: Final = ("bytes_used", "peak_bytes", "peak_reserved_bytes")
# Callers set fewer, which no line shows: no single step's time may follow.
_WINDOW: Final = 100
_MAX_METRICS: Final = 2000
_LARGEST: Final = 1e18


class Composer(RecordReader):
    """Reads the metrics of training; those of an evaluation have a head of their own."""

    source: ClassVar[str] = "composer"
    anchors: ClassVar[tuple[bytes, ...]] = (b"[batch=", b"][batch=")
    labels = vocabulary.line("composer")
    forms = ()

    def __init__(self) -> None:
        super().__init__()
        self._batch: int | None = None
        self._line = self._metrics = 0
        self._figures: dict[str, float] = {}
        self._peak = -1

    def inside(self) -> bool:
        """Whether the metrics of a batch go on below."""
        return self._batch is not None

    def other(self, text: str, number: int) -> None:
        """Take a head, or a metric below one; any other line ends the batch."""
        if self._batch is not None and (match := _METRIC.search(text)) and self._metrics < _MAX_METRICS:
            self._metric(match[1], match[2], number)
            return
        self._end()
        if match := _HEAD.search(text):
            self._batch, self._line = int(match[1]), number

    def finish(self) -> Reading | None:
        """The reading, whose rates are means of a window."""
        self._end()
        reading = super().finish()
        if reading is not None and any(value is not None for value in reading.steps.column("step_seconds")):
            reading.steps.interval = _WINDOW
            reading.remark(
                "note", f"rates are means of the speed monitor's window, {_WINDOW} batches unless set otherwise"
            )
        return reading

    def _metric(self, name: str, word: str, line: int) -> None:
        self._metrics += 1
        value = number(word)
        if value is None:
            return
        if (known := self.label(name)) is not None:
            self._figures.setdefault(known.field, value / known.divisor)
        elif (path := _SETTINGS.get(name)) is not None and 1 <= value < _LARGEST and value == int(value):
            self.reading.state(path, int(value), f"{name}: {word}", line)

    def _end(self) -> None:
        batch, figures = self._batch, self._figures
        self._batch, self._figures, self._metrics = None, {}, 0
        if batch is None or "loss" not in figures:
            return
        sizes = {name: round(figures[name]) for name in _SIZES if 0 < figures.get(name, 0) < _LARGEST}
        if sizes.get("peak_bytes", 0) > self._peak:
            self._peak = sizes.get("peak_bytes", 0)
            self.reading.memory = [MemoryRow(Place(self._line), phase="steady", step=batch, **sizes)] if sizes else []
        if (rate := figures.get("batches_per_second", 0.0)) > 0:
            figures["step_seconds"] = 1 / rate
        before, samples = figures.get("batches", 0.0), figures.get("samples", 0.0)
        if before > 0 and samples > 0 and samples % before == 0:
            figures["global_batch"] = samples / before
        self.step(batch, figures, self._line)


READERS = (Composer,)
