"""Nsight Systems: the kernel table of `nsys stats`, as text and as CSV, and the exported SQLite file.

Source: the reports `cuda_gpu_kern_sum` and `cuda_gpu_kern_gb_sum` (before 2023 `gpukernsum`) of the Nsight Systems
user guide. The head of a table names its unit, `Total Time (ns)`; the time of all kernels of one name stands in it.
"""

from __future__ import annotations

import csv
import re
from typing import ClassVar, Final

from receipts.ingest.evidence.reader import FileReader, LineReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source
from receipts.ingest.evidence.witnesses.kernels_histogram import Histogram
from receipts.ingest.evidence.witnesses.kernels_table import TableColumns, columns, count, seconds
from receipts.ingest.evidence.witnesses.nsys_database import read_database

_TOTAL = re.compile(r"Total Time \((?P<unit>ns|us|µs|ms|s|sec)\)")
_MAGIC: Final = b"SQLite format 3\0"
_MARKS: Final = (b"CUPTI_ACTIVITY", b"StringIds", b"TARGET_INFO", b"META_DATA_EXPORT", b"ENUM_NSYS")
_MAX_ROWS: Final = 1_000_000
_GRAPH_LAUNCHES: Final = ("cudaGraphLaunch", "cuGraphLaunch")


class NsysStatsReader(LineReader):
    """Kernel sums, graph launches and copies to the host out of the tables that `nsys stats` prints."""

    source: ClassVar[str] = "nsys"
    anchors: ClassVar[tuple[bytes, ...]] = (b"Total Time (",)

    def __init__(self) -> None:
        super().__init__()
        self._histogram = Histogram()
        self._head = ""
        self._unit = "ns"
        self._columns: TableColumns | None = None
        self._names: list[str] = []
        self._first = 0
        self._rows = 0

    def line(self, text: str, number: int) -> bool:
        if match := _TOTAL.search(text):
            self._unit = {"sec": "s"}.get(match["unit"], match["unit"])
            self._head, self._columns, self._names = text, None, []
            self._first = self._first or number
            if "," in text and "  " not in text.strip():
                self._names = _split(text)
            return True
        if self._names:
            return self._take(dict(zip(self._names, _split(text), strict=False)))
        if self._columns is None:
            self._columns = columns(self._head, text)
            return self._columns is not None
        return bool(text.strip()) and self._take(self._columns.cells(text))

    def finish(self) -> Reading | None:
        if self.reading.records:
            self._histogram.write(self.reading, line=self._first)
            missing = "the table holds no step marks: how many steps it covers is unknown"
            self.reading.remark("missing", missing, self._first)
        return super().finish()

    def _take(self, cells: dict[str, str]) -> bool:
        self._rows += 1
        total = next((seconds(cells[key], self._unit) for key in cells if key.startswith("Total Time")), None)
        if total is None or self._rows > _MAX_ROWS:
            return False
        instances, calls = count(cells.get("Instances", "")), count(cells.get("Num Calls", ""))
        name, operation = cells.get("Name", ""), cells.get("Operation", cells.get("Operations", ""))
        if instances is not None and name and "Range" not in cells and "Style" not in cells:
            self.reading.records += 1
            self._histogram.kernel(name, instances, total)
        elif calls is not None and name.partition("_v")[0] in _GRAPH_LAUNCHES:
            self.reading.records += 1
            self._histogram.operator(name.partition("_v")[0], calls)
        elif operation.startswith("[CUDA memcpy D") and operation.endswith(("Host]", "DtoH]")):
            self.reading.records += 1
            copies = count(cells.get("Count", cells.get("Operations", ""))) or 0
            self.reading.host_transfers = (self.reading.host_transfers or 0) + copies
        return True


def _split(row: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([row]), [])]
    except csv.Error:
        return []


class NsysDatabaseReader(FileReader):
    """`nsys export --type sqlite`: every kernel with its device and time."""

    source: ClassVar[str] = "nsys"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(_MAGIC) and any(mark in head for mark in _MARKS)

    def read(self, source: Source) -> list[Reading]:
        reading = Reading(self.source)
        read_database(reading, source)
        return [reading] if reading.records or reading.remarks else []


READERS = (NsysStatsReader, NsysDatabaseReader)
