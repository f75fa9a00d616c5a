"""What XLA's compiler planned for one program: `compiled.memory_analysis()`, printed or written as JSON.

A plan is no memory in use: its figures are counters and the compiler's bytes, and never a row of `memory`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from receipts.ingest.evidence.reading import Reading

SUFFIX: Final = "_size_in_bytes"
NAME: Final = re.compile(r"(?:host_)?(?:generated_code|argument|output|alias|temp)_size_in_bytes|peak_memory_in_bytes")


def planned(values: Mapping[str, int | None]) -> bool:
    """Whether the figures of one record are those of a plan."""
    return any(NAME.fullmatch(name) for name in values)


def put(reading: Reading, values: Mapping[str, int | None], line: int) -> None:
    """Put one plan into the reading. Of several programs' plans the largest stands: the step, not its helpers."""
    found = {name: value for name, value in values.items() if value is not None and NAME.fullmatch(name)}
    if not found:
        return
    if reading.counters:
        reading.remark("note", "a further program's plan; the largest one stands", line)
        if _need(found) <= _need(reading.counters):
            return
    reading.counters = found
    reading.compile.argument_bytes = found.get("argument_size_in_bytes")
    reading.compile.output_bytes = found.get("output_size_in_bytes")
    reading.compile.temp_bytes = found.get("temp_size_in_bytes")


def _need(values: Mapping[str, int]) -> int:
    return sum(values.get(f"{name}{SUFFIX}", 0) for name in ("argument", "output", "temp"))
