"""Evidence: what frameworks, compilers, profilers and runtimes write, read into values with their places.

A reader knows one source and one file holds it: `frameworks` read steps and configuration, `witnesses` read the path,
`memory` reads memory and failed allocations. Readers know nothing of each other; `receipts.ingest` puts one receipt
together from what they found.
"""

from __future__ import annotations

from receipts.ingest.evidence.read import FileEvidence, read
from receipts.ingest.evidence.reading import (
    AllocationFailure,
    CompileCounts,
    MemoryRow,
    Observation,
    Place,
    Reading,
    Remark,
    StatedValue,
    Timing,
)
from receipts.ingest.evidence.steps import Steps

__all__ = [
    "AllocationFailure",
    "CompileCounts",
    "FileEvidence",
    "MemoryRow",
    "Observation",
    "Place",
    "Reading",
    "Remark",
    "StatedValue",
    "Steps",
    "Timing",
    "read",
]
