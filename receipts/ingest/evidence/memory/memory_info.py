"""Memory of a chip as its runtime tells it: `xm.get_memory_info`, JAX's `device.memory_stats()`, and compiled plans.

Printed dicts (Python or JSON, on one line or many) and ``name=value`` lines. Where the runtime has none, it says so
with an error or None; that is *unavailable*, and never zero. What XLA planned for a program (`memory_analysis()`) is no
memory in use: its figures are counters and the compiler's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from receipts.base.units import KIB
from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading

SUFFIX: Final = "_size_in_bytes"
NAME: Final = re.compile(r"(?:host_)?(?:generated_code|argument|output|alias|temp)_size_in_bytes|peak_memory_in_bytes")


def planned(values: Mapping[str, int | None]) -> bool:
    """Whether the figures of one record are those of a plan."""
    return any(NAME.fullmatch(name) for name in values)


def put_plan(reading: Reading, values: Mapping[str, int | None], line: int) -> None:
    """Put one plan into the reading. Of several programs' plans the largest stands: the step, not its helpers."""
    sizes = {name: value for name, value in values.items() if value is not None and NAME.fullmatch(name)}
    if not sizes:
        return
    if reading.counters:
        reading.remark("note", "a further program's plan; the largest one stands", line)
        if _need(sizes) <= _need(reading.counters):
            return
    reading.counters = sizes
    reading.compile.argument_bytes = sizes.get("argument_size_in_bytes")
    reading.compile.output_bytes = sizes.get("output_size_in_bytes")
    reading.compile.temp_bytes = sizes.get("temp_size_in_bytes")


def _need(values: Mapping[str, int]) -> int:
    return sum(values.get(f"{name}{SUFFIX}", 0) for name in ("argument", "output", "temp"))


MAX_DEPTH: Final = 16
MAX_OPEN_LINES: Final = 400
MAX_TEXT: Final = 1 << 16

# torch_xla up to 2.3 counts KiB; bytes since, with a peak from 2.6 on. JAX names what is in use.
_NAMES: Final = frozenset(
    (
        *("kb_free", "kb_total", "bytes_used", "peak_bytes_used", "bytes_limit", "bytes_in_use"),
        *("peak_bytes_in_use", "bytes_reserved", "peak_bytes_reserved", "bytes_reservable_limit", "num_allocs"),
        *("largest_alloc_size", "largest_free_block_bytes", "pool_bytes", "peak_pool_bytes"),
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
        self._open: list[_Record] = []
        self._bare = _Record()
        self._before = ""
        self._pending = ""
        self._announced = ("", 0)
        self._lines = 0
        self._none = 0
        self._more = False

    def line(self, text: str, number: int) -> bool:
        """Take a line; more are wanted inside a dict that is spread over lines."""
        if len(text) > MAX_TEXT:
            self.reading.remark("broken", "a line too long for memory statistics; its beginning was read", number)
            text = text[:MAX_TEXT]
        unavailable = _UNAVAILABLE.search(text)
        if unavailable is not None:
            self._unavailable(unavailable[0])
        if "memory_stats" in text:
            self._announced = text.strip()[-120:], number
        none = len(_NONE.findall(text))
        if none:
            self._none += none
            self.reading.records += none
        at = 0
        self._more = False
        for match in _TOKEN.finditer(text):
            if match["close"] == ")" and not (self._open and self._open[-1].plan):
                continue
            self._token(match, text[at : match.start()], number)
            at = match.end() if match["open"] or match["close"] else at
        self._before = text[at:].strip()[-120:]
        if self._open:
            self._lines += 1
            if self._lines > MAX_OPEN_LINES:
                self._open.clear()
            return bool(self._open)
        # A dict whose brace stood on a line of its own, or a line of ``name=value``.
        if not self._more:
            self._flush()
        return bool(self._bare.values)

    def finish(self) -> Reading | None:
        """Rows, plans, or the reason why there are none."""
        for record in (*reversed(self._open), self._bare):
            self._emit(record)
        if self._none and not self.reading.memory and self.reading.memory_unavailable is None:
            self.reading.memory_unavailable = "memory_stats() is None on every device that was asked"
        return super().finish()

    def _token(self, match: re.Match[str], before: str, number: int) -> None:
        """Take one token; ``before`` is what is between it and the last brace of its line."""
        if match["open"]:
            label = f"{self._pending} {before or self._before}".strip()
            if len(self._open) < MAX_DEPTH:
                self._open.append(_Record(number, label[-200:], match["open"] != "{"))
                self._lines = 0
            self._pending = ""
        elif match["close"]:
            if not self._open:
                self._flush()
            elif self._open[-1].plan == (match["close"] == ")"):
                self._emit(self._open.pop())
            self._pending = ""
        elif match["last"]:
            self._pending = match["last"]
        else:
            self._value(match, before, number)

    def _value(self, match: re.Match[str], before: str, number: int) -> None:
        record = self._open[-1] if self._open else self._bare
        self._pending = ""
        name = match["name"]
        if match["text"] is not None:
            record.texts[name] = match["text"]
        elif name in _NAMES or NAME.fullmatch(name):
            if record is self._bare and name in record.values:
                self._flush()
                record = self._bare
            word = match["value"]
            record.values[name] = None if word[0] in "Nn" else int(word.partition(".")[0])
            self._more = True
            if record is self._bare and len(record.values) == 1:
                announced, at = self._announced
                # A brace on a line of its own may stand between.
                record.number, record.label = number, before.strip()[-120:] or (announced if number - at <= 2 else "")

    def _flush(self) -> None:
        """What was read outside any dict is one record; the device that was named stays for the dict that follows."""
        self._emit(self._bare)
        self._bare = _Record(texts={} if self._bare.values else self._bare.texts)

    def _emit(self, record: _Record) -> None:
        if not record.values:
            return
        if record.plan or planned(record.values):
            put_plan(self.reading, record.values, record.number)
            self.reading.records += 1
            return
        row = _row(record, self._device(record))
        if row is not None:
            self.reading.remember(row)

    def _device(self, record: _Record) -> str:
        """The words that may name the chip: the dict's own, its label, and those of the dict around it."""
        around = self._open[-1] if self._open else self._bare
        texts = [record.texts.get("device", ""), around.texts.pop("device", "")]
        return " ".join(item for item in (*texts, record.label) if item)

    def _unavailable(self, reason: str) -> None:
        self.reading.records += 1
        self.reading.memory_unavailable = self.reading.memory_unavailable or reason


def _row(record: _Record, label: str) -> MemoryRow | None:
    """The row of one record; None where it holds neither use, peak nor limit."""
    values = record.values
    total, free = values.get("kb_total"), values.get("kb_free")
    if total is not None:
        used = None if free is None else (total - free) * KIB
        limit: int | None = total * KIB
        peak = None
    else:
        used = _first(values, "bytes_in_use", "bytes_used")
        limit = values.get("bytes_limit")
        peak = _first(values, "peak_bytes_in_use", "peak_bytes_used")
    if used is None and limit is None and peak is None:
        return None
    chip, step = _whose(label)
    # A GPU client's pool is what it has taken from the device, live or not.
    reserved = values.get("peak_pool_bytes")
    return MemoryRow(Place(record.number), chip, None, step, used, limit, peak, reserved)


def _first(values: dict[str, int | None], *names: str) -> int | None:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _whose(label: str) -> tuple[int | None, int | None]:
    """Chip and step that a label names: ``TPU_3(…)``, ``chip 0:``, ``step 10:``; a bare number is neither."""
    device = _DEVICE.search(label)
    chip = int(device[1]) if device else None
    end = _LABEL_END.search(label)
    step = None
    if end is not None:
        if _STEP_WORD.fullmatch(end["word"]):
            step = int(end["number"])
        elif chip is None and _CHIP_WORD.fullmatch(end["word"]):
            chip = int(end["number"])
    return chip, step


READERS = (MemoryInfoReader,)
