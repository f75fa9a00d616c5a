"""Memory of a chip as its runtime reports it: dictionaries of torch_xla and JAX, compiled plans, `tpu-info`.

Memory of a chip as its runtime tells it: `xm.get_memory_info`, JAX's `device.memory_stats()`, and compiled plans.
Printed dicts (Python or JSON, on one line or many) and ``name=value`` lines. Where the runtime has none, it says so
with an error or None; that is *unavailable*, and never zero. What XLA planned for a program (`memory_analysis()`) is
no memory in use: its figures are counters and the compiler's bytes.

The tables of `tpu-info`: chips, memory of the runtime's devices, versions. All versions from 0.1 to 0.14. Drawn with
box characters or as Markdown; ``--streaming`` repeats them. A device of the runtime (0, 1, 2, 3 or 8, 9, 12, 13) is
not the chip's number in ``/dev``, and the two are not joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from receipts.base.units import KIB
from receipts.ingest import vocabulary
from receipts.ingest.literals import SIZE, binary_size
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import MemoryRow, Place, Reading

_PLANNED: Final = re.compile(
    r"(?:host_)?(?:generated_code|argument|output|alias|temp)_size_in_bytes|peak_memory_in_bytes"
)
_NEEDED: Final = ("argument", "output", "temp")
MAX_DEPTH: Final = 16
MAX_OPEN_LINES: Final = 400
MAX_TEXT: Final = 1 << 16

# What is a field of a row. torch_xla up to 2.3 counts KiB; bytes since, with a peak from 2.6 on. JAX names what is in
# use. A GPU client's pool is what it has taken from the device, live or not.
_FIELDS: Final[Mapping[str, str]] = {
    "bytes_in_use": "bytes_used",
    "bytes_used": "bytes_used",
    "bytes_limit": "bytes_limit",
    "peak_bytes_in_use": "peak_bytes",
    "peak_bytes_used": "peak_bytes",
    "peak_pool_bytes": "peak_reserved_bytes",
}
_ROW: Final = ("bytes_used", "bytes_limit", "peak_bytes", "peak_reserved_bytes")
_NAMES: Final = frozenset(
    (
        *_FIELDS,
        *("kb_free", "kb_total", "bytes_reserved", "peak_bytes_reserved", "bytes_reservable_limit", "num_allocs"),
        *("largest_alloc_size", "largest_free_block_bytes", "pool_bytes"),
    )
)
_KEY: Final = r"[\"']?(?P<name>[A-Za-z_]\w{0,80})[\"']?"
_TOKEN = re.compile(
    rf"(?P<open>CompiledMemoryStats\(|\{{)|(?P<close>[}})])"
    rf"|{_KEY}\s?(?P<sign>[:=])\s?(?:[\"'](?P<text>[^\"']{{0,200}})[\"']"
    r"|(?P<value>-?\d{1,20}(?:\.0)?\b|None\b|null\b)(?!\.?\d))"
    rf"|{_KEY.replace('name', 'last')}\s?[:=]\s?$"
)
_NONE = re.compile(r"\bmemory_stats(?:\(\))?[\"']?\s{0,4}[:=]?\s{0,4}(?:None|null)\b")
_UNAVAILABLE = re.compile(
    r"GetAllocatorStats is not supported|MemoryInfo not supported for SPMD virtual device"
    r"|MemoryInfo (?:is )?not (?:supported|implemented)"
)
_LABEL_END = re.compile(r"(?P<word>[^\W\d]{2,24})(?:[ _:#=]|\(id=|\[){0,3}(?P<number>\d{1,6})\b[^\w{]{0,6}$")
_DEVICE = re.compile(
    r"\b(?:TPU|GPU|CPU|Tpu|Cuda|Gpu|tpu|gpu|cuda|rocm|xla|cpu|[Dd]evice)(?:Device)?(?:\(id=|[ :_])(\d{1,6})\b"
)
# "chip 0", "device 3", "на чипе 0", "设备 2": a word for the chip, in the languages that notebooks are written in.
_CHIP_WORD = re.compile(
    r"(?:chip|device|dev|gpu|tpu|cuda|core|accelerator)s?|чип\w{0,3}|устройств\w{0,3}|芯片|设备", re.I
)
_STEP_WORD = re.compile(r"steps?|iter(?:ation)?s?|шаг\w{0,2}", re.IGNORECASE)


@dataclass(slots=True)
class _Record:
    """One dict as it is read: its numbers, and the words that say whose they are."""

    number: int = 0
    label: str = ""
    plan: bool = False
    values: dict[str, int | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


class MemoryInfoReader(LineReader):
    """Reads printed memory statistics of TPUs and GPUs under torch_xla and JAX, and static plans."""

    source: ClassVar[str] = "memory-info"
    anchors = vocabulary.anchors("memory_info")

    def __init__(self) -> None:
        super().__init__()
        # Dicts within dicts; the lowest holds what is printed outside of any.
        self._stack = [_Record()]
        self._before = self._pending = ""
        self._announced = ("", 0)
        self._lines = self._none = 0
        self._more = False

    def line(self, text: str, number: int) -> bool:
        """Take a line; more are wanted inside a dict that is spread over lines."""
        if len(text) > MAX_TEXT:
            self.reading.remark("broken", "a line too long for memory statistics; its beginning was read", number)
            text = text[:MAX_TEXT]
        if (unavailable := _UNAVAILABLE.search(text)) is not None:
            self.reading.records += 1
            self.reading.memory_unavailable = self.reading.memory_unavailable or unavailable[0]
        if "memory_stats" in text:
            self._announced = text.strip()[-120:], number
        none = len(_NONE.findall(text))
        self._none += none
        self.reading.records += none
        at, self._more = 0, False
        for match in _TOKEN.finditer(text):
            if match["close"] == ")" and not self._stack[-1].plan:
                continue
            self._token(match, text[at : match.start()], number)
            at = match.end() if match["open"] or match["close"] else at
        self._before = text[at:].strip()[-120:]
        if len(self._stack) > 1:
            self._lines += 1
            if self._lines > MAX_OPEN_LINES:
                del self._stack[1:]
            return len(self._stack) > 1
        # A dict whose brace stood on a line of its own, or a line of ``name=value``.
        if not self._more:
            self._flush()
        return bool(self._stack[0].values)

    def finish(self) -> Reading | None:
        """Rows, plans, or the reason why there are none."""
        while self._stack:
            self._emit(self._stack.pop())
        if self._none and not self.reading.memory and self.reading.memory_unavailable is None:
            self.reading.memory_unavailable = "memory_stats() is None on every device that was asked"
        return super().finish()

    def _token(self, match: re.Match[str], before: str, number: int) -> None:
        """Take one token; ``before`` is what is between it and the last brace of its line."""
        pending, self._pending = self._pending, match["last"] or ""
        if match["open"]:
            if len(self._stack) <= MAX_DEPTH:
                label = f"{pending} {before or self._before}".strip()
                self._stack.append(_Record(number, label[-200:], match["open"] != "{"))
                self._lines = 0
        elif match["close"]:
            if len(self._stack) == 1:
                self._flush()
            elif self._stack[-1].plan == (match["close"] == ")"):
                self._emit(self._stack.pop())
        elif match["text"] is not None:
            self._stack[-1].texts[match["name"]] = match["text"]
        elif (name := match["name"]) and (name in _NAMES or _PLANNED.fullmatch(name)):
            word = match["value"]
            bare = len(self._stack) == 1
            if bare and name in self._stack[0].values:
                self._flush()
            record = self._stack[-1]
            record.values[name] = None if word[0] in "Nn" else int(word.partition(".")[0])
            self._more = True
            if bare and len(record.values) == 1:
                announced, at = self._announced
                # A brace on a line of its own may stand between.
                record.number, record.label = number, before.strip()[-120:] or (announced if number - at <= 2 else "")

    def _flush(self) -> None:
        """What was read outside any dict is one record; the device that was named stays for the dict that follows."""
        bare = self._stack[0]
        self._emit(bare)
        self._stack[0] = _Record(texts={} if bare.values else bare.texts)

    def _emit(self, record: _Record) -> None:
        if not record.values:
            return
        if record.plan or any(map(_PLANNED.fullmatch, record.values)):
            reading = self.reading
            reading.records += 1
            # What a program was planned to need. The largest of several stands: the step, not its helpers.
            named = {name: size for name, size in record.values.items() if size is not None}
            plan = {name: size for name, size in named.items() if _PLANNED.fullmatch(name)}
            if plan and reading.counters:
                reading.remark("note", "a further program's plan; the largest one stands", record.number)
            need, known = (
                sum(of.get(f"{name}_size_in_bytes", 0) for name in _NEEDED) for of in (plan, reading.counters)
            )
            if plan and (not reading.counters or need > known):
                reading.counters = plan
                for name in _NEEDED:
                    setattr(reading.compile, f"{name}_bytes", plan.get(f"{name}_size_in_bytes"))
            return
        sizes: dict[str, int | None] = {}
        for name, size in record.values.items():
            if name in _FIELDS and size is not None:
                sizes.setdefault(_FIELDS[name], size)
        if (total := record.values.get("kb_total")) is not None:
            free = record.values.get("kb_free")
            sizes = {"bytes_used": None if free is None else (total - free) * KIB, "bytes_limit": total * KIB}
        # The words that may name the chip: the dict's own, those of the dict around it, its label.
        device = self._stack[-1].texts.pop("device", "") if self._stack else ""
        label = " ".join(filter(None, (record.texts.get("device", ""), device, record.label)))
        if any(sizes.get(field) is not None for field in _ROW[:3]):
            # Chip and step that a label names: `TPU_3(…)`, `chip 0:`, `step 10:`; a bare number is neither.
            ordinal, end, step = _DEVICE.search(label), _LABEL_END.search(label), None
            chip = int(ordinal[1]) if ordinal else None
            if end is not None and _STEP_WORD.fullmatch(end["word"]):
                step = int(end["number"])
            elif end is not None and chip is None and _CHIP_WORD.fullmatch(end["word"]):
                chip = int(end["number"])
            self.reading.remember(MemoryRow(Place(record.number), chip, None, step, *map(sizes.get, _ROW)))


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
            self.reading.records += 1
            name, value = version["name"].lower(), version["value"]
            if _UNKNOWN.match(value):
                return self._table
            if name.startswith("libtpu"):
                self.reading.state("platform.libtpu", value, value, number)
            elif name.startswith("tpu-info"):
                self.reading.version = value
            elif "hardware.accelerator" not in self.reading.stated:
                # "v6e" and "7x" are tpu-info's names of the chip; the table spells them "TPU v6e" and "TPU7x".
                chip = f"TPU{value}" if value[0].isdigit() else f"TPU {value}"
                self.reading.state("hardware.accelerator", chip, value, number)
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
            if len(self._paths) < MAX_DEVICES:
                self._paths.add(cells[0])
            self._first = self._first or number
            self.reading.records += 1
            named = _TYPE.fullmatch(cells[1]) if len(cells) > 1 else None
            if named is not None and "hardware.accelerator" not in self.reading.stated:
                self.reading.state("hardware.accelerator", named["name"], cells[1], number)
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
        row = MemoryRow(Place(number), device, bytes_used=binary_size(usage[1]), bytes_limit=binary_size(usage[2]))
        earlier = self._rows.get(device)
        if earlier is not None or len(self._rows) < MAX_DEVICES:
            self._rows[device] = row if earlier is None else replace(row, place=earlier.place)
            self._highest[device] = max(self._highest.get(device, 0), row.bytes_used or 0)
        return True


READERS = (MemoryInfoReader, TpuInfoReader)
