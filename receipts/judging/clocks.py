"""The clocks of a launch: its lengths by the recorder's monotonic clock, and its start and finish by the day's."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from receipts.judging.rule import Case

GOODPUT: Final = "measurement.goodput."
SPANS: Final = ("compile", "checkpoint", "eval", "data")
SPENT: Final = tuple(f"{GOODPUT}{name}_seconds" for name in ("step", *SPANS, "idle"))
LOOSE: Final = 0.02  # of the run: starts and finishes are written beside its work
CLOCK_SECONDS: Final = 1.0
SAME: Final = 0.001  # one clock told both: what digits and spans between two steps may add
_DAY: Final = 86_400.0
_ZONE: Final = 900.0  # clocks are set by zones, which lie whole quarters of an hour apart
# No machine judges a receipt before this: its clock has not been set since it started.
UNSET: Final = datetime(2025, 1, 1, tzinfo=UTC)


def self_timed(case: Case) -> bool:
    """Whether one recorder wrote start, finish, steps and spans; of many ranks' receipts `merge` did."""
    recorded = case.launch.parsed.receipt.run.recorded
    return recorded is not None and recorded.by in ("recorder", "merge")


def alone(case: Case) -> bool:
    """Whether one process wrote it all: the parts of many ranks have a clock each."""
    recorded = case.launch.parsed.receipt.run.recorded
    return recorded is not None and recorded.by == "recorder"


def step_seconds(case: Case, *but: str) -> float:
    """The sum of the listed steps, without those of some flags."""
    out = {at for flag in but for at in case.launch.flagged.get(flag, ())}
    return math.fsum(seconds for at, seconds in enumerate(case.launch.durations) if at not in out)


def monotonic_seconds(case: Case) -> float | None:
    """The length of a launch by the clock that timed its steps: everything that it spent; None where it is not kept."""
    spent = [case.get(name) for name in SPENT]
    return math.fsum(spent) if self_timed(case) and None not in spent else None


def wall_seconds(case: Case) -> float | None:
    """From start to finish by the clock of the day; None where either is not known to the second."""
    run = case.receipt.run
    known = run.finished is not None and case.get("run.started_stated") is None
    return (run.finished - run.started).total_seconds() if known else None


def jump(case: Case) -> float | None:
    """Seconds by which the clock of the day was set while a launch ran, where its own lengths agree; else None.

    A clock is set back, or by whole quarters of an hour, or by years from where a machine without a battery starts.
    """
    wall, length = wall_seconds(case), monotonic_seconds(case)
    if wall is None or length is None or not lengths_agree(case):
        return None
    ahead = wall - length
    near = abs(ahead - _ZONE * round(ahead / _ZONE)) <= min(LOOSE * length + CLOCK_SECONDS, _ZONE / 15)
    set_anew = ahead < 0 or ahead >= _DAY or (ahead >= _ZONE / 2 and near)
    return ahead if set_anew and abs(ahead) > LOOSE * length + CLOCK_SECONDS else None


def lengths_agree(case: Case) -> bool:
    """Whether the steps that a recorder listed add up to the seconds that it says it spent in steps."""
    inside, listed = case.get(SPENT[0]), step_seconds(case)
    if inside is None or not listed:
        return True
    steps = case.get("measurement.steps")
    if inside > listed * (1 + SAME) + SAME and not (steps and steps > len(case.launch.durations)):
        return False
    spans = math.fsum(case.get(f"{GOODPUT}{name}_seconds") or 0.0 for name in SPANS)
    longest = (inside + spans) * (1 + LOOSE) + CLOCK_SECONDS
    return not alone(case) or step_seconds(case, "profile") <= longest
