"""Whether two receipts are launches of one configuration, and whether they are two launches at all."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.axes.difference import difference
from receipts.axes.lane import Lane
from receipts.receipt import Parsed

# One launch recorded twice has the same steps, cut, or told with other digits.
COPIED_STEPS = 60


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference(one, other, tuple(lane.not_applicable))
    return not apart.changed and not apart.unknown


def copied_pair(launches: Sequence[Parsed]) -> tuple[Parsed, Parsed] | None:
    """Two launches with the same step times to the last digit: one launch that was recorded twice."""
    seen: dict[tuple[float, ...], Parsed] = {}
    for parsed in launches:
        steps = distinct_steps(parsed)
        if steps is not None:
            if steps in seen:
                return seen[steps], parsed
            seen[steps] = parsed
    return None


def distinct_steps(parsed: Parsed) -> tuple[float, ...] | None:
    """Step times that no second launch can have; a clock too coarse to tell steps apart tells no launches apart."""
    measurement = parsed.receipt.measurement
    steps = (measurement.step_durations_seconds or measurement.interval_means_seconds) if measurement else None
    if not steps or min(steps) == max(steps):
        return None
    return tuple(float(f"{step:.6g}") for step in steps[:COPIED_STEPS])
