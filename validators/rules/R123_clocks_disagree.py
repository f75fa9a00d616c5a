"""# R123 clocks_disagree

*Why.* Whoever makes a launch faster by its clock has two clocks to bend. A job halved `time.perf_counter_ns`, and was
twice as fast; an edit divided every step by ten and computed the digest again. Both left a run that takes twice or ten
times as long as all that it did. A trace of the same steps has a clock of its own.

*Rejected.* Of a launch whose recorder wrote start, finish, steps and spans: 120 s of listed steps beside 240 s that it
spent in steps; 360 s of steps beside 240 s; wall times of steps that are shorter than the steps. Of any launch: every
step of its trace longer there than it is stated; a backward pass of 0.8 s a step where no step takes 0.4 s. As open:
steps, spans and idle time that add up to 129 s in a run of 250 s from start to finish. The recorder's receipt without
its seconds by category, or the wall time of its steps.

*Accepted.* Steps, spans and idle time that add up to the run, within 2 % and a second. A clock that was set while the
launch ran, by NTP, a zone or from 1970, while the lengths of the monotonic clock agree: it is shown (W) and convicts
nobody. A trace whose steps are not those of the receipt, such as one by the schedule of the job's own profiler. Steps
beyond those that a receipt lists. Receipts that people wrote, and logs: they do not tell where all time went, and R112
judges what they cannot mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from receipts.judging.clocks import (
    CLOCK_SECONDS,
    LOOSE,
    SAME,
    SPENT,
    alone,
    jump,
    lengths_agree,
    longer_in_trace,
    longest_backward,
    monotonic_seconds,
    self_timed,
    step_seconds,
    wall_seconds,
)
from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, W, ended_well, rule

STEPS, WALLS = "measurement.step_durations_seconds", "measurement.step_wall_seconds"

TICK = 1e-6  # wall times are written to a tenth of a microsecond


def needs(case: Case) -> Iterable[str]:
    """Where a recorder's launch spent its time: it writes every category, and from 1.1 on the wall time, with steps."""
    if _asked(case):
        yield from SPENT
        if alone(case) and case.launch.parsed.receipt.schema_version != "1.0":
            yield WALLS


def _asked(case: Case) -> bool:
    return self_timed(case) and bool(case.launch.durations) and ended_well(case)


@rule("R123", "clocks_disagree", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs)
def clocks_disagree(case: Case) -> Iterator[Offense]:
    """Listed steps against the seconds in steps, the trace's clock, and all that was spent from start to finish."""
    yield from _traced(case)
    if not _asked(case):
        return
    if not lengths_agree(case):
        yield Offense(
            at=STEPS,
            found=f"{step_seconds(case):,.4g} s of steps, and the recorder spent {case.get(SPENT[0]):,.4g} s in steps",
            expected="steps that add up to the seconds in steps, and to the spans inside them",
            do="submit the receipt as the recorder wrote it",
        )
        return
    if not alone(case):
        return  # of ranks that wait in turns, each in its own process
    pairs = zip(case.launch.walls, case.launch.durations, strict=False)
    if short := sum(wall < seconds * (1 - SAME) - TICK for wall, seconds in pairs):
        yield Offense(
            at=WALLS,
            found=f"{short:,} steps whose wall time is shorter than the step",
            expected="the time since the step before, which the step is part of",
            do="submit the receipt as the recorder wrote it",
        )
    wall, length = wall_seconds(case), monotonic_seconds(case)
    if wall is None or length is None:
        return
    if (ahead := jump(case)) is not None:
        yield Offense(
            at="run.finished",
            found=f"the clock of the day was set by {ahead:+,.0f} s while the launch ran",
            expected=f"about {length:,.0f} s from start to finish, by the monotonic clock that timed the steps",
            do="nothing for this launch: its lengths hold; set the machine's clock before the next one",
            level=W,
        )
    elif wall > length * (1 + LOOSE) + CLOCK_SECONDS:
        yield Offense(
            at=STEPS,
            found=f"steps, spans and idle time of {length:,.4g} s in a run of {wall:,.4g} s",
            expected="a run whose time its recorder spent somewhere",
            do="keep the journal of the run, or launch it under receipts record, whose clock is another process's",
            level=I,
        )


def _traced(case: Case) -> Iterator[Offense]:
    """Steps that took longer by the clock of the launch's own trace."""
    do = "submit the receipt as the recorder wrote it; where a job sets the clock, its steps are timed by another one"
    if (longer := longer_in_trace(case)) is not None:
        at, stated, seconds = longer
        found = f"step {at} of {stated:.4g} s, and {seconds:.4g} s by the clock of its trace"
        yield Offense(STEPS, found, "one length by both clocks, in each step of the trace", do)
    elif (backward := longest_backward(case)) > max(case.launch.durations, default=math.inf) * (1 + LOOSE):
        found = (
            f"no step longer than {max(case.launch.durations):.4g} s, and a backward pass of {backward:.4g} s a step"
        )
        yield Offense(STEPS, found, "steps that have room for what the trace shows in them", do)
