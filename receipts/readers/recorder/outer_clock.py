"""The outer clock of ``receipts record``: edges of steps, each with the job's time and the launcher's looks around it.

The job's clock runs at the launcher's rate if the difference of the two stays the same from the first edges to the
last. An edge is known between two looks, so that the rate has bounds; a run that is too short for them states none. Of
several clocks of the launcher the one that agrees best counts: the others are disturbed by NTP or by suspension.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, ClassVar, Final, NamedTuple

from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading

MIN_ROWS, MAX_EDGES = 8, 1000
BOUND: Final = 0.002  # of the rate: what the looks leave open may be no more


class Rate(NamedTuple):
    """How fast the job's clock ran by one of the launcher's, the seconds of that one a step, and the bound of both."""

    ratio: float
    seconds_per_step: float
    bound: float


class Row(NamedTuple):
    """An edge by one of the launcher's clocks: its middle, and half of what lies between the looks."""

    steps: int
    inner: int
    outer: float
    half: float


def rate(rows: Sequence[Row]) -> Rate | None:
    """The rate of the job's clock; None where there are too few edges, or they are too vague."""
    if len(rows) < MIN_ROWS:
        return None
    quarter = len(rows) // 4 + 1
    # The half of the edges between whose looks the least time lies: on a busy machine some looks come late.
    begin, end = (
        sorted(part, key=lambda row: row.half)[: len(part) // 2 + 1] for part in (rows[:quarter], rows[-quarter:])
    )
    # The middle of several edges: the job may have been stopped between its clock and its journal.
    inner = median(row.inner for row in end) - median(row.inner for row in begin)
    steps = median(row.steps for row in end) - median(row.steps for row in begin)
    drift = median(row.outer - row.inner for row in end) - median(row.outer - row.inner for row in begin)
    outer = inner + drift
    if inner <= 0 or outer <= 0 or steps <= 0:
        return None
    bound = (median(row.half for row in begin) + median(row.half for row in end)) / outer
    return Rate(inner / outer, outer / steps / 1e9, bound) if bound <= BOUND else None


class OuterClockReader(JsonReader):
    """Reads the file that the launcher wrote."""

    source: ClassVar[str] = "outer-clock"
    what: ClassVar[str] = "an outer clock"
    marks: ClassVar[tuple[bytes, ...]] = (b'"receipts_outer_clock"',)

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """State the rate of the clock, the seconds a step, and the processor's time."""
        clocks, edges = document.get("clocks"), document.get("edges")
        if document.get("receipts_outer_clock") != 1 or not isinstance(clocks, list) or not isinstance(edges, list):
            reading.remark("broken", "an outer clock of no known form")
            return
        reading.records += 1
        if counted(process := document.get("process")):
            reading.processes.add(process)
        if isinstance(host := document.get("host"), str):
            reading.host = host[:200]
        cpu = document.get("cpu_seconds")
        if isinstance(cpu, int | float) and not isinstance(cpu, bool) and 0 <= cpu < 1e12:
            reading.state("measurement.outer_cpu_seconds", round(cpu, 3), record="cpu_seconds")
        rates = {
            str(name): of_clock
            for at, name in enumerate(clocks[:8])
            if (of_clock := rate(_rows(edges[:MAX_EDGES], at))) is not None
        }
        if not rates:
            reading.remark("note", f"{len(edges)} edges of steps are too few, or too close, for the rate of a clock")
            return
        name, best = min(rates.items(), key=lambda item: abs(item[1].ratio - 1))
        text = f"{best.ratio:.6f} by {name}, to {best.bound:.6f}, of {len(edges)} edges"
        reading.state("measurement.outer_clock_ratio", round(best.ratio, 6), text, record="edges")
        reading.state("measurement.outer_seconds_per_step", round(best.seconds_per_step, 9), record="edges")


def _rows(edges: Sequence[Any], clock: int) -> list[Row]:
    """The edges by one clock; one that is none is left out."""
    rows = []
    for edge in edges:
        if not isinstance(edge, list) or len(edge) <= 2 + clock or not isinstance(edge[2 + clock], list):
            continue
        numbers = [*edge[:2], *edge[2 + clock]]
        if len(numbers) == 4 and all(type(item) is int for item in numbers) and numbers[3] >= numbers[2]:
            count, inner, after, before = numbers
            rows.append(Row(count, inner, (after + before) / 2, (before - after) / 2))
    return rows


READERS = (OuterClockReader,)
