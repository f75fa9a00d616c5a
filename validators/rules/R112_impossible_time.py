"""# R112 impossible_time

*Why.* Steps that last longer than their run were timed by another clock, or copied from another run. Steps in
microseconds that were read as seconds fill no hour of a run. One launch, copied five times under other names, looks
like five that agree.

*Rejected.* 300 steps of 0.8 s in a run of 100 s. A millisecond of steps in a run of an hour that no compile,
checkpoint, evaluation or wait explains. A finish before the start, a start after now. A step of −0.3 s or of 0 s, and
training steps below a microsecond, in which no framework starts one. A launch that started on the host of an earlier
one at its instant, to the microsecond or with the same noise in its steps. Only the later one is rejected.

*Accepted.* 240 s of steps in a run of 260 s. 20 quick steps behind ten minutes of startup: short steps reject where the
rest of the run is ten thousand times their sum. Where the start is known only to the minute or the day, it is compared
no more exactly than a day. A clock that was set while a launch ran, whose own lengths agree; and one that stands before
2025 where the receipt is judged, which knows no future. A failed launch that never wrote its end. Launches that started
in one second on other devices, which they name. Where they name none, the question is open (I). So it is where the run
spent ten times as long in steps as those listed last, and where the wall time of steps is longer than the run, or less
than half the steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import timedelta
from operator import mul

from receipts.axes.replicates import rhythm, rise_together
from receipts.judging.clocks import UNSET, jump
from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, rule
from receipts.receipt import Parsed
from receipts.receipt.document import UNFAILED
from receipts.receipt.measurement import MAX_STEPS

STARTED, FINISHED = "run.started", "run.finished"
STEPS, GOODPUT = "measurement.step_durations_seconds", "measurement.goodput."
WALLS = "measurement.step_wall_seconds"
SPANS = ("compile_seconds", "checkpoint_seconds", "eval_seconds", "data_seconds", "idle_seconds")
DEVICES = ("flags.CUDA_VISIBLE_DEVICES", "flags.TPU_VISIBLE_CHIPS", "flags.TPU_VISIBLE_DEVICES")
CLOCK_SECONDS = 2.0  # times of a run are written to the second, at both ends
DAY_SECONDS = 86_400.0  # a start that is known less exactly, or without its zone
SKEW = timedelta(hours=1)  # between the clocks of two machines
START_UP_SECONDS = 120.0  # interpreter, imports, devices and first data, which nobody times
MAX_TIMES = 10_000  # times the steps' sum that the rest of a run may last without a span that says why
TENFOLD = 10  # times the listed steps: no log loses so many, and no span of steps hides as much
QUICKEST_SECONDS = 1e-6  # a call of a compiled step returns in microseconds, before any device computes


def needs(case: Case) -> Iterable[str]:
    """The end of a launch that ended well."""
    if case.receipt.run.outcome in UNFAILED:
        yield FINISHED


@rule("R112", "impossible_time", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs, reads_others=(STARTED,))
def impossible_time(case: Case) -> Iterator[Offense]:
    """Durations, the clock, finish against start, the sum of steps against the run, and other launches."""
    run, steps = case.receipt.run, case.launch.durations
    if steps and not case.launch.timed:
        wrong = [index for index, step in enumerate(steps) if step <= 0]
        shown = ", ".join(f"step {index}: {steps[index]:g} s" for index in wrong[:3])
        yield Offense(STEPS, shown, "durations above 0", "time steps with a monotonic clock")
    elif steps and run.kind == "training" and (middle := case.launch.median(0, len(steps))) < QUICKEST_SECONDS:
        shown = f"a median step of {middle:.2g} s"
        yield Offense(STEPS, shown, f"{QUICKEST_SECONDS:g} s and more", "check the unit of the durations")
    now = case.facts.now if case.facts is not None else None
    now = None if now is not None and now < UNSET else now
    loose = DAY_SECONDS if case.get("run.started_stated") is not None else 0.0
    if now is not None and run.started > now + SKEW + timedelta(seconds=loose):
        yield Offense(STARTED, f"{run.started:%Y-%m-%d %H:%M} UTC", f"at most {now:%Y-%m-%d %H:%M}", "check the clock")
    if run.finished is not None and jump(case) is None:  # a clock that was set is no length: R123 tells it
        yield from _against_wall(case, (run.finished - run.started).total_seconds(), loose)
    yield from _at_once(case)


def _against_wall(case: Case, wall: float, loose: float) -> Iterator[Offense]:
    total, steps = math.fsum(case.launch.durations), case.launch.durations
    do = "check the unit of the durations, and that they are of this launch"
    if wall + loose < 0:
        shown = f"{-wall:,.0f} s before the start"
        yield Offense(FINISHED, shown, "a finish after the start", "check clocks and zones")
    elif total > wall + loose + CLOCK_SECONDS:
        yield Offense(STEPS, f"{total:,.1f} s of steps in a run of {wall:,.0f} s", f"at most {wall:,.0f} s", do)
    elif case.launch.walls:
        yield from _walls(case, total, wall + loose + CLOCK_SECONDS)
    if not steps or case.receipt.run.kind != "training" or case.receipt.run.outcome not in UNFAILED:
        return
    if case.launch.interval_steps:  # each is a mean of so many steps
        total = math.fsum(map(mul, steps, case.launch.interval_steps))
    spans = math.fsum(case.get(f"{GOODPUT}{name}") or 0.0 for name in SPANS)
    rest = wall - total - max(spans, case.get("compile.compile_seconds") or 0.0) - START_UP_SECONDS - loose
    in_steps = case.get(f"{GOODPUT}step_seconds") or 0.0
    if rest > MAX_TIMES * total or in_steps > MAX_TIMES * total + CLOCK_SECONDS:
        shown = f"{total:,.4g} s of steps in a run of {wall:,.0f} s, and no span says why"
        yield Offense(STEPS, shown, "steps that fill the run, or the spans that do", do)
    elif in_steps > TENFOLD * total + START_UP_SECONDS and len(steps) < MAX_STEPS:  # more than a receipt holds
        shown = f"{total:,.4g} s of steps are listed, and the run spent {in_steps:,.0f} s in steps"
        yield Offense(STEPS, shown, "every step of the run", do, level=I)


def _walls(case: Case, steps: float, wall: float) -> Iterator[Offense]:
    """The wall time of the steps against the run, and against the steps: of ranks that wait in turns, the longest."""
    lengths = case.launch.interval_steps or (1,) * len(case.launch.walls)
    spent = math.fsum(map(mul, case.launch.walls, lengths))
    steps = math.fsum(map(mul, case.launch.durations, lengths)) if case.launch.interval_steps else steps
    if not steps / 2 <= spent <= wall:
        shown = f"{spent:,.1f} s of wall time in {steps:,.1f} s of steps, and a run of {wall - CLOCK_SECONDS:,.0f} s"
        expected = "the wall time of the same steps, in the same run"
        yield Offense(WALLS, shown, expected, "submit the times as the recorder wrote them", level=I)


def _at_once(case: Case) -> Iterator[Offense]:
    """Earlier launches, which stand, that started on this host at this instant."""
    own, facts = case.launch.parsed, case.facts
    others = facts.at_once.get(own.id, ()) if facts is not None else ()
    for other in others:
        if facts is None or other.id in facts.superseded or _apart(own, other):
            continue
        sure = own.receipt.run.started.microsecond != 0 or rise_together(rhythm(own), rhythm(other))
        yield Offense(
            at=STARTED,
            found=f"{own.receipt.run.started:%Y-%m-%d %H:%M:%S.%f} UTC, as {other.id[:12]} on {own.receipt.run.host}",
            expected="one launch at a time on a device",
            do="keep one receipt a launch; state the devices of launches that ran side by side",
            level=None if sure else I,
        )
        return


def _apart(one: Parsed, other: Parsed) -> bool:
    """Whether both name their devices, and share none."""
    for name in DEVICES:
        mine, theirs = (
            str(item.stated.get(f"{name}.value", item.stated.get(name)) or "").split(",") for item in (one, other)
        )
        if mine != [""] and theirs != [""]:
            return not set(mine) & set(theirs)
    return False
