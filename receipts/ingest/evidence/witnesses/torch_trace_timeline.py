"""Time in which a device only communicates: NCCL kernels run, and no kernel that computes."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Spans = npt.NDArray[np.float64]

# 16 bytes each; a trace of a gigabyte holds about a million kernels.
MAX_SPANS: Final = 4_000_000


class Timeline:
    """Kernels of several devices as spans of time, in any order. ``lost`` spans were too many to keep."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, bool], array[float]] = {}
        self._kept = 0
        self.lost = 0

    def add(self, device: int, begin: float, duration: float, *, communicates: bool) -> None:
        """A kernel on ``device``; times in one unit, whichever it is."""
        if self._kept >= MAX_SPANS:
            self.lost += 1
            return
        self._kept += 1
        spans = self._spans.get((device, communicates))
        if spans is None:
            spans = self._spans[device, communicates] = array("d")
        spans.append(begin)
        spans.append(begin + max(duration, 0.0))

    @property
    def communicates(self) -> bool:
        """Whether any communication was seen."""
        return any(kind for _, kind in self._spans)

    def exposed(self) -> dict[int, float]:
        """By device: the time of communication that no computation covers, in the unit of `add`."""
        return {device: self._exposed(device) for device, kind in self._spans if kind}

    def _exposed(self, device: int) -> float:
        communication = _union(self._spans[device, True])
        computation = self._spans.get((device, False))
        total = float((communication[:, 1] - communication[:, 0]).sum())
        return total - _common(communication, _union(computation)) if computation else total


def _union(flat: array[float]) -> Spans:
    """Spans that overlap made one, ascending; shape (spans, 2)."""
    import numpy as np

    spans = np.frombuffer(flat, dtype=np.float64).reshape(-1, 2)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    first = np.ones(len(spans), dtype=bool)
    first[1:] = spans[1:, 0] > reach[:-1]
    last = np.append(np.flatnonzero(first)[1:] - 1, len(spans) - 1)
    return np.column_stack((spans[first, 0], reach[last]))


def _common(left: Spans, right: Spans) -> float:
    """Length of the intersection of two unions: covered length of the right up to each end, less up to each begin."""
    import numpy as np

    lengths = np.append(0.0, np.cumsum(right[:, 1] - right[:, 0]))

    def covered(at: Spans) -> Spans:
        index = np.searchsorted(right[:, 0], at, side="right")
        inside = np.where(
            index > 0, np.minimum(at, right[np.maximum(index - 1, 0), 1]) - right[np.maximum(index - 1, 0), 0], 0.0
        )
        before: Spans = lengths[np.maximum(index - 1, 0)] + inside
        return before

    return float((covered(left[:, 1]) - covered(left[:, 0])).sum())
