"""Which rungs of a ladder reduce the pressure that is active, and why the others do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final

from receipts.axes.lane import Lane
from receipts.axes.signature import MICRO_BATCH, SEQUENCE_LENGTH, sign
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
_TOKENS: Final[Mapping[str, str]] = {_BATCH: MICRO_BATCH, _LENGTH: SEQUENCE_LENGTH}  # rungs that take tokens away
_UNMOVED: Final = 0.005  # of the bytes: a message prints four digits of them
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


def idle(ran_out: Iterable[Parsed], lane: Lane) -> Mapping[str, str]:
    """Rungs that moved nothing, by the need that failures printed: two that differ in one pressure print the same.

    What is left of such a rung is not tried. A failure that shows that it moved something keeps it.
    """
    moved: dict[str, tuple[bool, str]] = {}
    for rung, still, why in _compared(list(ran_out), lane):
        if rung not in moved or moved[rung][0]:
            moved[rung] = still, why
    return {rung: why for rung, (still, why) in moved.items() if still}


def _compared(ran_out: list[Parsed], lane: Lane) -> Iterator[tuple[str, bool, str]]:
    """Each two failures that differ in one pressure alone: its rung, whether the bytes stood still, and in words."""
    for one, other in combinations(ran_out, 2):
        a, b = sign(one, lane), sign(other, lane)
        sizes = _printed(one), _printed(other)
        if (a.base, a.extras) != (b.base, b.extras) or None in sizes:
            continue
        apart = [(rung, path) for rung, path in _TOKENS.items() if one.stated.get(path) != other.stated.get(path)]
        if len(apart) != 1:
            continue
        ((rung, path),) = apart
        low, high = sorted(size for size in sizes if size is not None)
        values = " and ".join(f"{item.stated.get(path):,}" for item in (one, other))
        leaf = path.partition(".")[2].replace("_", " ")
        yield rung, high - low <= _UNMOVED * high, f"at {leaf} {values} the failure printed {amount(high)} alike"


def _printed(failed: Parsed) -> int | None:
    """The bytes that a program needs by its failure. What a full allocator held is its limit, and no need."""
    failure = failed.receipt.failure
    if failure is None or failure.used_bytes is None:
        return None
    planned = failure.phase == "compile" or (
        failure.limit_bytes is not None and failure.used_bytes > failure.limit_bytes
    )
    return int(failure.used_bytes) if planned else None
