"""The wall time of steps by the clock of a log's lines: what lies between two records is paid for, too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from receipts.ingest.clock import LEAD, stamp
from receipts.ingest.draft import ReceiptDraft
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.stream import Source
from receipts.ingest.series import StepSeries

WALLS: Final = "measurement.step_wall_seconds"
# A clock that counts seconds tells the time of ten steps badly, and that of an hour well enough.
_FINE: Final = 0.002
_SHORTER: Final = 0.02  # than the steps, at most: the record of a step is printed a little after its end
# What is no step's: a line that says so stands between two records.
_APART: Final = re.compile(
    r"\b(?:valid(?:at\w+)?|eval\w*|sav(?:ed?|ing)|(?:check|ck)p\w*|profil\w*|trac(?:es?|ing))\b", re.I
)


def state_walls(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int], durations: Sequence[float]) -> None:
    """State the wall time of the steps at ``rows``, where the line of each has a clock that is fine enough for all."""
    reading, numbers = steps.track.reading, [steps.numbers[row] for row in rows]
    places = dict(zip(reading.numbered, reading.lines, strict=True))
    lines = [places.get(number, 0) for number in numbers]
    if len(lines) < 2 or not all(before < after for before, after in pairwise([0, *lines])):
        return
    read = _clocked(steps.track.file, lines, american=reading.source == "nanotron")
    if read is None:
        return
    times, apart = read
    walls = [durations[0]]
    for at in range(1, len(times)):
        whole = numbers[at] - numbers[at - 1] == 1 and at not in apart
        walls.append(round((times[at] - times[at - 1]).total_seconds(), 6) if whole else durations[at])
    span = (times[-1] - times[0]).total_seconds()
    resolution = 1.0 if not any(time.microsecond for time in times) else 0.001
    if min(walls) < 0.0 or resolution > _FINE * span or sum(walls) < (1.0 - _SHORTER) * sum(durations):
        return
    draft.put(WALLS, walls, steps.where, reading.source, f"{len(walls):,} steps by the clock of their lines")


def _clocked(
    file: FileEvidence, wanted: Sequence[int], *, american: bool
) -> tuple[list[datetime], Mapping[int, str]] | None:
    """The time of each wanted line, and before which of them something else was done; None where one has no time."""
    times: list[datetime] = []
    apart: dict[int, str] = {}
    for number, text in Source(file.path, file.name).lines():
        if number == wanted[len(times)]:
            moment = stamp(text[:LEAD], american=american)
            if moment is None:
                return None
            times.append(moment.time)
            if len(times) == len(wanted):
                return times, apart
        elif times and _APART.search(text):
            apart[len(times)] = text
    return None
