"""The memory that a loop prints again and again: for each chip the largest peaks, and what was last in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from receipts.ingest.evidence.reading import MAX_ROWS, MemoryRow, Place, Reading

_LARGEST: Final = 1e18


class Peaks:
    """One row of a reading for each chip, with the line and the step of what grew last."""

    def __init__(self, reading: Reading, phase: str | None = "steady") -> None:
        self._reading = reading
        self._phase = phase
        self._rows: dict[int | None, int] = {}

    def keep(
        self, name: str, size: float, line: int, step: int | None = None, chip: int | None = None, *, last: bool = False
    ) -> None:
        """Keep bytes of one figure, if it is larger than before; with ``last`` whatever it was."""
        memory = self._reading.memory
        if not 0 < size < _LARGEST or (chip not in self._rows and len(memory) >= MAX_ROWS):
            return
        at = self._rows.setdefault(chip, len(memory))
        if at == len(memory):
            memory.append(MemoryRow(Place(line), chip, self._phase, step))
        changed: dict[str, Any] = {name: round(size)}
        if not last and size > (getattr(memory[at], name) or 0):
            changed |= {"place": Place(line), "step": memory[at].step if step is None else step}
        elif not last:
            return
        memory[at] = replace(memory[at], **changed)


def of_each_chip(chips: Sequence[int | None], sizes: Sequence[float], *, last: bool) -> dict[int | None, int]:
    """The place of each chip's first largest size, or with ``last`` of its last one above zero."""
    places: dict[int | None, int] = {}
    for at, (chip, size) in enumerate(zip(chips, sizes, strict=True)):
        if chip not in places or (size > 0 if last else size > sizes[places[chip]]):
            places[chip] = at
    return places
