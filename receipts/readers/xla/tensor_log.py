"""Compile lines of torch_xla's own log: `tensor.cpp` to 1.13, `xla_graph_executor.cpp` from 2.0 on.

``Compiling IR graph hash H on device TPU:0 ...`` and the same line with ``done!``; between both is the compile. Such a
log shows the compiles that it holds, and never that there was none. A hash that is compiled on every device counts
once a device, and so it is in the log of each.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.clock import seconds_on
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_COMPILING: Final = re.compile(
    r"Compiling IR graph hash ([0-9a-f]{1,64}) on (?:device|computation) (\S{1,60}) ?(\.\.\.|done!)"
)
_MAX_OPEN: Final = 10_000


class TensorLog(LineReader):
    """Reads compiles of graphs, and how long each took by the clock of its lines."""

    source: ClassVar[str] = "torch-xla-compiles"
    anchors: ClassVar[tuple[bytes, ...]] = (b"Compiling IR graph hash ",)

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[tuple[str, str], float | None] = {}
        self._seconds: list[float] = []

    def line(self, text: str, number: int) -> bool:
        """Take the begin or the end of a compile."""
        if (match := _COMPILING.search(text)) is None:
            return False
        self.reading.records += 1
        key, clock = (match[1], match[2]), seconds_on(text)
        if match[3] == "..." and len(self._open) < _MAX_OPEN:
            self._open[key] = clock[1] if clock is not None else None
        elif match[3] == "done!":
            begun = self._open.pop(key, None)
            self.reading.count("compilations")
            if begun is not None and clock is not None and clock[1] >= begun:
                self._seconds.append(clock[1] - begun)
        return False

    def finish(self) -> Reading | None:
        """The reading, with compiles that ended."""
        reading = self.reading
        if not reading.records:
            return None
        reading.see("framework", "torch-xla", "kernels")
        count = reading.counters.get("compilations", 0)
        if count:
            reading.compile.compiles = count
            if len(self._seconds) == count:
                reading.compile.seconds = round(sum(self._seconds), 6)
        if self._open:
            reading.remark("note", f"{len(self._open)} graphs began to compile, and the log shows no end of it")
        return reading


READERS = (TensorLog,)
