"""Whether two receipts are launches of one configuration, and whether they are two launches at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipts.axes.difference import CODE, difference
from receipts.axes.effective import OPEN_MAPS, effective, is_complete
from receipts.axes.lane import Lane
from receipts.receipt import Parsed

# One launch recorded twice has the same steps, cut, or told with other digits.
COPIED_STEPS = 60
Configuration = tuple[object, ...]


def surely_apart(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Whether effective values alone show a changed axis. False says nothing, and `difference` has to be asked.

    Most receipts that are looked at differ in a stated value, and one look is cheaper than a comparison. What
    `difference` excuses beside the change that it follows from is no way round: that change is there to see.
    """
    return any(right.get(path, value) != value for path, value in left.items() if path not in CODE)


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference(one, other, tuple(lane.not_applicable))
    return not apart.changed and not apart.unknown


def configuration(parsed: Parsed) -> Configuration:
    """All that decides whether two receipts differ in an axis: comparing keys costs less than comparing receipts."""
    values = tuple(sorted((path, repr(value)) for path, value in effective(parsed).items()))
    return (parsed.receipt.run.context, tuple(is_complete(parsed, name) for name in OPEN_MAPS), values)


def copied(launches: Sequence[Parsed]) -> tuple[Parsed, Parsed] | None:
    """Two launches with the same step times to the last digit: one launch that was recorded twice."""
    seen: dict[tuple[float, ...], Parsed] = {}
    for parsed in launches:
        steps = told_apart_by(parsed)
        if steps is not None:
            if steps in seen:
                return seen[steps], parsed
            seen[steps] = parsed
    return None


def told_apart_by(parsed: Parsed) -> tuple[float, ...] | None:
    """Step times that no second launch can have; a clock too coarse to tell steps apart tells no launches apart."""
    if "steps" not in parsed.kept:
        parsed.kept["steps"] = _steps(parsed)
    found: tuple[float, ...] | None = parsed.kept["steps"]
    return found


def _steps(parsed: Parsed) -> tuple[float, ...] | None:
    measurement = parsed.receipt.measurement
    steps = measurement.step_durations_seconds if measurement else None
    if not steps or min(steps) == max(steps):
        return None
    return tuple(float(f"{step:.6g}") for step in steps[:COPIED_STEPS])
