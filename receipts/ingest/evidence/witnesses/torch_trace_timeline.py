"""Time in which a device only communicates: NCCL kernels run, and no kernel that computes."""

from __future__ import annotations

from array import array
from typing import Any, Final

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
        """What all kernels cover, less what those that compute cover."""
        communication, computation = self._spans[device, True], self._spans.get((device, False), array("d"))
        return _covered(communication + computation) - _covered(computation)


def event_arguments(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says beside its name and times."""
    values = event.get("args")
    return values if isinstance(values, dict) else {}


def _covered(flat: array[float]) -> float:
    """The length of the union of spans."""
    import numpy as np

    if not flat:
        return 0.0
    spans = np.frombuffer(flat, dtype=np.float64).reshape(-1, 2)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    # A span adds what it reaches beyond all that began before it.
    reach = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[1:, 0], reach[:-1])
    return float(reach[0] - spans[0, 0] + (reach[1:] - begins).clip(0).sum())
