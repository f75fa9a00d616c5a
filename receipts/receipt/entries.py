"""How many entries the collections of a receipt had when it was written: what was left out later leaves a trace.

A map or a list that is read whole reads as clean without the entry that offends, and no rule can ask for an entry
that it does not know. Whoever writes a receipt counts them (`run.entries`); R120 compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from typing import Any, Final, NamedTuple, get_args

from receipts.receipt.document import Receipt
from receipts.receipt.leaf import Section
from receipts.receipt.measurement import StepFlag

COLLECTIONS: Final = (
    *("run.parts", "wheels", "flags", "patches", "features", "numerics", "numerics.adapters", "data"),
    *("inputs", "inputs.options", "inputs.defaults", "inputs.files", "inputs.environment", "inputs.launcher"),
    *("path.intended", "path.witnessed", "path.witnessed.frameworks", "path.witnessed.fallbacks"),
    *(
        "measurement.step_durations_seconds",
        "measurement.interval_means_seconds",
        "measurement.interval_steps",
        "measurement.step_wall_seconds",
        "measurement.step_tokens_per_second",
        "measurement.loss",
    ),
    *(f"measurement.step_flags.{name}" for name in get_args(StepFlag)),
    "memory.chips",
)


class LostEntries(NamedTuple):
    """A collection, the entries that it has, and those that it was written with."""

    path: str
    present: int
    counted: int

    def __str__(self) -> str:
        return f"{self.present:,} of {self.counted:,} entries"


def counted(receipt: Section | Mapping[str, Any]) -> dict[str, int]:
    """Entries of each collection that a receipt, or the tree of one, states."""
    return {path: count for path in COLLECTIONS if (count := entries(receipt, path))}


def lost(receipt: Receipt) -> Iterator[LostEntries]:
    """Collections with fewer entries than were counted. More are none: a person may add what a log shows."""
    for path, count in (receipt.run.entries or {}).items():
        if (present := entries(receipt, path)) < count:
            yield LostEntries(path, present, count)


def entries(receipt: Section | Mapping[str, Any], path: str) -> int:
    """Entries of the map, list or section at a path; 0 where it is not stated."""
    node: Any = receipt
    for part in path.split("."):
        node = node.get(part) if isinstance(node, Mapping) else getattr(node, part, None)
    if isinstance(node, Section):
        return sum(value is not None for value in vars(node).values())
    return len(node) if isinstance(node, Sized) and not isinstance(node, str) else 0
