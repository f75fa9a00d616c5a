"""Why an allocation of torch failed, from the figures of its own message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from receipts.base.units import GIB

# A CUDA context, cuBLAS' and NCCL's usual buffers take below this; more is somebody's memory.
USUAL_OUTSIDE: Final = 2 * GIB
LARGE_OUTSIDE: Final = 0.05
LARGE_FOREIGN: Final = 0.10
MOSTLY_FOREIGN: Final = 0.50


@dataclass(frozen=True, slots=True)
class OomFigures:
    """What a message says, in bytes; None where it is not printed. ``processes`` are those it names by number.

    ``unallocated`` is what the allocator keeps without a live tensor in it.
    """

    requested: int | None = None
    capacity: int | None = None
    free: int | None = None
    allowed: int | None = None
    this_process: int | None = None
    allocated: int | None = None
    unallocated: int | None = None
    processes: tuple[int, ...] = ()
    endless: bool = False

    @property
    def limit(self) -> int | None:
        """What the process may take: the device's capacity, or the share that it was allowed."""
        limits = [item for item in (self.capacity, self.allowed) if item is not None]
        return min(limits, default=None)

    @property
    def used(self) -> int | None:
        """What this process has in use; above the capacity, or below half of its tensors, it is no measurement.

        Tensors may exceed it a little: memory that lies under two addresses is counted twice.
        """
        if self.this_process is None or self.this_process > (self.capacity or self.this_process):
            return None
        return self.this_process if 2 * self.this_process >= (self.allocated or 0) else None


def classify(figures: OomFigures) -> str:
    """The class of a failed allocation, by the first rule that holds.

    A request above the device; another process that holds most of it; enough kept but unusable (fragmentation); another
    process; memory outside the allocator; else the device is full.
    """
    if figures.endless:
        return "oversized_request"
    requested = figures.requested
    if requested is None:
        return "capacity"
    if figures.limit is not None and requested > figures.limit:
        return "oversized_request"
    capacity, foreign = figures.capacity or 0, _foreign(figures)
    if foreign > MOSTLY_FOREIGN * capacity > 0:
        return "foreign_process"
    if figures.unallocated is not None and figures.unallocated >= requested:
        return "fragmentation"
    missing = requested - (figures.free or 0)
    if foreign >= max(missing, LARGE_FOREIGN * capacity, 1):
        return "foreign_process"
    outside = _outside(figures)
    if outside >= max(missing, LARGE_OUTSIDE * capacity, USUAL_OUTSIDE):
        return "outside_allocator"
    return "capacity"


def _foreign(figures: OomFigures) -> int:
    """Bytes that other processes hold: those that the message names, or what is neither free nor this process's.

    Inside a container the own process is printed under the host's number; it is the one whose memory is what the
    allocator holds, and a context's worth more. Where no process is named at all, what the allocator does not hold may
    be this process's own, unless it is most of the device.
    """
    others, own = sorted(figures.processes), figures.used
    if own is None and figures.allocated is not None:
        own = figures.allocated + (figures.unallocated or 0)
        near = [item for item in others if 0 <= item - own * 0.98 <= max(USUAL_OUTSIDE, 0.15 * item)]
        if near:
            others.remove(min(near, key=lambda item: abs(item - own)))
    if own is None or figures.capacity is None or figures.free is None:
        return sum(others)
    rest = figures.capacity - figures.free - own
    if figures.used is None and (others or rest <= MOSTLY_FOREIGN * figures.capacity):
        rest = 0
    return max(sum(others), rest)


def _outside(figures: OomFigures) -> int:
    if figures.used is None or figures.allocated is None:
        return 0
    return figures.used - figures.allocated - (figures.unallocated or 0)
