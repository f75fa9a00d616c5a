"""Histories exported from Weights & Biases: CSV and JSON of the API, CSV of the page's charts, and a run's summary.

A run prints its summary at its end, too: ``wandb: Run summary:``, and a line for each metric.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from receipts.ingest.literals import number
from receipts.ingest.reader import FileReader, LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import MAX_DOCUMENT, Source
from receipts.ingest.tracker import RATE, NamedMetrics, dialect, figure
from receipts.readers.wandb.run import parsed, put_row

_MAX_COLUMNS: Final = 5000
_SHOWN: Final = "wandb: Run summary:"
_METRIC: Final = re.compile(r"\bwandb:\s{1,200}(?P<name>\S.{0,200}?)\s{1,20}(?P<value>\S{1,40})\s*$")
_SUMMARY: Final = {
    "step_seconds": "measurement.stated.step_seconds",
    "tokens_per_second": "measurement.stated.tokens_per_second",
    "tokens_per_second_per_chip": "measurement.stated.tokens_per_second_per_chip",
    "tflops_per_second_per_chip": "measurement.stated.tflops_per_second_per_chip",
    "mfu": "measurement.stated.mfu",
    "loss": "measurement.loss.last",
    "grad_norm": "measurement.gradient_norm.last",
}


class ExportedTable(FileReader):
    """Reads CSV. Charts export ``run - metric`` with ``__MIN`` and ``__MAX`` beside it, of one run or several."""

    source: ClassVar[str] = "wandb"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether the head names W&B's own columns, or a chart's."""
        names = _columns(head.split(b"\n", 1)[0].decode("utf-8", "replace"))
        if "_step" in names and ("_timestamp" in names or "_runtime" in names):
            return True
        return bool(names) and names[0] == "Step" and any(name.endswith("__MIN") and " - " in name for name in names)

    def read(self, source: Source) -> list[Reading]:
        """One reading; a chart of several runs is none's."""
        reading = Reading(self.source)
        metrics = NamedMetrics(reading)
        lines = (line for _, line in source.lines())
        names = _columns(next(lines, ""))[:_MAX_COLUMNS]
        if names and names[0] == "Step" and "_step" not in names:
            names = self._of_one_run(reading, names)
        skipped = 0
        for line in lines:
            cells = _columns(line)
            row = {name: number(cell) for name, cell in zip(names, cells, strict=False) if name and cell}
            skipped += bool(row) and not put_row(metrics, row)
        _close(reading, metrics, skipped)
        return [reading]

    def _of_one_run(self, reading: Reading, names: list[str]) -> list[str]:
        columns = [tuple(name.rsplit(" - ", 1)) if " - " in name else ("", name) for name in names]
        runs = {run for run, _ in columns if run}
        if len(runs) > 1:
            text = (
                f"the chart shows {len(runs)} runs, and a reading is of one: only {min(runs)!r} is read; export one run"
            )
            reading.remark("contradiction", text)
        keep = min(runs, default="")
        return [
            "_step"
            if name == "Step"
            else name
            if run == keep and not name.endswith(("__MIN", "__MAX", "_step"))
            else ""
            for run, name in columns
        ]


class ExportedRows(FileReader):
    """Reads JSON lines, and a JSON list of rows; an object over the whole file is a run's summary."""

    source: ClassVar[str] = "wandb"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether W&B's own names stand in what begins as JSON."""
        start = head.lstrip()[:1]
        if start not in (b"{", b"[") or b'"_step"' not in head:
            return False
        return b'"_timestamp"' in head or b'"_runtime"' in head or b'"_wandb"' in head

    def read(self, source: Source) -> list[Reading]:
        """One reading of rows or of a summary."""
        reading = Reading(self.source)
        metrics = NamedMetrics(reading)
        text = source.document()
        whole = parsed(text, MAX_DOCUMENT) if text is not None else None
        if isinstance(whole, dict) and "_step" in whole and "_wandb" in whole:
            _summary(reading, whole)
            return [reading]
        skipped = sum(not put_row(metrics, row) for row in self._rows(source, whole))
        _close(reading, metrics, skipped)
        return [reading]

    def _rows(self, source: Source, whole: Any) -> Iterator[dict[str, Any]]:
        if source.head.lstrip().startswith(b"["):
            yield from (row for row in whole if isinstance(row, dict)) if isinstance(whole, list) else ()
            return
        for _, line in source.lines():
            row = parsed(line) if line.strip() else None
            if isinstance(row, dict):
                yield row


class ConsoleSummary(LineReader):
    """Reads the summary that a run prints at its end. Of several that differ, as two runs print them, none counts."""

    source: ClassVar[str] = "wandb"
    anchors: ClassVar[tuple[bytes, ...]] = (_SHOWN.encode(),)

    def __init__(self) -> None:
        super().__init__()
        self._summaries: list[dict[str, str]] = []

    def line(self, text: str, number: int) -> bool:
        """Take the head of a summary, or a metric of the open one."""
        if _SHOWN in text:
            self._summaries = [*self._summaries[-1:], {}]
            return True
        match = _METRIC.search(text)
        if match and len(self._summaries[-1]) < _MAX_COLUMNS:
            self._summaries[-1][match["name"]] = match["value"]
        return match is not None

    def finish(self) -> Reading | None:
        """The reading of the summary."""
        if self._summaries and all(summary == self._summaries[0] for summary in self._summaries):
            _summary(self.reading, self._summaries[0])
        elif self._summaries:
            self.reading.records = 1
            self.reading.remark("contradiction", "summaries of W&B that differ are of several runs: none is read")
        return super().finish()


def _columns(line: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line.lstrip("\ufeff"))), [])
    except csv.Error:
        return []


def _summary(reading: Reading, row: dict[str, Any]) -> None:
    """The last value of each metric: stated figures, and no steps."""
    reading.records = 1
    known = dialect(set(row))
    if known is None:
        reading.remark("missing", "the summary's names are those of no framework that is known")
        return
    reading.remark(
        "note", f"names are read as {known.framework}'s ({known.source}); every figure is the last one logged"
    )
    for name, metric in known.metrics.items():
        raw = number(row.get(name))
        value = figure(metric, raw) if raw is not None else None
        path = _SUMMARY.get("step_seconds" if metric.field == RATE else metric.field)
        if path is None or value is None or path in reading.stated:
            continue
        if value != value or abs(value) == float("inf"):
            reading.diverged = True
        else:
            reading.state(path, value, f"{name}: {row[name]}")
    if any(path.startswith("measurement.stated.") for path in reading.stated):
        reading.state("measurement.stated.statistic", "last")


def _close(reading: Reading, metrics: NamedMetrics, skipped: int) -> None:
    metrics.finish()
    reading.records = max(reading.records, 1)
    if skipped:
        reading.remark("missing", f"{skipped} rows name no step and were left out")
    if not len(reading.steps):
        text = f"no figure of a training step, or a JSON list above {MAX_DOCUMENT >> 20} MiB (write one row a line)"
        reading.remark("missing", text)


READERS = (ExportedTable, ExportedRows, ConsoleSummary)
