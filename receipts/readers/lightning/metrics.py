"""Lightning's CSVLogger (1.5 to 2.6): ``metrics.csv``, a row for each call of the logger, by epoch and step from 0.

A column is empty in the rows of other calls. ``train/time`` is ThroughputMonitor's clock, which validations stop.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import csv_cells, number
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

_CLOCK: Final = "train/time"
_LABELS: Final = vocabulary.line("lightning")


class MetricsTable(FileReader):
    """Reads the losses of steps, and the mean time of the steps between two of the clock's."""

    source: ClassVar[str] = "lightning-csv"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether the columns are an epoch, a step and the loss of a training; LitGPT's step is a micro-batch."""
        names = csv_cells(head.split(b"\n", 1)[0].decode("utf-8", "replace"))
        return {"epoch", "step"} <= set(names) and "iter" not in names and any(name in _LABELS for name in names)

    def read(self, source: Source) -> list[Reading]:
        """One reading. Steps that go back are those of an epoch, or of an evaluation, and none is read."""
        reading = Reading(self.source)
        lines = (line for _, line in source.lines())
        names = csv_cells(next(lines, ""))
        order = [name for name in _LABELS if name in names]
        last = -1
        before: tuple[int, float] | None = None
        for line in lines:
            row = {
                name: value
                for name, cell in zip(names, csv_cells(line), strict=False)
                if (value := number(cell)) is not None
            }
            step = row.get("step")
            figures = {_LABELS[name].field: row[name] for name in reversed(order) if name in row}
            if step is None or step != int(step) or step < 0 or not (figures or _CLOCK in row):
                continue
            if step < last:
                text = (
                    f"step {int(step)} follows step {last}: they are not counted over the whole run, and none is read"
                )
                reading = Reading(self.source, records=1)
                reading.remark("missing", text)
                return [reading]
            last = int(step)
            if _CLOCK in row:
                if before is not None and last > before[0] and row[_CLOCK] > before[1]:
                    figures["step_seconds"] = (row[_CLOCK] - before[1]) / (last - before[0])
                    reading.steps.interval = last - before[0]
                before = last, row[_CLOCK]
            reading.records += 1
            if "loss" in figures:
                reading.diverged = bool(reading.diverged) or not math.isfinite(figures["loss"])
            reading.steps.add(last, figures)
        return [reading]


READERS = (MetricsTable,)
