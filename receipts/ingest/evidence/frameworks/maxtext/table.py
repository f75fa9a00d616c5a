"""Step tables that people make of MaxText's lines, in Markdown: ``| step | s/step | TFLOP/s/device | … | notes |``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import Reason

_COLUMNS: Final = {
    name: column
    for column, names in {
        "step_seconds": "s/step sec/step seconds seconds/step time(s) steptime(s) steptime(sec) 耗时(s) 步时(s)",
        "tflops_per_second_per_chip": "tflop/s/device",
        "tokens_per_second_per_chip": "tokens/s/device tok/s/device tokens/s/chip tok/s/chip",
        "loss": "loss",
        "grad_norm": "grad_norm gradnorm",
        "mfu": "mfu mfu% mfu(%)",
    }.items()
    for name in names.split()
}
_BLANKS = re.compile(r"\s+")
_FOOTNOTE = re.compile(r"\| *\d[\d,.]{0,20} ?s? ?\* *\|")
_PERCENT: Final = 0.01
_CELLS: Final = 64
_NOTES: Final = ("note", "notes", "comment", "comments", "remark", "remarks")


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of a table; ``reason`` is what its note says of it."""

    step: int
    values: dict[str, float]
    reason: Reason | None


@dataclass(slots=True)
class RateTable:
    """A table whose head names a step, a rate a device, and more. ``columns`` are fields by position."""

    columns: dict[int, str] = field(default_factory=dict)
    step: int = 0
    note: int | None = None

    @classmethod
    def of(cls, text: str) -> RateTable | None:
        """The table that this head begins, or None."""
        names = [_BLANKS.sub("", cell.lower()) for cell in _cells(text)]
        columns = {at: _COLUMNS[name] for at, name in enumerate(names) if name in _COLUMNS}
        if "step" not in names or len(columns) < 2:
            return None
        return cls(columns, names.index("step"), next((at for at, name in enumerate(names) if name in _NOTES), None))

    def row(self, text: str) -> StepRow | None:
        """One row; None for the rule under the head and for rows without a step."""
        cells = _cells(text)
        step = number(cells[self.step]) if self.step < len(cells) else None
        if step is None or step != int(step) or step < 0 or step > 1e15:
            return None
        figures = {name: _figure(name, cells[at]) for at, name in self.columns.items() if at < len(cells)}
        note = cells[self.note].lower() if self.note is not None and self.note < len(cells) else ""
        # A figure with a footnote is an exception, whatever the footnote says.
        reason = _reason(note) or ("stall" if _FOOTNOTE.search(text) else None)
        return StepRow(int(step), {name: value for name, value in figures.items() if value is not None}, reason)


def _figure(name: str, cell: str) -> float | None:
    """The figure of a cell, with or without its unit. An MFU above 1 is per cent, whatever its head says."""
    value = number(cell.rstrip(" %s"))
    return value * _PERCENT if name == "mfu" and value is not None and (value > 1 or "%" in cell) else value


def _cells(text: str) -> list[str]:
    return [cell.strip().strip("*`_ ") for cell in text.strip().strip("|").split("|", _CELLS)][:_CELLS]


def _reason(note: str) -> Reason | None:
    if "compile" in note:
        return "compile"
    if "warmup" in note or "warm-up" in note:
        return "warmup"
    if "profil" in note and "post-profil" not in note and "after profil" not in note:
        return "profile"
    return "checkpoint" if "checkpoint" in note else "eval" if "eval" in note.split() else None
