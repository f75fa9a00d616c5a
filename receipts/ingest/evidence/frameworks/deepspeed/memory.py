"""Memory in DeepSpeed's log: that of the throughput timer, and what `see_memory_usage` prints.

Source: `deepspeed/runtime/utils.py`, 0.1 (2020) to 0.19 (2026). ``GB`` is 2**30 bytes.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Final

from receipts.base.units import BINARY
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.record import RecordRows
from receipts.ingest.evidence.steps import ABSENT

_USAGE = re.compile(r"(?<!\w)(Max_MA|Max_CA|MA|CA)\s+([\d.]{1,20})\s*([MG])B")
_OLD_USAGE = re.compile(r"\b(max_mem_allocated|max_cache_allocated|mem_allocated): ([\d.]{1,20}) GB")
_LARGEST: Final = 1e16
_NAMES: Final = {
    "MA": "bytes_used",
    "Max_MA": "peak_bytes",
    "Max_CA": "peak_reserved_bytes",
    "mem_allocated": "bytes_used",
    "max_mem_allocated": "peak_bytes",
    "max_cache_allocated": "peak_reserved_bytes",
}


class DeepSpeedMemory:
    """The largest peaks and the last use, of either printer."""

    def __init__(self) -> None:
        self._timer: dict[str, int] = {}
        self._usage: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._sizes: list[float] = []

    def timer(self, rows: RecordRows) -> None:
        """What throughput lines print: the last use, and the largest peak."""
        columns = [rows.figures.get(name, ()) for name in ("bytes_used", "peak_bytes")]
        if not any(columns):
            return
        for line, *sizes in zip_longest(rows.columns.ends, *columns, fillvalue=ABSENT):
            if sizes != self._sizes:
                self._sizes = sizes
                self._keep(self._timer, "bytes_used", sizes[0], int(line), last=True)
                self._keep(self._timer, "peak_bytes", sizes[1], int(line))

    def pipeline(self, rows: RecordRows) -> None:
        """The peaks that a fork of the pipeline engine prints with its steps."""
        for name in ("peak_bytes", "peak_reserved_bytes"):
            for line, size in zip(rows.lines, rows.figures.get(name, ()), strict=False):
                self._keep(self._usage, name, size, line)

    def usage(self, text: str, line: int) -> bool:
        """Take a line of `see_memory_usage`, which resets the peaks whenever it prints: the largest line counts."""
        cells = _USAGE.findall(text) + [(*cell, "G") for cell in _OLD_USAGE.findall(text)]
        known = [(name, word, unit) for label, word, unit in cells if (name := _NAMES.get(label))]
        for name, word, unit in known:
            if (value := number(word)) is not None:
                self._keep(self._usage, name, value * BINARY[unit], line, last=name == "bytes_used")
        return bool(known)

    def rows(self, reading: Reading) -> None:
        """Add what was found to a reading."""
        for kind, values in (("timer", self._timer), ("usage", self._usage)):
            if values:
                phase = "steady" if kind == "timer" else None
                reading.memory.append(MemoryRow(Place(self._places.get(kind, 0)), phase=phase, **values))

    def _keep(self, into: dict[str, int], name: str, size: float, line: int, *, last: bool = False) -> None:
        if 0 < size < _LARGEST and (last or round(size) > into.get(name, 0)):
            into[name] = round(size)
            self._places["timer" if into is self._timer else "usage"] = line
