"""Counters that a training script keeps of its own path, printed as JSON.

Two forms, nothing else: an object of ``name``, ``count`` and ``expected`` (and ``steps``, ``layers``, ``rank``) on a
line of its own or behind a log's head, and ``{"path_counters": [ … ]}`` with such objects. A later count of a name and
rank stands.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import orjson

from receipts.ingest.literals import counted
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

MAX_COUNTERS: Final = 1000
_KEYS: Final = frozenset({"name", "count", "expected", "steps", "layers", "rank"})
_LONGEST: Final = 1 << 16


class PathCountersReader(LineReader):
    """Counters by name; what is below its expected count is remarked."""

    source: ClassVar[str] = "path-counters"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"expected"', b'"path_counters"')

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[tuple[str, int | None], tuple[dict[str, Any], int]] = {}

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
        lowest: dict[str, tuple[dict[str, Any], int]] = {}
        for (name, _), counter in self._counters.items():
            # Ranks must agree with what is expected each: the lowest count speaks for all.
            lowest[name] = min(lowest.get(name, counter), counter, key=lambda item: item[0]["count"])
        for name, (row, line) in lowest.items():
            reading.counters[name] = row["count"]
            if row["count"] != row.get("expected", row["count"]):
                what = f"{name} stands at {row['count']}, expected {row['expected']}"
                reading.remark("contradiction", what, line)
        if lowest:
            rows = [row for row, _ in lowest.values()]
            first = min(line for _, line in self._counters.values())
            reading.state("measurement.path_counters", rows, f"{len(rows)} counters", first)
        return super().finish()

    def _take(self, item: Any, number: int, *, alone: bool) -> None:
        if not isinstance(item, dict) or not item.keys() <= _KEYS or not {"name", "count"} <= item.keys():
            return
        name, count, rank = item["name"], item["count"], item.get("rank")
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not counted(count):
            return
        if alone and "expected" not in item:
            return
        rank = rank if counted(rank) else None
        if (name, rank) in self._counters or len(self._counters) < MAX_COUNTERS:
            stated = {key: item[key] for key in ("expected", "steps", "layers") if counted(item.get(key))}
            row = {"name": name, "count": count} | stated
            self._counters[name, rank] = row, number
            self.reading.records += 1


READERS = (PathCountersReader,)
