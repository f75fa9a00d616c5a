"""Memory lines of Megatron-LM and Megatron-Bridge, predicted footprints, and parameter counts.

Megatron-LM's MB are 1024² bytes (`report_memory`, and the theoretical report); Megatron-Bridge prints allocator
statistics by their own names, in gigabytes of 10⁹ bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from receipts.base.units import BYTES, MIB
from receipts.ingest import vocabulary
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.record import Form
from receipts.ingest.vocabulary import Label

MAX_ROWS: Final = 20_000
# The last of the cells that are kept ends it; a float is printed with its point.
MEMORY: Final = Form(
    re.compile(r"(?:\[Rank (?P<chip>\d{1,7})\] )?\(?after (?P<iterations>\d{1,12}) iterations\)? memory \((?:MB|GB)\)"),
    (re.compile(r"\| *(?P<label>[a-z][a-z \-]{0,40}): *(?P<word>[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?\d{1,3})?)"),),
    end=re.compile(r".*?(?:max (?:reserved|cached): *\d{1,20}\.\d|mem-max-reserved-[a-z]{4,10}: *\d).*(?<![|:\s])\s*$"),
)
_NAMES: Final[Mapping[str, str]] = vocabulary.table("megatron")["memory"]
_FOOTPRINT: Final = re.compile(r"(weight and optimizer|activation|total)=([0-9]{1,15}(?:\.[0-9]{1,6})?) MB")


def rows(reading: Reading, text: str, line: int) -> bool:
    """Append every rank's memory on a line (several may be glued); True where Megatron-Bridge printed it."""
    heads = list(MEMORY.head.finditer(text))
    bridge = False
    for head, stop in zip(heads, [*(match.start() for match in heads[1:]), len(text)], strict=False):
        cells = dict(MEMORY.cells[0].findall(text, head.end(), stop))
        bridge |= any(label.startswith("mem-") for label in cells)
        figures = _figures(cells)
        step = int(head["iterations"])
        if not any(figures.values()):
            if figures and not reading.memory:
                reading.memory_unavailable = "every figure is zero: the allocator was not the accelerator's"
            continue
        reading.memory_unavailable = None
        word = cells.get("mem-alloc-retires", "0")
        retries = int(word) if word.isdigit() and len(word) < 16 else 0
        if retries:
            reading.counters["mem-alloc-retires"] = max(retries, reading.counters.get("mem-alloc-retires", 0))
        if len(reading.memory) < MAX_ROWS:
            row = MemoryRow(
                Place(line),
                int(head["chip"]) if head["chip"] else None,
                "post_step0" if step <= 1 else "steady",
                step,
                **figures,
            )
            reading.memory.append(row)
    return bridge


def label(word: str) -> Label | None:
    """What a cell of a memory line is; None where it is not kept."""
    name = _name(word)
    return Label(name) if name else None


def footprints(reading: Reading, text: str) -> None:
    """Megatron's own estimate of the bytes of its most loaded chip; the first one stands."""
    for surface, value in _FOOTPRINT.findall(text):
        reading.predicted.setdefault(surface, round(float(value) * MIB))


def _figures(cells: dict[str, str]) -> dict[str, int]:
    """The cells that a receipt keeps, in bytes, by the fields of `MemoryRow`."""
    figures: dict[str, int] = {}
    for label, value in cells.items():
        name, size = _name(label), _size(label, value)
        if name and size is not None:
            figures[name] = size
    return figures


def _size(label: str, value: str) -> int | None:
    amount = float(value) * BYTES.get(label.rpartition("-")[2], MIB)
    return round(amount) if amount < 1e18 else None


def _name(label: str) -> str:
    word = label.rsplit("-", 1)[0] if label.startswith("mem-") else label.strip()
    return _NAMES.get(word, "")
