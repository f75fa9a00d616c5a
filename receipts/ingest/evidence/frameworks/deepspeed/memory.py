"""Memory in DeepSpeed's log: that of the throughput timer, and what `see_memory_usage` prints.

Source: `deepspeed/runtime/utils.py`, 0.1 (2020) to 0.19 (2026). ``GB`` is 2**30 bytes.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.base.units import BINARY
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading

_USAGE = re.compile(r"(?<!\w)(Max_MA|Max_CA|MA|CA)\s+([\d.]{1,20})\s*([MG])B")
_OLD_USAGE = re.compile(r"\b(max_mem_allocated|max_cache_allocated|mem_allocated): ([\d.]{1,20}) GB")
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
        self._words: tuple[str | None, str | None] = (None, None)

    def timer(self, used: str | None, peak: str | None, line: int) -> None:
        """What the throughput timer prints, such as ``6.01GB``."""
        if (used, peak) != self._words:
            self._words = used, peak
            self._keep(self._timer, "bytes_used", used, line, last=True)
            self._keep(self._timer, "peak_bytes", peak, line)

    def usage(self, text: str, line: int) -> bool:
        """Take a line of `see_memory_usage`, which resets the peaks whenever it prints: the largest line counts."""
        cells = [(label, f"{word}{unit}B") for label, word, unit in _USAGE.findall(text)]
        cells += [(label, f"{word}GB") for label, word in _OLD_USAGE.findall(text)]
        known = [(name, word) for label, word in cells if (name := _NAMES.get(label))]
        for name, word in known:
            self._keep(self._usage, name, word, line, last=name == "bytes_used")
        return bool(known)

    def peak(self, name: str, size: int) -> None:
        """A peak in bytes that something else printed."""
        self._usage[name] = max(self._usage.get(name, 0), size)

    def rows(self, reading: Reading) -> None:
        """Add what was found to a reading."""
        for kind, values in (("timer", self._timer), ("usage", self._usage)):
            if values:
                reading.memory.append(
                    MemoryRow(
                        Place(self._places.get(kind, 0)),
                        phase="steady" if kind == "timer" else None,
                        bytes_used=values.get("bytes_used"),
                        peak_bytes=values.get("peak_bytes"),
                        peak_reserved_bytes=values.get("peak_reserved_bytes"),
                    )
                )

    def _keep(self, into: dict[str, int], name: str, word: str | None, line: int, *, last: bool = False) -> None:
        if word is None or len(word) < 3 or word[-2] not in BINARY or (value := number(word[:-2])) is None:
            return
        if 0 <= value < 1e7:
            size = round(value * BINARY[word[-2]])
            if last or size > into.get(name, -1):
                into[name] = size
                self._places["timer" if into is self._timer else "usage"] = line
