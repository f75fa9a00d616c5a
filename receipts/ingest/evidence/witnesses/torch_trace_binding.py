"""What binds a trace to its launch: host, process, when its events began, shapes and types that attention ran on.

Times are microseconds after ``baseTimeNanoseconds``, which kineto writes since PyTorch 2.4; without it, older writers
count from 1970 or from the start of the machine. Shapes are there with ``record_shapes=True``.
"""

from __future__ import annotations

from typing import Any, Final

from receipts.ingest.evidence.reading import Reading

_ATTENTION: Final = "aten::_scaled_dot_product"
_MAX_SHAPES: Final = 64
_MICRO: Final = 1e-6
_TYPES: Final = {"float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "fp16", "double": "fp64"}
_MAX_PROCESSES: Final = 4096
_YEAR_2001: Final = 1e9  # earlier than any trace: such a clock does not count from 1970


class Binding:
    """Gathers over one pass."""

    def __init__(self) -> None:
        self.base: object = None
        self.host: object = None
        self._first: float | None = None
        self._last = 0.0
        self._queries: set[tuple[int, int]] = set()
        self._types: set[str] = set()
        self._processes: set[int] = set()

    def event(self, name: str, event: dict[str, Any], begin: float | None) -> None:
        """Take in one event that has a name, and when it began."""
        if begin is not None:
            self._first = begin if self._first is None or begin < self._first else self._first
            self._last = max(self._last, begin)
        process = event.get("pid")  # of a device's events it is the device
        if event.get("cat") == "cpu_op" and type(process) is int and len(self._processes) < _MAX_PROCESSES:
            self._processes.add(process)
        if name.startswith(_ATTENTION) and "backward" not in name and len(self._queries) < _MAX_SHAPES:
            query = _first(event, "Input Dims")
            if isinstance(query, list) and len(query) == 4 and all(type(item) is int for item in query):
                self._queries.add((query[2], query[3]))
            if (kind := _TYPES.get(str(_first(event, "Input type")))) is not None:
                self._types.add(kind)

    def write(self, reading: Reading) -> None:
        """Put it into the reading."""
        reading.queries, reading.query_types, reading.processes = self._queries, self._types, self._processes
        reading.host = str(self.host)[:200] if self.host else ""
        base = self.base / 1e9 if isinstance(self.base, int) else 0.0
        if self._first is not None and base + self._first * _MICRO > _YEAR_2001:
            reading.between = base + self._first * _MICRO, base + self._last * _MICRO


def arguments(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says beside its name and times."""
    values = event.get("args")
    return values if isinstance(values, dict) else {}


def _first(event: dict[str, Any], name: str) -> object:
    """What an operator says of its first argument: the query, of attention."""
    listed = arguments(event).get(name)
    return listed[0] if isinstance(listed, list) and listed else None
