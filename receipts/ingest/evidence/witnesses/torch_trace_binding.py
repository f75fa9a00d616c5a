"""What binds a trace to its launch: its host, when its events began, and the shapes that attention ran on.

Times are microseconds after ``baseTimeNanoseconds``, which kineto writes since PyTorch 2.4; without it, older writers
count from 1970 or from the start of the machine. Shapes are there with ``record_shapes=True``.
"""

from __future__ import annotations

from typing import Any, Final

from receipts.ingest.evidence.reading import Reading

_ATTENTION: Final = "aten::_scaled_dot_product"
_MAX_SHAPES: Final = 64
_MICRO: Final = 1e-6
_YEAR_2001: Final = 1e9  # earlier than any trace: such a clock does not count from 1970


class Binding:
    """Gathers over one pass."""

    def __init__(self) -> None:
        self.base: object = None
        self.host: object = None
        self._first: float | None = None
        self._last = 0.0
        self._queries: set[tuple[int, int]] = set()

    def event(self, name: str, event: dict[str, Any], begin: float | None) -> None:
        """Take in one event that has a name, and when it began."""
        if begin is not None:
            self._first = begin if self._first is None or begin < self._first else self._first
            self._last = max(self._last, begin)
        if name.startswith(_ATTENTION) and "backward" not in name and len(self._queries) < _MAX_SHAPES:
            arguments = event.get("args")
            shapes = arguments.get("Input Dims") if isinstance(arguments, dict) else None
            query = shapes[0] if isinstance(shapes, list) and shapes else None
            if isinstance(query, list) and len(query) == 4 and all(type(item) is int for item in query):
                self._queries.add((query[2], query[3]))

    def write(self, reading: Reading) -> None:
        """Put it into the reading."""
        reading.queries = self._queries
        reading.host = str(self.host)[:200] if self.host else ""
        base = self.base / 1e9 if isinstance(self.base, int) else 0.0
        if self._first is not None and base + self._first * _MICRO > _YEAR_2001:
            reading.between = base + self._first * _MICRO, base + self._last * _MICRO
