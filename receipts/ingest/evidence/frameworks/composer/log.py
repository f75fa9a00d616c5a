"""Composer's console: a head with the batch, and below it a line for each metric.

Source: `composer/loggers/console_logger.py`, 0.14 (2023) to 0.30 (2025). The head counts batches from 1, ``time/batch``
those before it. `SpeedMonitor` prints means over a window of batches, and nothing before the first window is full.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.blocks import BlockReader
from receipts.ingest.evidence.reading import Reading

_SETTINGS: Final = vocabulary.table("composer")["configuration"]
# Callers set fewer, which no line shows: no single step's time may follow.
_WINDOW: Final = 100
_LARGEST: Final = 1e18


class Composer(BlockReader):
    """Reads the metrics of training; those of an evaluation have a head of their own."""

    source: ClassVar[str] = "composer"
    anchors: ClassVar[tuple[bytes, ...]] = (b"[batch=", b"][batch=")
    labels = vocabulary.line("composer")
    head = re.compile(r"\[(?:epoch=\d{1,9}(?:/\d{1,9})?\]\[)?batch=(?P<step>\d{1,12})(?:/\d{1,12})?\]:\s*$")
    metric = re.compile(r"\bTrain (?P<label>[A-Za-z_][\w/.-]{1,100}): (?P<word>\S{1,40})\s*$")

    def setting(self, label: str, value: float, line: int) -> None:
        """Take a setting, which is printed as a metric."""
        if (path := _SETTINGS.get(label)) is not None and 1 <= value < _LARGEST and value == int(value):
            self.reading.state(path, int(value), f"{label}: {value:.0f}", line)

    def block(self, step: int, figures: dict[str, float], line: int) -> None:
        """Take one batch; its size follows from the samples and the batches before it."""
        before, samples = figures.get("batches", 0.0), figures.get("samples", 0.0)
        if before > 0 and samples > 0 and samples % before == 0:
            figures["global_batch"] = samples / before
        self.step(step, figures, line)

    def finish(self) -> Reading | None:
        """The reading, whose rates are means of a window."""
        reading = super().finish()
        if reading is not None and any(value is not None for value in reading.steps.column("step_seconds")):
            reading.steps.interval = _WINDOW
            reading.remark(
                "note", f"rates are means of the speed monitor's window, {_WINDOW} batches unless set otherwise"
            )
        return reading


READERS = (Composer,)
