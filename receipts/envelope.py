"""Where a launch stands in its lane's envelope: everything up to the largest shape that was sustained repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from receipts.rule import Case, Facts, Shape

REPEATED = 2  # launches that make a ceiling; a single good one is a peak
SHAPE = (
    ("sequence_length", "batch.sequence_length"),
    ("micro_batch", "batch.micro_batch"),
    ("depth", "model.depth"),
)
CHIPS = "hardware.chips"


def envelope(case: Case) -> str:
    """`inside`, `at` or `beyond` the lane's largest repeated shapes, or `unknown` with what is missing.

    A shape holds another where it ran on as many chips or fewer, and is at least as large in sequence length, micro
    batch and depth. Without Facts, without a repeated shape, or without the launch's own shape it is unknown.
    """
    return place(case.facts, case.get)


def place(facts: Facts | None, get: Callable[[str], Any]) -> str:
    """The same for any shape: ``get`` gives the value at a leaf path, or None."""
    if facts is None:
        return "unknown: no store was asked"
    ceilings = [shape for shape in facts.shapes if shape.launches >= REPEATED and _whole(shape)]
    if not ceilings:
        return "unknown: no shape of this lane was sustained by two launches"
    missing = [path for path in (CHIPS, *(path for _, path in SHAPE)) if get(path) is None]
    if missing:
        return f"unknown: {', '.join(missing)} not stated"
    mine = tuple(int(get(path)) for _, path in SHAPE)
    holding = [shape for shape in ceilings if _holds(shape, mine, int(get(CHIPS)))]
    if not holding:
        return "beyond"
    same = any(_size(shape) == mine and shape.chips == get(CHIPS) for shape in holding)
    larger = any(_size(shape) != mine for shape in holding)
    return "at" if same and not larger else "inside"


def _whole(shape: Shape) -> bool:
    return None not in (shape.chips, shape.sequence_length, shape.micro_batch, shape.depth)


def _size(shape: Shape) -> tuple[int, ...]:
    return tuple(getattr(shape, name) for name, _ in SHAPE)


def _holds(shape: Shape, mine: tuple[int, ...], chips: int) -> bool:
    return (
        shape.chips is not None
        and shape.chips <= chips
        and all(theirs >= own for theirs, own in zip(_size(shape), mine, strict=True))
    )
