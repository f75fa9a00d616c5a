"""Weights & Biases: a run's own file, its configuration, summary and metadata, and exported histories.

Read without the wandb package. Names of metrics are the training program's, as `receipts.ingest.tracker` knows them.
``_step`` is the tracker's own counter, which is the training step only where the program logs it that way; where it
logs its step beside the metrics, that one counts.

Fields by wandb/proto/wandb_internal.proto: Record.history=2, config=5, run=17, exit=18, environment=26; History.item=1,
step=2, of which num=1; Config.update=1; an item's key=1, nested_key=2, integer=5, number=6, value_json=16;
Run.config=4, display_name=8, host=13, start_time=17, of which seconds=1; Exit.exit_code=1; Environment.python=2,
gpu_type=18, cuda_version=25.

Records of a run's ``run-ID.wandb``: a LevelDB log of `wandb_internal.Record` messages. The file begins with ``:W&B``,
0xBEE1 and a version; blocks of 32 KiB hold fragments (checksum, length, type), and a record goes over several of them
where it does not fit. The checksum is CRC-32 over type and data, without LevelDB's mask.

Histories are exported as CSV and JSON of the API, and as CSV of the page's charts. A run prints its summary at its end:
``wandb: Run summary:``, and a line for each metric.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import yaml

from receipts.ingest import tracker as wandb_config
from receipts.ingest.arguments import launch_of_words
from receipts.ingest.literals import csv_cells, number
from receipts.ingest.protobuf import Bytes, Message, Torn
from receipts.ingest.reader import FileReader, JsonReader, LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import MAX_DOCUMENT, Source
from receipts.ingest.tracker import DIALECTS, RATE, NamedMetrics, dialect, figure
from receipts.receipt.accelerators import find_accelerator

MAGIC: Final = b":W&B\xe1\xbe"
_HEADER: Final = struct.Struct("<IHB")
_START: Final = 7
_BLOCK: Final = 32768
_MAX_RECORD: Final = 4 << 20
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def records(source: Source, reading: Reading) -> Iterator[Message]:
    """The file's records in order. What is broken is reported in the reading's remarks and left out."""
    with source.open() as stream:
        data = Bytes(source, stream)
        data.take(_START)
        for at, body in _bodies(data, reading):
            try:
                yield Message(body)
            except Torn:
                reading.remark("broken", f"the record at byte {at} is no W&B record")


def _bodies(data: Bytes, reading: Reading) -> Iterator[tuple[int, bytes]]:
    part = bytearray()
    begun: int | None = None
    while True:
        left = _BLOCK - data.at % _BLOCK
        if left < _HEADER.size:
            # Too little for another fragment: the writer leaves it empty.
            if len(data.take(left)) < left:
                return
            continue
        at = data.at
        head = data.take(_HEADER.size)
        if len(head) < _HEADER.size:
            if head or begun is not None:
                reading.remark("broken", f"the last record is cut at byte {at}: the run still writes, or died")
            return
        crc, length, kind = _HEADER.unpack(head)
        if kind == 0 and length == 0:
            # Room that was made and never filled.
            data.take(_BLOCK - data.at % _BLOCK if data.at % _BLOCK else 0)
            continue
        if length > left - _HEADER.size or not _FULL <= kind <= _LAST:
            reading.remark("broken", f"no record begins at byte {at}; reading goes on with the next block")
            begun = None
            data.skip(left - _HEADER.size)
            continue
        body = data.take(length)
        if len(body) < length:
            reading.remark("broken", f"the last record is cut at byte {at}: the run still writes, or died")
            return
        if zlib.crc32(body, zlib.crc32(bytes((kind,)))) != crc:
            reading.remark("broken", f"the record at byte {at} has a wrong checksum and is left out")
            begun = None
            continue
        if kind == _FULL:
            yield at, body
        elif kind == _FIRST:
            part, begun = bytearray(body), at
        elif begun is not None:
            part += body
            if len(part) > _MAX_RECORD:
                reading.remark("note", f"the record at byte {begun} is larger than {_MAX_RECORD >> 20} MiB; left out")
                begun = None
            elif kind == _LAST:
                yield begun, bytes(part)
                begun = None


_STEP_NAMES: Final = tuple(dict.fromkeys(name for dialect in DIALECTS for name in dialect.step))
_MAX_YAML: Final = 256 * 1024  # characters; the parser reads some 100,000 a second
MAX_TEXT: Final = 1 << 18
_MAX_ITEMS: Final = 20_000


def put_row(metrics: NamedMetrics, row: Mapping[str, Any], step: int | None = None) -> bool:
    """Add one row of a history. False where it names no step."""
    for name in ("_step", *_STEP_NAMES):
        value = number(row.get(name))
        if value is not None and 0 <= value < 1e15 and value == int(value):
            step = int(value)
    if step is None:
        return False
    for name, value in row.items():
        if name.startswith("_") or name in _STEP_NAMES:
            continue
        figure = number(value)
        if figure is not None:
            metrics.add(step, name[:200], figure)
    return True


def parsed(text: str | bytes, limit: int = MAX_TEXT) -> Any:
    """A JSON value as W&B keeps it, NaN and infinities included; None where it is none or too long."""
    if len(text) > limit:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class RunFile(FileReader):
    """Reads ``run-ID.wandb``: history, configuration and exit code."""

    source: ClassVar[str] = "wandb"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it begins as these files do."""
        return head.startswith(MAGIC)

    def read(self, source: Source) -> list[Reading]:
        """One reading."""
        reading = Reading(self.source)
        metrics = NamedMetrics(reading)
        config: dict[str, Any] = {}
        rows = 0
        for record in records(source, reading):
            if (history := record.only(2)) is not None:
                rows += 1
                step = history.only(2)
                put_row(metrics, dict(_items(history, 1)), None if step is None else step.whole(1) or 0)
            elif (run := record.only(17)) is not None:
                for path, field in (("run.label", 8), ("run.host", 13)):
                    if text := run.text(field):
                        reading.state(path, text)
                started = run.only(17)
                if started is not None and 0 < (seconds := started.whole(1) or 0) < 2**33:
                    reading.state("run.started", datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
                config.update(item for update in run.inner(4) for item in _items(update, 1))
            elif (update := record.only(5)) is not None:
                config.update(_items(update, 1))
            elif (machine := record.only(26)) is not None:
                _machine(reading, machine.text(2), machine.text(18), machine.text(25))
            elif (end := record.only(18)) is not None:
                reading.state("run.exit_code", end.whole(1) or 0)
                reading.complete = True
        metrics.finish()
        if config:
            wandb_config.state_settings(reading, config)
        reading.records = max(reading.records, 1)
        if not rows:
            reading.remark("missing", "the run's file holds no history")
        elif not reading.complete:
            reading.remark("missing", "the run's file has no exit record: the run still writes, or died")
        return [reading]


class ConfigFile(FileReader):
    """Reads ``config.yaml`` of a run's folder: ``name: {desc: …, value: …}`` and W&B's own ``_wandb``."""

    source: ClassVar[str] = "wandb"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether W&B's own key is at the first level, and no JSON begins the file."""
        lines = head.split(b"\n")
        return any(line.startswith((b"wandb_version:", b"_wandb:")) for line in lines) and not head.startswith(b"{")

    def read(self, source: Source) -> list[Reading]:
        """One reading of configuration."""
        reading = Reading(self.source, records=1)
        text = source.document()
        document: Any = None
        if text is not None and len(text) <= _MAX_YAML:
            try:
                document = yaml.safe_load(text)
            except (yaml.YAMLError, RecursionError, ValueError) as error:
                reading.remark("broken", f"no YAML: {str(error)[:200]}")
                return [reading]
        if not isinstance(document, dict):
            reading.remark("broken", "the configuration is not a mapping, or larger than 256 KiB")
            return [reading]
        values = {
            str(name): item.get("value") if isinstance(item, dict) and "value" in item else item
            for name, item in document.items()
        }
        if not wandb_config.state_settings(reading, values, "config.yaml"):
            reading.remark("note", "the configuration's names are those of no framework that is known")
        return [reading]


class Metadata(JsonReader):
    """Reads ``wandb-metadata.json``: when it began, Python, the accelerator of the first host."""

    source: ClassVar[str] = "wandb"
    what: ClassVar[str] = "the metadata of a run"
    marks = (b'"executable"', b'"program"', b'"python"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """When it began, on what."""
        reading.records = 1
        program, words = document.get("codePath") or document.get("program"), document.get("args")
        if isinstance(program, str) and isinstance(words, list):
            reading.launch = launch_of_words(program, [str(word) for word in words])
        _machine(
            reading,
            document.get("python"),
            document.get("gpu") or document.get("gpu_type"),
            document.get("cudaVersion"),
        )
        if isinstance(host := document.get("host"), str) and host:
            reading.state("run.host", host[:200])
        started = document.get("startedAt")
        if isinstance(started, str) and started[:4].isdigit():
            reading.state("run.started", started if started.endswith("Z") else f"{started}Z", started)


def _items(update: Message, number: int) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for item in update.inner(number)[:_MAX_ITEMS]:
        name = item.text(1) or ".".join(part[:200].decode("utf-8", "replace") for part in item.pieces(2))
        if (whole := item.whole(5)) is not None:
            pairs.append((name, (whole & (1 << 64) - 1) >> 1 ^ -(whole & 1)))  # zigzag
        elif (real := item.real(6, "<d")) is not None:
            pairs.append((name, real))
        elif words := item.pieces(16):
            pairs.append((name, parsed(words[-1])))
    return pairs


def _machine(reading: Reading, python: Any, chip: Any, cuda: Any) -> None:
    for path, value in (("platform.python", python), ("platform.cuda", cuda)):
        if isinstance(value, str) and value:
            reading.state(path, value.removeprefix("CPython ").strip()[:80])
    accelerator = find_accelerator(chip[:200]) if isinstance(chip, str) else None
    if accelerator is not None:
        reading.state("hardware.accelerator", accelerator.key, chip)


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
        names = csv_cells(head.split(b"\n", 1)[0].decode("utf-8", "replace"))
        if "_step" in names and ("_timestamp" in names or "_runtime" in names):
            return True
        return bool(names) and names[0] == "Step" and any(name.endswith("__MIN") and " - " in name for name in names)

    def read(self, source: Source) -> list[Reading]:
        """One reading; a chart of several runs is none's."""
        reading = Reading(self.source)
        metrics = NamedMetrics(reading)
        lines = (line for _, line in source.lines())
        names = csv_cells(next(lines, ""))[:_MAX_COLUMNS]
        if names and names[0] == "Step" and "_step" not in names:
            columns = [tuple(name.rsplit(" - ", 1)) if " - " in name else ("", name) for name in names]
            runs = {run for run, _ in columns if run}
            if len(runs) > 1:
                what = f"only {min(runs)!r} is read; export one run"
                reading.remark("contradiction", f"the chart shows {len(runs)} runs, and a reading is of one: {what}")
            others = {column for column in columns if column[1].endswith(("__MIN", "__MAX", "_step"))}
            others |= {column for column in columns if column[0] != min(runs, default="")}
            names = ["_step" if item[1] == "Step" else "" if item in others else item[1] for item in columns]
        skipped = 0
        for line in lines:
            cells = csv_cells(line)
            row = {name: number(cell) for name, cell in zip(names, cells, strict=False) if name and cell}
            skipped += bool(row) and not put_row(metrics, row)
        _close(reading, metrics, skipped)
        return [reading]


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


READERS = (RunFile, ConfigFile, Metadata, ExportedTable, ExportedRows, ConsoleSummary)
