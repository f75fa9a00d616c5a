"""What ``:::MLLOG`` and its sister marks hold: JSON behind a marker, read as far as it goes.

Source: mlcommons/logging (mllog/mllog.py, mllog/constants.py).
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple

from receipts.ingest import literals
from receipts.ingest.literals import number

MAX_OBJECTS: Final = 1_000
_DECODER: Final = json.JSONDecoder()


class MllogRecord(NamedTuple):
    """One record. ``at`` is its clock in seconds since 1970, NaN where it has none."""

    key: str
    value: Any
    metadata: dict[str, Any]
    at: float
    line: int

    def counted(self, *names: str) -> tuple[str, int] | None:
        """The first of these counts that the metadata holds, with its name."""
        for name in names:
            value = integer(self.metadata.get(name))
            if value is not None:
                return name, value
        return None


def record_of(document: dict[str, Any], line: int) -> MllogRecord | None:
    """The record that a JSON object is; None without a key."""
    key, metadata, at = document.get("key"), document.get("metadata"), document.get("time_ms")
    if not isinstance(key, str):
        return None
    # Documents abridge records and set what is of interest beside the key.
    merged = {**document, **metadata} if isinstance(metadata, dict) else document
    clock = number(at)
    seconds = clock / 1e3 if clock is not None and 0 <= clock < 1e15 else math.nan
    return MllogRecord(key, document.get("value"), merged, seconds, line)


def objects(text: str, marker: str) -> list[dict[str, Any]]:
    """Every JSON object behind a marker on a line; what is no JSON is left out."""
    kept: list[dict[str, Any]] = []
    for part in text.split(marker, MAX_OBJECTS + 1)[1 : MAX_OBJECTS + 1]:
        brace = part.find("{", 0, 40)
        if brace < 0:
            continue
        try:
            value, _ = _DECODER.raw_decode(part, brace)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            kept.append(value)
    return kept


def integer(value: Any) -> int | None:
    """A count, also where it is printed as text or as a float; None for what is none."""
    whole = literals.integer(value)
    return whole if whole is not None and 0 <= whole < 1 << 60 else None
