"""Nsight Systems: the kernel table of `nsys stats`, as text and as CSV, and the exported SQLite file.

Source: the reports `cuda_gpu_kern_sum` and `cuda_gpu_kern_gb_sum` (before 2023 `gpukernsum`) of the Nsight Systems
user guide. The head of a table names its unit, `Total Time (ns)`; the time of all kernels of one name is in it.
"""

from __future__ import annotations

import csv
import re
from typing import ClassVar, Final

from receipts.ingest.evidence.witnesses.kernels_table import TableReader, count, seconds
from receipts.ingest.evidence.witnesses.nsys_database import read_database
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

_TOTAL = re.compile(r"Total Time \((?P<unit>ns|us|µs|ms|s|sec)\)")
_MAGIC: Final = b"SQLite format 3\0"
_MARKS: Final = (b"CUPTI_ACTIVITY", b"StringIds", b"TARGET_INFO", b"META_DATA_EXPORT", b"ENUM_NSYS")
_GRAPH_LAUNCHES: Final = ("cudaGraphLaunch", "cuGraphLaunch")


class NsysStatsReader(TableReader):
    """Kernel sums, graph launches and copies to the host out of the tables that `nsys stats` prints."""

    source: ClassVar[str] = "nsys"
    anchors: ClassVar[tuple[bytes, ...]] = (b"Total Time (",)
    limits = ("missing", "the table holds no step marks: how many steps it covers is unknown")

    def __init__(self) -> None:
        super().__init__()
        self._unit = "ns"
        self._csv: list[str] = []

    def line(self, text: str, number: int) -> bool:
        if match := _TOTAL.search(text):
            self._unit = {"sec": "s"}.get(match["unit"], match["unit"])
            self._csv = _split(text) if "," in text and "  " not in text.strip() else []
            return self.begin(text, number)
        return self.taken(dict(zip(self._csv, _split(text), strict=False))) if self._csv else self.table(text)

    def row(self, cells: dict[str, str]) -> bool:
        total = next((seconds(cells[key], self._unit) for key in cells if key.startswith("Total Time")), None)
        if total is None:
            return False
        instances, calls = count(cells.get("Instances", "")), count(cells.get("Num Calls", ""))
        name, operation = cells.get("Name", ""), cells.get("Operation", cells.get("Operations", ""))
        if instances is not None and name and "Range" not in cells and "Style" not in cells:
            self.reading.records += 1
            self.histogram.kernel(name, instances, total)
        elif calls is not None and name.partition("_v")[0] in _GRAPH_LAUNCHES:
            self.reading.records += 1
            self.histogram.operator(name.partition("_v")[0], calls)
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
