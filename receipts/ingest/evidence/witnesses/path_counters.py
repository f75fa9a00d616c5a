"""Counters that a training script keeps of its own path, printed as JSON.

Two forms, nothing else: an object of ``name``, ``count`` and ``expected`` (and ``steps``, ``layers``, ``rank``) on a
line of its own or behind a log's head, and ``{"path_counters": [ … ]}`` with such objects. A later count of a name and
rank stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import orjson

from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading

MAX_COUNTERS: Final = 1000
_KEYS: Final = frozenset({"name", "count", "expected", "steps", "layers", "rank"})
_LARGEST: Final = 1 << 53
_LONGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class PrintedCounter:
    """One counter as it was printed last."""

    name: str
    count: int
    expected: int | None
    steps: int | None
    layers: int | None
    line: int


class PathCountersReader(LineReader):
    """Counters by name; what stands below its expected count is remarked."""

    source: ClassVar[str] = "path-counters"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"expected"', b'"path_counters"')

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[tuple[str, int | None], PrintedCounter] = {}

    def line(self, text: str, number: int) -> bool:
        begin = text.find("{")
        if begin < 0 or len(text) > _LONGEST:
            return False
        try:
            parsed = orjson.loads(text[begin:].strip())
        except orjson.JSONDecodeError:
            return False
        listed = parsed.get("path_counters") if isinstance(parsed, dict) else None
        for item in listed if isinstance(listed, list) else [parsed]:
            self._take(item, number, alone=item is parsed)
        return False

    def finish(self) -> Reading | None:
        reading = self.reading
        totals: dict[str, list[PrintedCounter]] = {}
        for counter in self._counters.values():
            totals.setdefault(counter.name, []).append(counter)
        rows = []
        for name, counters in totals.items():
            # Ranks must agree with what is expected each: the lowest count speaks for all.
            lowest = min(counters, key=lambda item: item.count)
            reading.counters[name] = lowest.count
            rows.append(_row(lowest))
            if lowest.expected is not None and lowest.count != lowest.expected:
                what = f"{name} stands at {lowest.count}, expected {lowest.expected}"
                reading.remark("contradiction", what, lowest.line)
        if rows:
            reading.state(
                "measurement.path_counters", rows, f"{len(rows)} counters", min(c.line for c in self._counters.values())
            )
        return super().finish()

    def _take(self, item: Any, number: int, *, alone: bool) -> None:
        if not isinstance(item, dict) or not item.keys() <= _KEYS or not {"name", "count"} <= item.keys():
            return
        name, count = item["name"], _whole(item["count"])
        if not isinstance(name, str) or not 0 < len(name) <= 200 or count is None or (alone and "expected" not in item):
            return
        rank = _whole(item.get("rank"))
        if (name, rank) in self._counters or len(self._counters) < MAX_COUNTERS:
            expected, steps, layers = (_whole(item.get(key)) for key in ("expected", "steps", "layers"))
            self._counters[name, rank] = PrintedCounter(name, count, expected, steps, layers, number)
            self.reading.records += 1


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _LARGEST else None


def _row(counter: PrintedCounter) -> dict[str, str | int]:
    values = {"expected": counter.expected, "steps": counter.steps, "layers": counter.layers}
    stated = {key: value for key, value in values.items() if value is not None}
    return {"name": counter.name, "count": counter.count, **stated}


READERS = (PathCountersReader,)
