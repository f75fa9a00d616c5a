"""# R112 impossible_time

*Why.* Steps that last longer than their run were timed by another clock, or copied from another run. A duration that
is not positive is a clock that jumped.

*Rejected.* 300 steps of 0.8 s in a run of 100 s. A finish before the start. A step of −0.3 s or of 0 s.

*Accepted.* 240 s of steps in a run of 260 s. Where the start is known only to the minute or the day, it is compared no
more exactly than that. A failed launch that never wrote its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from receipts.rule import COMPARABLE, MFU, RATE, Case, E, Offence, rule

STARTED, FINISHED = "run.started", "run.finished"
STEPS = "measurement.step_durations_seconds"
CLOCK_SECONDS = 2.0  # times of a run are written to the second, at both ends


def needs(case: Case) -> Iterable[str]:
    """The end of a launch that ended well."""
    if case.receipt.run.outcome == "ok":
        yield FINISHED


@rule("R112", "impossible_time", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs)
def impossible_time(case: Case) -> Iterator[Offence]:
    """Durations, then finish against start, then the sum of steps against the run."""
    run, steps = case.receipt.run, case.launch.durations
    if steps and not case.launch.timed:
        wrong = [index for index, step in enumerate(steps) if step <= 0]
        shown = ", ".join(f"step {index}: {steps[index]:g} s" for index in wrong[:3])
        yield Offence(STEPS, shown, "durations above 0", "time steps with a monotonic clock")
    if run.finished is None or case.get("run.started_stated") is not None:
        return
    wall, total = (run.finished - run.started).total_seconds(), math.fsum(steps)
    if wall < 0:
        yield Offence(
            FINISHED, f"{-wall:,.0f} s before the start", "a finish after the start", "check clocks and zones"
        )
    elif total > wall + CLOCK_SECONDS:
        yield Offence(
            STEPS,
            f"{total:,.1f} s of steps in a run of {wall:,.0f} s",
            f"at most {wall:,.0f} s",
            "check the unit of the durations, and that they are of this launch",
        )
