"""The GPUs that a profile names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from receipts.ingest.reading import Reading


def state_gpus(reading: Reading, gpus: Iterable[tuple[Any, Any, Any]], record: str) -> int | None:
    """State the accelerator, where all have one name, by names and compute capabilities (``9, 0``).

    Gives the capability as one number, 90; None where it is not shown, or not one.
    """
    rows = list(gpus)
    names = sorted({str(name)[:100] for name, _, _ in rows if name})
    if len(names) == 1:
        reading.state("hardware.accelerator", names[0], names[0], record=record)
    arches = {10 * major + minor for _, major, minor in rows if isinstance(major, int) and isinstance(minor, int)}
    return arches.pop() if len(arches) == 1 else None
