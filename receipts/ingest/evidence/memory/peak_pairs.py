"""Peaks of memory that scripts print as pairs: ``rank=0 device=0 peak_alloc_gib=12.5 peak_reserved_gib=13.0``.

Only keys that name a binary unit, or bytes, are read: whether a script's `gb` is 1e9 or 2**30 is not said.
"""

from __future__ import annotations

import re
from typing import ClassVar

from receipts.base.units import BINARY
from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import MemoryRow, Place

_PEAK = re.compile(
    r"\b(?:peak|max)_(?:mem(?:ory)?_)?(?P<what>alloc(?:ated)?|reserved)(?:_mem(?:ory)?)?_(?P<unit>gib|mib|kib|bytes)\s?[=:]\s?"
    r"(?P<value>\d{1,20}(?:\.\d{1,9})?)\b"
)
_RANK = re.compile(r"\b(?:global_)?rank\s?[=:]\s?(\d{1,7})\b")
_DEVICE = re.compile(r"\b(?:device|gpu|chip)\s?[=:]\s?(?:cuda:)?(\d{1,5})\b")
_STEP = re.compile(r"\b(?:step|iteration|iter)\s?[=:]\s?(\d{1,10})\b")


class PeakPairsReader(LineReader):
    """One row a line, of the rank that it names, else of its device."""

    source: ClassVar[str] = "memory-info"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"peak_alloc", b"peak_reserved_", b"peak_mem_alloc", b"peak_memory_alloc", b"peak_mem_reserved"),
        *(b"peak_memory_reserved", b"max_alloc", b"max_reserved_"),
    )

    def line(self, text: str, number: int) -> bool:
        peaks: dict[str, int] = {}
        for match in _PEAK.finditer(text[:4000]):
            peaks.setdefault(match["what"][:5], round(float(match["value"]) * BINARY.get(match["unit"][0].upper(), 1)))
        if peaks:
            chip, step = _RANK.search(text) or _DEVICE.search(text), _STEP.search(text)
            self.reading.remember(
                MemoryRow(
                    Place(number),
                    int(chip[1]) if chip else None,
                    step=int(step[1]) if step else None,
                    peak_bytes=peaks.get("alloc"),
                    peak_reserved_bytes=peaks.get("reser"),
                )
            )
        return False


READERS = (PeakPairsReader,)
