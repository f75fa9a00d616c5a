"""Rows that nvidia-smi writes again and again: `--query-gpu=… --format=csv -l 1`, and `dmon`."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from statistics import median
from typing import Final

from receipts.base.units import MIB
from receipts.ingest import literals
from receipts.ingest.reading import MemoryRow, Place, Tally

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
_IDLE: Final = frozenset({"gpu_idle", "none", "active", "supported", "applications_clocks_setting", "mask"})


class Monitor:
    """Samples of several GPUs, in columns that the head names."""

    def __init__(self, fields: list[str], units: list[str], *, csv: bool) -> None:
        self._fields, self._units, self._csv = fields, units, csv
        self._seen = Tally[int](MAX_GPUS)
        self._clocks: defaultdict[int, array[float]] = defaultdict(lambda: array("d"))
        self._power = array("d")
        self._hottest: float | None = None
        self._throttled: set[str] = set()
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
        count = sum(field in _FIELDS for field in fields)
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
        for name, unit, cell in zip(self._fields, self._units, cells, strict=True):
            if name in _FIELDS:
                values.setdefault(_FIELDS[name], f"{cell} {unit}" if unit and cell.isdigit() else cell)
            elif name.startswith(_THROTTLES) and cell == "Active" and name.rpartition(".")[2] not in _IDLE:
                self._throttled.add(name.rpartition(".")[2])
        # Without an index only one GPU can be told from the others.
        index = values.get("gpu", "0" if values else "")
        if not (index.isdigit() and len(index) < 5) or all(_number(value) is None for value in values.values()):
            return self._miss()
        self._misses = 0
        self._take(int(index), values, number)
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
        if any(field.startswith(_THROTTLES) for field in self._fields):
            readings["throttle_reasons"] = sorted(self._throttled)
        return readings

    def _miss(self) -> bool:
        self._misses += 1
        return self._misses < 3 and self.rows > 0

    def _take(self, gpu: int, values: dict[str, str], number: int) -> None:
        if not self._seen.add(gpu):
            return
        self.rows += 1
        if name := values.get("name"):
            self.names[gpu] = name[:80]
        self.driver = self.driver or values.get("driver", "")[:40]
        most, limit, line = self._memory.get(gpu, (None, None, 0))
        used, total = _bytes(values.get("used")), _bytes(values.get("total"))
        if used is not None and used >= (most or 0):
            most, line = used, number
        self._memory[gpu] = most, limit if total is None else total, line
        if self.rows > MAX_SAMPLES:
            return
        clock, power, heat = (_number(values.get(name)) for name in ("clock", "power", "temperature"))
        if clock is not None:
            self._clocks[gpu].append(clock)
        if power is not None:
            self._power.append(power)
        if heat is not None:
            self._hottest = heat if self._hottest is None else max(self._hottest, heat)


def _number(cell: str | None) -> float | None:
    """`1980 MHz`, `117.29 W`, `31`; None for `[N/A]` and `-`."""
    word = (cell or "").partition(" ")[0]
    return literals.number(word) if 0 < len(word) < 20 else None


def _bytes(cell: str | None) -> int | None:
    match = _SIZE.fullmatch(cell or "")
    if match is None:
        return None
    return round(float(match["number"]) * MIB) if not match["unit"] else literals.size(match[0])
