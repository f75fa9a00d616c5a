"""The clocks of a launch: its lengths by the recorder's monotonic clock, and its start and finish by the day's."""

from __future__ import annotations

import math
import re
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


# The name of what a trace's clock says of a step of this launch; `receipts/emit/profiling.py` marks what it timed.
_TRACED: Final = re.compile(r"step\.(\d{1,9})\.nanoseconds")
_BACKWARD: Final = "work.backward_nanoseconds"
_MARK_SECONDS: Final = 1e-4  # a mark reaches over the two readings of the clock
_ONE_STEP: Final = (1.2, 5e-3)  # of one step alone: the process may have waited between mark and reading


def longer_in_trace(case: Case) -> tuple[int, float, float] | None:
    """The traced step, its seconds as stated and by the trace's clock, where all traced steps are longer there."""
    steps, profiled = case.launch.durations, set(case.launch.flagged.get("profile", ()))
    for entry in case.launch.parsed.receipt.evidence or ():
        marks = {
            int(match[1]): value / 1e9
            for name, value in (entry.observed or {}).items()
            if (match := _TRACED.fullmatch(name)) and isinstance(value, int)
        }
        if not marks or not marks.keys() <= profiled or max(marks) >= len(steps):
            continue
        share, more = (1 + LOOSE, _MARK_SECONDS) if len(marks) > 1 else _ONE_STEP
        if all(seconds > steps[at] * share + more for at, seconds in marks.items()):
            at = max(marks, key=lambda number: marks[number] / steps[number])
            return at, steps[at], marks[at]
    return None


def longest_backward(case: Case) -> float:
    """Seconds of a step that the backward pass took, by the clocks of its traces; 0 if none shows it."""
    observed = (entry.observed or {} for entry in case.launch.parsed.receipt.evidence or ())
    return max((value / 1e9 for row in observed if isinstance(value := row.get(_BACKWARD), int)), default=0.0)


def self_timed(case: Case) -> bool:
    """Whether one recorder wrote start, finish, steps and spans; of many ranks' receipts `merge` did.

    `ingest` adds what a trace shows to what they wrote, and leaves the names of their sources.
    """
    recorded = case.launch.parsed.receipt.run.recorded
    return recorded is not None and (recorded.by in ("recorder", "merge") or recorded.sources is not None)


def alone(case: Case) -> bool:
    """Whether one process wrote it all: the parts of many ranks have a clock each."""
    recorded = case.launch.parsed.receipt.run.recorded
    if recorded is None or recorded.by == "ingest":
        return recorded is not None and recorded.sources is not None and len(recorded.journals or ()) == 1
    return recorded.by == "recorder"


def step_seconds(case: Case, *but: str) -> float:
    """The sum of the listed steps, without those of some flags."""
    out = {at for flag in but for at in case.launch.flagged.get(flag, ())}
    return math.fsum(seconds for at, seconds in enumerate(case.launch.durations) if at not in out)


def monotonic_seconds(case: Case) -> float | None:
    """The length of a launch by the clock that timed its steps: everything that it spent; None if it is not kept."""
    spent = [case.get(name) for name in SPENT]
    return math.fsum(spent) if self_timed(case) and None not in spent else None


def wall_seconds(case: Case) -> float | None:
    """From start to finish by the clock of the day; None if either is not known to the second."""
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
