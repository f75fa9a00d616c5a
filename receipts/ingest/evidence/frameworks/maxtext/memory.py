"""Memory as MaxText prints it. Its GB are GiB: every figure was divided by 2**30 before it was rounded.

`max_utils.py`: ``Using (GB) 44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))`` is bytes_in_use / bytes_limit
of one device; ``Total memory size: 14.2 GB, Output size: …`` is what the compiler planned for the step, and since
July 2026 says *estimated*. Forks print the plan in bytes.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.literals import size as size_of
from receipts.ingest.reading import MemoryRow, Place, Reading

_USING = re.compile(r"Using \(GB\)\s+([\d.]{1,20})\s*/\s*([\d.]{1,20})\s*\([^)]{1,24}%\)\s+on\s+(\S.{0,200})")
_ORDINAL = re.compile(r"(?:[A-Za-z]+Device\()?(?:[A-Za-z]+[_:]|\bid=)(\d{1,6})")
_CELL = re.compile(
    r"\b(total|output|temp|argument|alias|host temp)(?: estimated)?(?: memory)? size:\s*(\d[\d.]{0,25})(?:\s*(GB|GiB))?"
)
_LABEL = re.compile(r"Memstats:\s*(.{1,200}?):?\s*$")
# A label is at the beginning of its line, behind a prefix at most.
_LABELLED: Final = 400
_LEAVES: Final = {"output": "output_bytes", "temp": "temp_bytes", "argument": "argument_bytes"}


def phase(text: str) -> str | None:
    """The receipt's phase that a label such as ``After params initialized`` names."""
    label = _LABEL.search(text[:_LABELLED])
    if label is None:
        return None
    words = label[1].lower()
    if "compil" in words:
        return "post_compile"
    if "init" in words or "load" in words:
        return "post_init"
    return None


def device_row(text: str, number: int, phase_name: str | None) -> MemoryRow | None:
    """One device's use and limit, or None where the line is about the host's memory."""
    match = _USING.search(text)
    if match is None:
        return None
    used, limit = size_of(f"{match[1]} GiB"), size_of(f"{match[2]} GiB")
    if used is None or limit is None:
        return None
    ordinal = _ORDINAL.search(match[3])
    chip = int(ordinal[1]) if ordinal else None
    return MemoryRow(Place(number), chip, phase_name, bytes_used=used, bytes_limit=limit)


def plan(reading: Reading, text: str) -> bool:
    """Read the compiler's plan of a step; False where the line is none. The largest plan of a file stands."""
    cells = {name.lower(): (value, unit) for name, value, unit in _CELL.findall(text.lower())}
    in_bytes = "in bytes" in text
    sizes = {
        name: size
        for name, (value, unit) in cells.items()
        if (size := size_of(value if in_bytes and not unit else f"{value} GiB")) is not None
    }
    if not {"output", "temp"} <= sizes.keys():
        return False
    earlier = reading.compile.temp_bytes
    if earlier is not None and earlier > sizes["temp"]:
        return True
    for name, leaf in _LEAVES.items():
        # 0.0 GB is a rounded figure: less than 0.05 GiB, and not nothing.
        if sizes.get(name):
            setattr(reading.compile, leaf, sizes[name])
    for name in ("total", "host temp"):
        if sizes.get(name):
            reading.counters[f"{name.replace(' ', '_')}_bytes"] = sizes[name]
    return True


class MemoryLines:
    """What MaxText prints of memory; a head names the phase that the rows below it are of."""

    def __init__(self) -> None:
        self._phase: str | None = None

    def take(self, reading: Reading, text: str, number: int) -> bool:
        """Take one line; whether it has a figure, or says that there is none."""
        if "Memstats unavailable" in text:
            # Behind the words is the error; prose that quotes them goes on otherwise.
            if (why := text.partition("Memstats unavailable")[2]).startswith((",", ":")) or not why.strip():
                reading.memory_unavailable = why.lstrip(",: ")[:200] or "unavailable"
            return True
        if "Memstats:" in text:
            self._phase = phase(text)
            return False
        if "Using (GB)" not in text:
            return plan(reading, text)
        row = device_row(text, number, self._phase)
        if row is not None:
            reading.memory.append(row)
        return row is not None
