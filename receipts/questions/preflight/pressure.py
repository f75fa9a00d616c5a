"""Which rungs of a ladder reduce the pressure that is active, and why the others do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from receipts.axes.lane import Lane
from receipts.base.units import amount
from receipts.questions.preflight.answer import PreflightAnswer
from receipts.receipt import Parsed

_BATCH, _LENGTH, _FEATURES = "device_batch", "sequence_length", "features"
# Surfaces of the estimate that are there before the first sequence comes.
_STATES: Final = ("parameters", "gradients", "optimizer", "reserve")
_OF_START: Final = "it ran out at start-up, before the first batch"
_OF_KERNEL: Final = "one kernel's on-chip memory ran out, and its tiles do not grow with the batch"
_OF_BLOCKS: Final = "it works in blocks of a fixed size: choose smaller blocks, or raise the limit of its memory"
_BLOCKED: Final = re.compile(r"splash|flash", re.IGNORECASE)
_ON_CHIP: Final = ("compile_vmem", "compile_smem")
_OF_ANOTHER: Final = "another process held the memory: free the chip and launch the same plan again"


def useless(answer: PreflightAnswer) -> Mapping[str, str]:
    """Rungs that do not reduce the active pressure, each with why. Empty where nothing tells which pressure it is."""
    by = answer.by
    if by is not None and by.outcome == "oom":
        if by.class_ == "foreign_process":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES, "topology"), _OF_ANOTHER)
        if by.class_ in _ON_CHIP:
            blocked = _BLOCKED.search(by.operator or "") is not None
            return {_BATCH: _OF_KERNEL, **dict.fromkeys((_LENGTH, "topology") if blocked else (), _OF_BLOCKS)}
        if by.phase == "startup" and by.class_ != "program_load":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES), _OF_START)
    elif answer.fit is not None and answer.fit.surface and any(word in answer.fit.surface for word in _STATES):
        return {_FEATURES: f"most of the estimate is {answer.fit.surface}, which no diagnostic holds"}
    return {}


def unrelieved(plan: Parsed, lane: Lane, answer: PreflightAnswer) -> Callable[[str, Parsed], str | None]:
    """Why a smaller plan of a rung frees nothing by the estimate; None where it does, or nothing whole can be said.

    The estimate counts no diagnostics, and no memory but the chip's own.
    """
    from receipts.questions.fit.estimate import estimate  # a plan that works has no next rung

    by = answer.by
    if by is not None and (by.outcome != "oom" or by.class_ in _ON_CHIP):
        return lambda _rung, _smaller: None
    before = estimate(plan, lane)

    def why(rung: str, smaller: Parsed) -> str | None:
        after = estimate(smaller, lane)
        if rung == _FEATURES or before.uncounted or after.uncounted or None in (before.total_bytes, after.total_bytes):
            return None
        now, then = before.total_bytes or 0.0, after.total_bytes or 0.0
        return None if then < now else f"it frees nothing: the estimate goes from {amount(now)} to {amount(then)}"

    return why
