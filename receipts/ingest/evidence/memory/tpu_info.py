"""The tables of `tpu-info`: chips, memory of the runtime's devices, versions. All versions from 0.1 to 0.14.

Drawn with box characters or as Markdown; ``--streaming`` repeats them. A device of the runtime (0, 1, 2, 3 or 8, 9, 12,
13) is not the chip's number in ``/dev``, and the two are not joined.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.evidence.memory.sizes import SIZE, size
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import MemoryRow, Place, Reading

MAX_DEVICES: Final = 16_384
MAX_CELLS: Final = 2_000

_CELLS = re.compile(r"[│┃|]")
_GAP = re.compile(r"\s{2,}")
_USAGE = re.compile(rf"{SIZE} ?/ ?{SIZE}")
_PATH = re.compile(r"/dev/(?:accel_?|vfio/)\d{1,5}")
_TYPE = re.compile(r"(?P<name>TPU ?v?\w{1,8})(?: chip)?")
_HBM_COLUMN = re.compile(r"(?:HBM|Memory) usage", re.IGNORECASE)
_VERSION = re.compile(
    r"^\W{0,8}(?P<name>tpu-info version|libtpu version|accelerator type) ?: (?P<value>\S.{0,200}?)\s*$", re.IGNORECASE
)
_UNKNOWN = re.compile(r"unknown|n/a|none|missing", re.IGNORECASE)
_TITLE = re.compile(r"TPU Runtime Utilization")
_NO_METRICS = re.compile(r"Libtpu metrics unavailable", re.IGNORECASE)


class TpuInfoReader(LineReader):
    """Reads the output of `tpu-info`."""

    source: ClassVar[str] = "tpu-info"
    anchors = vocabulary.anchors("tpu_info")

    def __init__(self) -> None:
        super().__init__()
        self._paths: set[str] = set()
        self._rows: dict[int, MemoryRow] = {}
        self._highest: dict[int, int] = {}
        self._table = False
        self._empty = False
        self._first = 0

    def line(self, text: str, number: int) -> bool:
        """Take a line; more are wanted inside the table of memory."""
        text = text[:MAX_CELLS]
        version = _VERSION.match(text)
        if version is not None:
            self._version(version["name"].lower(), version["value"], number)
            return self._table
        if _TITLE.fullmatch(text.strip()):
            # The rows below may have lost the frame and the head.
            self._table = True
            return True
        if _NO_METRICS.search(text):
            self._empty = True
            self.reading.records += 1
        cells = [cell.strip() for cell in _CELLS.split(text)]
        cells = cells[1:-1] if len(cells) > 2 else []
        if len(cells) == 1:
            # A page that lost the bars between the cells keeps the blanks around them.
            cells = _GAP.split(cells[0])
        if not cells:
            # A rule of the table, or what ends it.
            self._table = self._table and (not text.strip() or text.strip()[0] in "┏┡└├━╇+|")
            return self._table
        if _PATH.fullmatch(cells[0]):
            self._chip(cells, number)
        elif len(cells) > 1 and _HBM_COLUMN.match(cells[1]):
            self._table = True
        elif self._table:
            self._table = self._usage(cells, number)
        return self._table

    def finish(self) -> Reading | None:
        """Chips of this host, and each device's memory as it was last shown."""
        self.reading.memory.extend(self._rows.values())
        for device, highest in self._highest.items():
            used = self._rows[device].bytes_used
            if used is not None and highest > used:
                place = self._rows[device].place.line
                self.reading.remark("note", f"device {device} was seen at {highest:,} bytes; the last is kept", place)
        if self._paths:
            self.reading.state("hardware.chips", len(self._paths), f"{len(self._paths)} chips in /dev", self._first)
        if self._empty and not self._rows:
            self.reading.memory_unavailable = "tpu-info found no runtime to ask"
        return super().finish()

    def _chip(self, cells: list[str], number: int) -> None:
        if len(self._paths) < MAX_DEVICES:
            self._paths.add(cells[0])
        self._first = self._first or number
        self.reading.records += 1
        named = _TYPE.fullmatch(cells[1]) if len(cells) > 1 else None
        if named is not None and "hardware.accelerator" not in self.reading.stated:
            self.reading.state("hardware.accelerator", named["name"], cells[1], number)

    def _usage(self, cells: list[str], number: int) -> bool:
        """A row of the memory table; False where another table begins."""
        if not cells[0].isdigit() or len(cells[0]) > 6:
            return set(cells[0]) <= set("-: ")
        device = int(cells[0])
        usage = _USAGE.fullmatch(cells[1]) if len(cells) > 1 else None
        self.reading.records += 1
        if usage is None:
            self._empty = True
            return True
        row = MemoryRow(Place(number), device, bytes_used=size(usage[1]), bytes_limit=size(usage[2]))
        earlier = self._rows.get(device)
        if earlier is not None or len(self._rows) < MAX_DEVICES:
            self._rows[device] = row if earlier is None else replace(row, place=earlier.place)
            self._highest[device] = max(self._highest.get(device, 0), row.bytes_used or 0)
        return True

    def _version(self, name: str, value: str, number: int) -> None:
        self.reading.records += 1
        if _UNKNOWN.match(value):
            return
        if name.startswith("libtpu"):
            self.reading.state("platform.libtpu", value, value, number)
        elif name.startswith("tpu-info"):
            self.reading.version = value
        elif "hardware.accelerator" not in self.reading.stated:
            # "v6e" and "7x" are tpu-info's names of the chip; the table spells them "TPU v6e" and "TPU7x".
            name = f"TPU{value}" if value[0].isdigit() else f"TPU {value}"
            self.reading.state("hardware.accelerator", name, value, number)


READERS = (TpuInfoReader,)
