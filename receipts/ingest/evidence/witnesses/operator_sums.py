"""Operators of a torch.profiler run, summed by the loop itself and kept as JSON in the place of a trace.

``{"producer": "torch.profiler", "steps": 2, "operators": {NAME: n}}``; an entry may be ``{"count": n, "types": […]}``,
or ``matrix_types`` counts the types of all multiplications. The loops under ``benchmarks/`` and ``examples/`` write it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from receipts.ingest.evidence.witnesses.kernels_histogram import Histogram
from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading
from receipts.receipt.dtypes import dtype


class OperatorSumsReader(JsonReader):
    """Operators by name; how they were grouped into steps, or ran on a device, sums do not tell."""

    source = "torch-profiler"
    what = "sums of operators"
    marks = (b'"operators"', b'"producer"', b'"torch.profiler"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Operators with the type of their first input; a multiplication's, where it is known, says what ran."""
        histogram = Histogram()
        for name, entry in _entries(document, "operators"):
            count, types = (entry.get("count"), entry.get("types")) if isinstance(entry, dict) else (entry, None)
            if counted(count):
                reading.records += 1
                first = types[0] if isinstance(types, list) and types else None
                histogram.operator(name, count, first if isinstance(first, str) else None)
        for name, count in _entries(document, "matrix_types"):
            if counted(count) and (kind := dtype(name)) is not None:
                histogram.matmul_types[kind].add(count, 0.0)
        steps = document.get("steps")
        reading.steps_covered = steps if counted(steps) and steps else None
        if histogram.matmul_types:
            reading.see("framework", "torch", "kernels")
        histogram.write(reading)


def _entries(document: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    entries = document.get(name)
    return entries.items() if isinstance(entries, dict) else ()


READERS = (OperatorSumsReader,)
