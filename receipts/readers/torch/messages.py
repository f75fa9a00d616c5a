"""What torch and libraries print beside the steps: memory, the watchdog, NCCL of itself, hints of another way taken.

A rank's stderr may hold nothing but the watchdog of its process groups, and it says how the run ended. Source:
`ProcessGroupNCCL.cpp` of torch 1.13 to 2.x. The outcome itself is read from the end of the log. What NCCL itself prints
with ``NCCL_DEBUG=INFO`` (or to ``NCCL_DEBUG_FILE``) tells its version, its network and the ranks of its communicators,
of which the largest need not be the whole job.

A library may say that it takes another way than the one it was made for. A hint of a missing package is a remark. Where
the line says which implementation of a path's leaf runs from there on, that is seen. Sources: Megatron-LM `core/`,
transformers' Mamba and gated delta-net models, flash-linear-attention, torch `nn/functional`, DeepSpeed `ops`.

torch's caching allocator speaks in `memory_summary()`, `memory_stats()`, and prints of its peaks. The summary's KiB,
MiB and GiB are binary; so were the KB, MB and GB of older versions. A peak that a script prints counts only where its
unit is beside it, or in its name: ``rank=0 peak_alloc_gib=12.5``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar, Final

from receipts.base.units import BINARY, LETTERS
from receipts.ingest import literals, vocabulary
from receipts.ingest.prefix import is_source, rank_of, repeated, spoken
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


_TIMEOUT: Final = re.compile(
    r"caught collective operation timeout: WorkNCCL\([^)]{0,200}?OpType=(?P<what>\w{1,40})[^\n]{0,200}?"
    r"Timeout\(ms\)=(?P<limit>\d{1,12})"
)
_MAX_NOTES: Final = 20
_VERSION: Final = re.compile(r"\bNCCL version (\d[\w.+]{1,60})")
_NETWORK: Final = re.compile(r"NCCL INFO Using (?:network|internal Network) (\S{1,40})")
_RANKS: Final = re.compile(r"NCCL INFO .{0,120}?\bn[rR]anks (\d{1,7})\b")


class NcclWatchdog(LineReader):
    """Reads collectives that timed out."""

    source: ClassVar[str] = "nccl-watchdog"
    anchors: ClassVar[tuple[bytes, ...]] = (b"caught collective operation timeout",)

    def line(self, text: str, number: int) -> bool:
        """Take one timeout."""
        match = _TIMEOUT.search(text)
        self.reading.records += 1
        if match is not None and self.reading.records <= _MAX_NOTES:
            rank = rank_of(text, match.start())
            where = f"rank {rank}: " if rank is not None else ""
            seconds = int(match["limit"]) / 1e3
            self.reading.remark("note", f"{where}{match['what']} timed out after {seconds:,.0f} s", number)
        return False


class NcclInfo(LineReader):
    """Reads what NCCL says of itself when a communicator is made."""

    source: ClassVar[str] = "nccl"
    anchors: ClassVar[tuple[bytes, ...]] = (b"NCCL INFO ", b"NCCL version ")

    def __init__(self) -> None:
        super().__init__()
        self._most = self._informs = 0
        self._networks: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        """Take one line."""
        self._informs += "NCCL INFO " in text
        if match := _VERSION.search(text):
            self.reading.state("platform.nccl", match[1], f"NCCL version {match[1]}", number)
        elif match := _RANKS.search(text):
            self._most = max(self._most, int(match[1]))
        elif (match := _NETWORK.search(text)) and len(self._networks) < _MAX_NOTES:
            self._networks.add(match[1])
        return False

    def finish(self) -> Reading | None:
        """The reading; a version alone is that of the program which prints it."""
        self.reading.records += self._informs
        if self._most:
            network = f" over {', '.join(sorted(self._networks))}" if self._networks else ""
            what = f"NCCL's largest communicator has {self._most:,} ranks{network}: at least so many chips"
            self.reading.remark("note", what)
        return super().finish()


_SLOW: Final = r"The fast path is not available because (?:one|on) of [^\n]{1,300}"
# What a message says of the path: a leaf and its value.
_PATHS: Final = (
    ("ssm", "sequential", rf"{_SLOW}Falling back to (?:the )?(?:naive|sequential|slow) implementation"),
    ("ssm", "mambapy", rf"{_SLOW}Falling back to the mamba\.py"),
    ("ssm", "torch", rf"{_SLOW}is not installed\. Falling back to torch implementation"),
    (
        *("attention", "math"),
        r"[Ff]alling back to (?:the )?(?:eager|manual|naive|math) (?:attention|implementation of attention)",
    ),
)
_OTHERS: Final = "|".join(
    (
        r"(?:(?:Transformer Engine and )?Apex|Transformer Engine) (?:is|are) not installed\. "
        r"Falling back to [^\n\"']{1,80}",
        r"(?:DeepEP|HybridEP|deep_ep) [^\n\"']{1,80}[Ff]alling back to [^\n\"']{1,60}",
        r"[Gg]rouped ?(?:GEMM|gemm|MM|mm) [^\n\"']{1,100}[Ff]alling back to [^\n\"']{1,80}",
        r"Attempting to all-gather an unsupported quantized tensor\. Falling back to high-precision",
        r"cuBLASMp backend does not support bulk overlaps for [^\n\"]{1,120}",
        r"CuTeDSL [^\n\"']{1,120}[Ff]alling back to the CUDA C\+\+ kernel",
        r"Falling back to eager execution under torch\.compile: [^\n\"']{1,120}",
        r"(?i:fused (?:softmax|rope|cross[ -]entropy|layer ?norm) (?:is |kernel )?not available)[^\n\"']{0,100}",
    )
)
_HINTS: Final = tuple((leaf, value, re.compile(form)) for leaf, value, form in (*_PATHS, ("", "", _OTHERS)))


class FallbackHintsReader(LineReader):
    """Each message once, with its first line."""

    source: ClassVar[str] = "fallback-hints"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"alling back to", b"does not support bulk overlaps", b"The fast path is not available"),
        *(b"softmax not available", b"kernel not available", b"is not available, using"),
    )

    def line(self, text: str, number: int) -> bool:
        text = text[:2000]
        for leaf, value, form in _HINTS:
            match = form.search(text)
            if match is None or is_source(text, match.start()):
                continue
            self.reading.records += 1
            if leaf:
                self.reading.see(leaf, value, "backend", number, count=repeated(text))
            self.reading.remark("note", match[0].strip()[:300], number)
            break
        return False


READERS = (TorchMemoryReader, NcclWatchdog, NcclInfo, FallbackHintsReader)
