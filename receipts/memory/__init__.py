"""Memory geometry: what a launch holds on its fullest chip, surface by surface, from what its receipt states."""

from __future__ import annotations

from receipts.memory.discipline import Discipline, discipline_of
from receipts.memory.estimate import StageEstimate, by_stage, fullest
from receipts.memory.facts import Assumed
from receipts.memory.resolve import Circumstances, Resolved, resolve
from receipts.memory.setup import Setup
from receipts.memory.surface import OUTSIDE, Name, Surface

__all__ = [
    "OUTSIDE",
    "Assumed",
    "Circumstances",
    "Discipline",
    "Name",
    "Resolved",
    "Setup",
    "StageEstimate",
    "Surface",
    "by_stage",
    "discipline_of",
    "fullest",
    "resolve",
]
