"""Memory in DeepSpeed's log: what `see_memory_usage` prints beside the throughput timer.

Source: `deepspeed/runtime/utils.py`, 0.1 (2020) to 0.19 (2026). ``GB`` is 2**30 bytes.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.base.units import BINARY
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.peaks import Peaks

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


def usage(text: str, line: int, peaks: Peaks) -> bool:
    """Take a line of `see_memory_usage`, which resets the peaks whenever it prints: the largest line counts."""
    cells = _USAGE.findall(text) + [(*cell, "G") for cell in _OLD_USAGE.findall(text)]
    known = [(name, word, unit) for label, word, unit in cells if (name := _NAMES.get(label))]
    for name, word, unit in known:
        if (value := number(word)) is not None:
            peaks.keep(name, value * BINARY[unit], line, last=name == "bytes_used")
    return bool(known)
