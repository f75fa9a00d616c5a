"""nvidia-smi: the machine's GPUs, driver and CUDA, and what a monitor that ran along saw of clocks, power and memory.

The table of one moment is no measurement of a run: what it shows as used is kept as counters. A query or `dmon` that
was repeated is a monitor; the most that it saw used is each GPU's. MiB are 2**20 bytes, and so are the MB of `dmon`.
Sources: nvidia-smi's manual page, drivers 450 to 590 (590 says `KMD Version` and `CUDA UMD Version`).

Rows that nvidia-smi writes again and again: `--query-gpu=… --format=csv -l 1`, and `dmon`.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from statistics import median
from typing import ClassVar, Final

from receipts.base.units import MIB
from receipts.ingest import literals
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import MemoryRow, Place, Reading, Tally

MAX_SAMPLES: Final = 500_000
MAX_GPUS: Final = 1024
_UNIT = re.compile(r"\s*\[(?P<unit>[^\]]{1,12})\]$")
_SIZE = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,6})?)(?:\s?(?P<unit>[KMGT]i?B))?")
_THROTTLES: Final = ("clocks_throttle_reasons.", "clocks_event_reasons.")
# Names of the query, and of dmon, by what they are.
_FIELDS: Final = {
    "index": "gpu",
    "gpu": "gpu",
    "name": "name",
    "gpu_name": "name",
    "driver_version": "driver",
    "memory.used": "used",
    "fb": "used",
    "memory.total": "total",
    "power.draw": "power",
    "pwr": "power",
    "power.draw.instant": "power",
    "clocks.sm": "clock",
    "clocks.current.sm": "clock",
    "pclk": "clock",
    "temperature.gpu": "temperature",
    "gtemp": "temperature",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
}
# A throttle that is no fault: nothing to do, or an application's own clocks.
_IDLE: Final = frozenset({"gpu_idle", "applications_clocks_setting"})
# The bits of `clocks_event_reasons.active`, by the names of its fellow fields (nvml.h, nvmlClocksEventReason*).
_REASONS: Final = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
_MASK = re.compile(r"0x[0-9a-fA-F]{1,16}")
# Whoever looked at these saw whether anything slowed the clocks: the general hardware slowdown holds its two kinds.
_ALL_REASONS: Final = frozenset({"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown"})


class Monitor:
    """Samples of several GPUs, in columns that the head names."""

    def __init__(self, fields: list[str], units: list[str], *, csv: bool) -> None:
        self._fields, self._units, self._csv = fields, units, csv
        self._seen = Tally[int](MAX_GPUS)
        self._clocks: defaultdict[int, array[float]] = defaultdict(lambda: array("d"))
        self._power = array("d")
        self._hottest: float | None = None
        self._throttled: set[str] = set()
        self._looked_at: frozenset[str] | None = None
        self._misses = 0
        self.rows = 0
        self.names: dict[int, str] = {}
        self.driver = ""
        self._memory: dict[int, tuple[int | None, int | None, int]] = {}

    @classmethod
    def begins(cls, text: str) -> Monitor | None:
        """The monitor whose head this line is: a CSV head of known fields, or dmon's `# gpu  pwr …`."""
        if len(text) > 4000:
            return None
        if "# gpu" in text:
            words = text[text.index("#") + 1 :].split()
            known = {"gpu", "sm", "pwr"} <= set(words) or "fb" in words
            return cls(words, [""] * len(words), csv=False) if known else None
        cells = [cell.strip() for cell in text.split(",")]
        units = [match["unit"] if (match := _UNIT.search(cell)) else "" for cell in cells]
        fields = [_UNIT.sub("", cell) for cell in cells]
        count = sum(field in _FIELDS or field.startswith(_THROTTLES) for field in fields)
        plausible = all(re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)*", field) for field in fields)
        return cls(fields, units, csv=True) if plausible and 0 < count >= min(2, len(fields)) else None

    def goes_on(self, other: Monitor) -> bool:
        """Whether ``other`` is this head once more, as `dmon` and loops repeat it."""
        return self._fields == other._fields

    @property
    def memory(self) -> list[MemoryRow]:
        """The most that each GPU was seen to use, and the line that shows it."""
        return [MemoryRow(Place(line), gpu, None, None, *sizes) for gpu, (*sizes, line) in sorted(self._memory.items())]

    @property
    def repeated(self) -> bool:
        """Whether some GPU was looked at more than once."""
        return max(self._seen.values(), default=0) > 1

    def row(self, text: str, number: int) -> bool:
        """Take a line; False where the rows have ended."""
        if text.startswith("#"):
            return True
        cells = [cell.strip() for cell in text.split(",")] if self._csv else text.split()
        if len(cells) != len(self._fields) or len(text) > 4000:
            return self._miss()
        values: dict[str, str] = {}
        reasons: dict[str, str] = {}
        for name, unit, cell in zip(self._fields, self._units, cells, strict=True):
            if name in _FIELDS:
                values.setdefault(_FIELDS[name], f"{cell} {unit}" if unit and cell.isdigit() else cell)
            elif name.startswith(_THROTTLES):
                reasons[name.rpartition(".")[2]] = cell
        # Without an index only one GPU can be told from the others.
        index = values.get("gpu", "0" if values else "")
        if not (index.isdigit() and len(index) < 5) or all(_number(value) is None for value in values.values()):
            return self._miss()
        self._misses = 0
        gpu = int(index)
        if self._seen.add(gpu):
            self.rows += 1
            if model := values.get("name"):
                self.names[gpu] = model[:80]
            self.driver = self.driver or values.get("driver", "")[:40]
            most, limit, line = self._memory.get(gpu, (None, None, 0))
            used, total = _bytes(values.get("used")), _bytes(values.get("total"))
            if used is not None and used >= (most or 0):
                most, line = used, number
            self._memory[gpu] = most, limit if total is None else total, line
            clock, power, heat = (_number(values.get(name)) for name in ("clock", "power", "temperature"))
            if clock is not None and self.rows <= MAX_SAMPLES:
                self._clocks[gpu].append(clock)
            if power is not None and self.rows <= MAX_SAMPLES:
                self._power.append(power)
            if heat is not None and self.rows <= MAX_SAMPLES:
                self._hottest = heat if self._hottest is None else max(self._hottest, heat)
        # Take a row's throttle reasons; what it does not show (`[N/A]`) is no statement that there was none.
        looked = {name for name, cell in reasons.items() if cell in ("Active", "Not Active")}
        throttled = {name for name in looked - _IDLE if reasons[name] == "Active"}
        if _MASK.fullmatch(mask := reasons.get("active", "")):
            looked |= _ALL_REASONS
            throttled |= {name for bit, name in _REASONS.items() if int(mask, 16) & bit}
        self._throttled |= throttled
        self._looked_at = frozenset(looked) if self._looked_at is None else self._looked_at & looked
        return True

    def health(self) -> dict[str, float | list[str]]:
        """Median clock and power over all samples, the highest temperature, throttles, and the spread of clocks."""
        readings: dict[str, float | list[str]] = {}
        if clocks := [median(samples) for samples in self._clocks.values()]:
            readings["clock_mhz"] = median(value for samples in self._clocks.values() for value in samples)
            if len(clocks) > 1 and max(clocks) > 0:
                readings["clock_spread"] = (max(clocks) - min(clocks)) / max(clocks)
        if self._power:
            readings["power_watts"] = median(self._power)
        if self._hottest is not None:
            readings["temperature_celsius"] = self._hottest
        if self._throttled or (self._looked_at or frozenset()) >= _ALL_REASONS:
            readings["throttle_reasons"] = sorted(self._throttled)
        return readings

    def _miss(self) -> bool:
        self._misses += 1
        return self._misses < 3 and self.rows > 0


def _number(cell: str | None) -> float | None:
    """`1980 MHz`, `117.29 W`, `31`; None for `[N/A]` and `-`."""
    word = (cell or "").partition(" ")[0]
    return literals.number(word) if 0 < len(word) < 20 else None


def _bytes(cell: str | None) -> int | None:
    match = _SIZE.fullmatch(cell or "")
    if match is None:
        return None
    return round(float(match["number"]) * MIB) if not match["unit"] else literals.size(match[0])


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
        *(b"clocks_event_reasons.", b"clocks_throttle_reasons."),
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
            return True
        if self._left:
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
        reading, monitor = self.reading, self._monitor
        if monitor is not None and monitor.rows:
            reading.records += monitor.rows
            for gpu, name in monitor.names.items():
                self._name(gpu, name, self._first)
            if monitor.driver:
                reading.state("platform.driver", monitor.driver, monitor.driver, self._first)
            for row in monitor.memory:
                if monitor.repeated and row.bytes_used is not None:
                    reading.memory.append(row)
                elif row.bytes_limit is not None:
                    self._used(row.chip or 0, row.bytes_used or 0, row.bytes_limit)
            for leaf, value in monitor.health().items() if monitor.repeated else ():
                reading.state(f"measurement.health.{leaf}", value, "", self._first)
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

    def _name(self, gpu: int, name: str, number: int) -> None:
        self.reading.records += 1
        self._first = self._first or number
        if len(self._names) < MAX_GPUS:
            self._names[gpu] = name.strip()

    def _used(self, gpu: int, used: int, total: int) -> None:
        if gpu in self._memory or len(self._memory) < MAX_GPUS:
            self._memory[gpu] = max(self._memory.get(gpu, (0, 0)), (used, total))


READERS = (NvidiaSmiReader,)
