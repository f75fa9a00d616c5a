"""nvidia-smi: the machine's GPUs, driver and CUDA, and what a monitor that ran along saw of clocks, power and memory.

The table of one moment is no measurement of a run: what it shows as used is kept as counters. A query or `dmon` that
was repeated is a monitor; the most that it saw used is each GPU's. MiB are 2**20 bytes, and so are the MB of `dmon`.
Sources: nvidia-smi's manual page, drivers 450 to 590 (590 says `KMD Version` and `CUDA UMD Version`).
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.base.units import MIB
from receipts.ingest.evidence.memory.nvidia_smi_query import Monitor
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

MAX_GPUS: Final = 1024
_VERSION = re.compile(r"\bDriver Version: (?P<version>\d[\d.]{1,20})|\bKMD Version: (?P<kernel>\d[\d.]{1,20})")
_CUDA = re.compile(r"\bCUDA (?:UMD )?Version: (?P<version>\d+\.\d+)")
_GPU = re.compile(
    r"\|\s{1,4}(?P<index>\d{1,4})\s{1,3}(?P<name>[A-Za-z][^|]{2,60}?)\s+(?:On|Off|N/A|ERR!)\s*"
    r"\|\s+(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s"
)
_USE = re.compile(r"\|\s{1,8}(?P<used>\d{1,9})MiB\s?/\s{1,8}(?P<total>\d{1,9})MiB\s*\|")
_PROCESS = re.compile(r"\|\s{1,6}(?P<gpu>\d{1,4})(?:\s+(?:N/A|\d{1,3})){0,2}\s+\d{1,8}\s+(?P<type>C|G|C\+G|M\+C)\s+\S")
_LISTED = re.compile(r"\bGPU (?P<index>\d{1,4}): (?P<name>[A-Za-z][^(\n]{2,60}?) \(UUID: GPU-[0-9a-fA-F-]{6,60}\)")
# Lines of a table between its head and the end of its processes, at sixteen GPUs and hundreds of processes.
_TABLE_LINES: Final = 5000


class NvidiaSmiReader(LineReader):
    """The tables, `-L`, `--query-gpu=… --format=csv` and `dmon`."""

    source: ClassVar[str] = "nvidia-smi"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"| NVIDIA-SMI ", b"(UUID: GPU-", b"memory.used", b"memory.total", b"driver_version", b"power.draw"),
        *(b"clocks.current.", b"clocks.sm", b"utilization.gpu", b"# gpu ", b"temperature.gpu"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[int, str] = {}
        self._memory: dict[int, tuple[int, int]] = {}
        self._busy: set[int] = set()
        self._first = 0
        self._gpu: int | None = None
        self._left = 0
        self._quiet = 0
        self._monitor: Monitor | None = None

    def line(self, text: str, number: int) -> bool:
        if "| NVIDIA-SMI " in text:
            self._head(text, number)
            return True
        if self._left:
            return self._table(text, number)
        if match := _LISTED.search(text):
            self._name(int(match["index"]), match["name"], number)
            return False
        if (head := Monitor.begins(text)) is not None:
            if self._monitor is None:
                self._monitor = head
            elif not self._monitor.goes_on(head):
                return False
            self._first = self._first or number
            return True
        return self._monitor is not None and self._monitor.row(text, number)

    def finish(self) -> Reading | None:
        reading = self.reading
        if self._monitor is not None and self._monitor.rows:
            reading.records += self._monitor.rows
            self._measured(self._monitor)
        if not reading.records:
            return None
        names = sorted(set(self._names.values()))
        if len(names) == 1 and not names[0].endswith("..."):
            reading.state("hardware.accelerator", names[0], names[0], self._first)
        elif len(names) > 1:
            reading.remark("note", f"several kinds of GPUs: {', '.join(names)[:200]}", self._first)
        if self._names:
            reading.counters["gpus"] = len(self._names)
        # A machine's GPUs are the run's where processes compute on them.
        if self._busy:
            reading.state("hardware.chips", len(self._busy), f"processes on {len(self._busy)} GPUs", self._first)
        for gpu, (used, total) in sorted(self._memory.items()):
            reading.counters[f"gpu.{gpu}.bytes_used"] = used
            reading.counters[f"gpu.{gpu}.bytes_limit"] = total
        return reading

    def _head(self, text: str, number: int) -> None:
        self.reading.records += 1
        self._first = self._first or number
        self._left, self._gpu, self._quiet = _TABLE_LINES, None, 0
        if match := _VERSION.search(text):
            version = match["version"] or match["kernel"]
            self.reading.state("platform.driver", version, version, number)
            self.reading.version = self.reading.version or version
        if match := _CUDA.search(text):
            # The newest CUDA that the driver takes; the runtime that a program brought may be older.
            self.reading.remark("note", f"the driver takes CUDA {match['version']}", number)

    def _table(self, text: str, number: int) -> bool:
        self._left -= 1
        stripped = text.strip()
        if not stripped.startswith(("|", "+")):
            # The table and that of its processes stand a blank line apart.
            self._quiet += 1
            self._left = 0 if self._quiet > 3 or stripped else self._left
            return self._left > 0
        self._quiet = 0
        if match := _GPU.search(text):
            self._gpu = int(match["index"])
            self._name(self._gpu, match["name"], number)
        elif (match := _USE.search(text)) and self._gpu is not None:
            self._used(self._gpu, int(match["used"]) * MIB, int(match["total"]) * MIB)
            self._gpu = None
        elif (match := _PROCESS.match(stripped)) and "C" in match["type"] and len(self._busy) < MAX_GPUS:
            self._busy.add(int(match["gpu"]))
        return self._left > 0

    def _name(self, gpu: int, name: str, number: int) -> None:
        self.reading.records += 1
        self._first = self._first or number
        if len(self._names) < MAX_GPUS:
            self._names[gpu] = name.strip()

    def _used(self, gpu: int, used: int, total: int) -> None:
        if gpu in self._memory or len(self._memory) < MAX_GPUS:
            self._memory[gpu] = max(self._memory.get(gpu, (0, 0)), (used, total))

    def _measured(self, monitor: Monitor) -> None:
        reading = self.reading
        for gpu, name in monitor.names.items():
            self._name(gpu, name, self._first)
        if monitor.driver:
            reading.state("platform.driver", monitor.driver, monitor.driver, self._first)
        for row in monitor.memory:
            if monitor.repeated and row.bytes_used is not None:
                reading.memory.append(row)
            elif row.bytes_limit is not None:
                self._used(row.chip or 0, row.bytes_used or 0, row.bytes_limit)
        if monitor.repeated:
            for leaf, value in monitor.health().items():
                reading.state(f"measurement.health.{leaf}", value, "", self._first)


READERS = (NvidiaSmiReader,)
