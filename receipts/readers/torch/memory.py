"""torch's caching allocator in its own words: `memory_summary()`, `memory_stats()`, and prints of its peaks.

The summary's KiB, MiB and GiB are binary; so were the KB, MB and GB of older versions. A peak that a script prints
counts only where its unit is beside it, or in its name: ``rank=0 peak_alloc_gib=12.5``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar, Final

from receipts.base.units import BINARY, LETTERS
from receipts.ingest import literals, vocabulary
from receipts.ingest.prefix import spoken
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import MemoryRow, Place, Reading

TABLE_LINES: Final = 60
MAX_TEXT: Final = 1 << 16

_TITLE = re.compile(r"PyTorch \w{2,6} memory summary, device ID (?P<device>\d{1,4})")
_OOMS = re.compile(r"CUDA OOMs: (\d{1,12})\s*\|\s*cudaMalloc retries: (\d{1,12})")
_CELL: Final = r"(-?\d{1,20}) ?(B|[KMGTP]i?B)?\s*"
_METRIC = re.compile(rf"\|\s*(?P<name>Allocated memory|GPU reserved memory)\s*\|\s*{_CELL}\|\s*{_CELL}\|")
_RULE = re.compile(r"\s*\|[=-]{20,}\|")
_STATS = re.compile(
    r"['\"](?P<name>(?:allocated|reserved)_bytes\.all\.(?:current|peak)|num_ooms|num_alloc_retries)['\"]\s?[:,]\s?"
    r"(?P<value>\d{1,20})\b"
)
_PRINTED = re.compile(
    r"\bmax_memory_(?P<what>allocated|reserved|cached)\b[^0-9\n]{0,40}?[:= ]\s?(?P<number>\d[\d,]{0,24}(?:\.\d{1,9})?)"
    r"\s?(?P<unit>bytes|B|[KMGT]i?B)\b"
)
# Of a script's own names those with a binary unit: whether its `gb` is 1e9 or 2**30 is not said.
_NAMED = re.compile(
    r"\b(?:peak|max)_(?:mem(?:ory)?_)?(?P<what>alloc(?:ated)?|reserved)(?:_mem(?:ory)?)?_(?P<unit>gib|mib|kib|bytes)\s?[=:]\s?"
    r"(?P<number>\d{1,20}(?:\.\d{1,9})?)\b"
)
_STATS_FIELDS: Final = {
    "allocated_bytes.all.current": "bytes_used",
    "allocated_bytes.all.peak": "peak_bytes",
    "reserved_bytes.all.peak": "peak_reserved_bytes",
}
_RANK = re.compile(r"\b(?:global_)?rank\s?[=:]\s?(\d{1,7})\b")
_CHIP = re.compile(r"\b(?:cuda:|(?:GPU|gpu|device|chip)(?: ?|\s?[=:]\s?(?:cuda:)?))(\d{1,5})\b")
_STEP = re.compile(r"\b(?:step|iteration|iter)\s?[=:]\s?(\d{1,10})\b")


class TorchMemoryReader(LineReader):
    """Reads what torch.cuda's memory functions print."""

    source: ClassVar[str] = "memory-info"
    anchors = (
        *vocabulary.anchors("torch_memory"),
        *(b"peak_alloc", b"peak_reserved_", b"peak_mem_alloc", b"peak_memory_alloc", b"peak_mem_reserved"),
        *(b"peak_memory_reserved", b"max_alloc", b"max_reserved_"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._table: MemoryRow | None = None
        self._left = 0
        self._stats: MemoryRow | None = None
        self._seen: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        """Take a line; more are wanted inside a summary's table."""
        text = text[:MAX_TEXT]
        title = _TITLE.search(text)
        if title is not None:
            self._end_table()
            self._table, self._left = MemoryRow(Place(number), int(title["device"])), TABLE_LINES
            return True
        if (row := self._table) is not None:
            body = spoken(text).body
            events = _OOMS.search(body)
            if events is not None:
                self._count("num_ooms", int(events[1]))
                self._count("num_alloc_retries", int(events[2]))
            match = _METRIC.search(body)
            if match is not None:
                current, peak = _bytes(match[2], match[3]), _bytes(match[4], match[5])
                if match["name"] == "Allocated memory":
                    row = self._table = replace(row, bytes_used=current, peak_bytes=peak)
                else:
                    row = self._table = replace(row, peak_reserved_bytes=peak)
            self._left -= 1
            if self._left <= 0 or (row.peak_reserved_bytes is not None and _RULE.match(body)):
                self._end_table()
            return self._table is not None
        taken = False
        for match in _STATS.finditer(text):
            self._stat(match["name"], int(match["value"]), text[: match.start()], number)
            taken = True
        if not taken:
            sizes: dict[str, Any] = {}
            for match in (*_PRINTED.finditer(text), *_NAMED.finditer(text)):
                unit, letter = match["unit"], match["unit"][0].upper().removeprefix("B")
                if letter and "i" not in unit:
                    self.reading.remark("note", f"{unit} is read as a power of 1000; the script may mean 1024", number)
                factor = (BINARY if "i" in unit else LETTERS)[letter]
                field = "peak_bytes" if match["what"].startswith("alloc") else "peak_reserved_bytes"
                sizes.setdefault(field, round(float(match["number"].replace(",", "")) * factor))
            if sizes:
                # A rank on the line goes before its device, which every host counts from 0.
                chip, step = _RANK.search(text) or _CHIP.search(text), _STEP.search(text)
                rank = int(chip[1]) if chip else spoken(text).rank
                self._keep(MemoryRow(Place(number), rank, step=int(step[1]) if step else None, **sizes))
        return False

    def finish(self) -> Reading | None:
        """Rows of every summary and print."""
        self._end_table()
        self._end_stats()
        failed, tried = (self.reading.counters.get(name, 0) for name in ("num_ooms", "num_alloc_retries"))
        if failed:
            what = f"{failed} allocation{'s' * (failed > 1)} failed for want of memory, and {tried} were tried again"
            self.reading.remark("note", f"the allocator counts it: {what}")
        return super().finish()

    def _end_table(self) -> None:
        row, self._table = self._table, None
        self._keep(row)

    def _stat(self, name: str, value: int, before: str, number: int) -> None:
        """One key of a `memory_stats()` dict; a key that comes again begins another dict."""
        if name in self._seen:
            self._end_stats()
        self._seen.add(name)
        if not name.endswith(("current", "peak")):
            self._count(name, value)
            return
        if self._stats is None:
            chip = _CHIP.search(before[:200])
            self._stats = MemoryRow(Place(number), int(chip[1]) if chip else None)
        if (field := _STATS_FIELDS.get(name)) is not None:
            changed: dict[str, Any] = {field: value}
            self._stats = replace(self._stats, **changed)

    def _end_stats(self) -> None:
        row, self._stats = self._stats, None
        self._seen.clear()
        self._keep(row)

    def _keep(self, row: MemoryRow | None) -> None:
        if row is not None and (row.bytes_used, row.peak_bytes, row.peak_reserved_bytes) != (None, None, None):
            self.reading.remember(row)

    def _count(self, name: str, value: int) -> None:
        """The highest of all devices: each allocator counts for itself, and from its start."""
        self.reading.counters[name] = max(value, self.reading.counters.get(name, 0))


def _bytes(figure: str, unit: str | None) -> int | None:
    return literals.size(f"{figure} {unit or 'B'}")


READERS = (TorchMemoryReader,)
