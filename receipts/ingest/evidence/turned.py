"""A log whose newest line is first, as a cloud's log explorer exports it: read from its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.unwrap import placed

_FEWEST: Final = 4
# Of a run that restarts, some steps do ascend.
_SHARE: Final = 0.9


def newest_first(readings: Iterable[Reading]) -> bool:
    """Whether the steps of a source go back at nearly every record."""
    return any(
        len(reading.steps) >= _FEWEST and reading.steps.restarts >= _SHARE * (len(reading.steps) - 1)
        for reading in readings
    )


def turned(text: bytes) -> list[Reading]:
    """The readings of a whole file from its end, with the lines of the file as it is; ``text`` may lack its end."""
    lines = text.removesuffix(b"\n").split(b"\n")
    readings = scan([b"\n".join(reversed(lines)) + b"\n"])
    for reading in readings:
        placed(reading, range(len(lines), 0, -1))
        if len(reading.steps):
            reading.remark("note", "the newest line is first: the file was read from its end")
    return readings
