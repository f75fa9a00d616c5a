"""Which rungs of a ladder reduce the pressure that is active, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from receipts.questions.preflight.answer import PreflightAnswer

_BATCH, _LENGTH, _FEATURES = "device_batch", "sequence_length", "features"
# Surfaces of the estimate that are there before the first sequence comes.
_STATES: Final = ("parameters", "gradients", "optimizer", "reserve")
_OF_START: Final = "it ran out at start-up, before the first batch"
_OF_KERNEL: Final = "one kernel's on-chip memory ran out, and its tiles do not grow with the batch"
_OF_ANOTHER: Final = "another process held the memory: free the chip and launch the same plan again"


def useless(answer: PreflightAnswer) -> Mapping[str, str]:
    """Rungs that do not reduce the active pressure, each with why. Empty where nothing tells which pressure it is."""
    by = answer.by
    if by is not None and by.outcome == "oom":
        if by.class_ == "foreign_process":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES, "topology"), _OF_ANOTHER)
        if by.class_ in ("compile_vmem", "compile_smem"):
            return {_BATCH: _OF_KERNEL}
        if by.phase == "startup" and by.class_ != "program_load":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES), _OF_START)
    elif answer.fit is not None and answer.fit.surface and any(word in answer.fit.surface for word in _STATES):
        return {_FEATURES: f"most of the estimate is {answer.fit.surface}, which no diagnostic holds"}
    return {}
