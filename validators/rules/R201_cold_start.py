"""# R201 cold_start

*Why.* The first steps compile, allocate and fill caches. Two single cold iterations once showed 35.7 % between them,
and all of it was tracing and compiling.

*Rejected.* A step that is flagged `compile` inside the measured window. A window that starts at the first step of a
launch, with no warm-up before it. Where nobody stated the warm-up, `measurement.window.stated` is `default` and
`warmup_steps` says how many steps stand for it: the question stays open (I) where a compile, or a step of more than
1.5 times the median of the later ones, lies within them or the five steps after them. A compile further on is inside
any window.

*Accepted.* Ten warm-up steps, compiles among them, and a window that starts after them. A failed launch, which has no
steady window to be cold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import EFFECT, MFU, RATE, Case, E, I, Offense, ended_well, rule
from receipts.stats.distributions import median

START, STOP = "measurement.window.start", "measurement.window.stop"
WARMUP, FLAGS = "measurement.window.warmup_steps", "measurement.step_flags"
BASIS, STEPS = "measurement.window.stated", "measurement.step_durations_seconds"
MARGIN = 5  # steps behind a default boundary in which the warm-up may still be going on
SLOW = 1.5  # times the median of the later steps: a compile or a cold cache, and no jitter
DO = "start the window later, or warm up every shape before it"


def needs(case: Case) -> Iterable[str]:
    """Where the window starts; and with steps, which of them were flagged."""
    if not case.launch.series:
        yield f"{START}|{WARMUP}"
    else:
        yield WARMUP if _default(case) else START
        yield FLAGS


def _default(case: Case) -> bool:
    """Whether nobody said where the warm-up ends."""
    return case.get(START) is None and case.get(BASIS) == "default"


@rule(
    "R201",
    "cold_start",
    E,
    question=EFFECT,
    taints=(RATE, MFU),
    needs=needs,
    applies=ended_well,
    amortized="a cold start is inside the window",
)
def cold_start(case: Case) -> Iterator[Offense]:
    """Compiles inside the window, then a window without warm-up."""
    start, stop, warmup = case.get(START), case.get(STOP), case.get(WARMUP)
    compiled = [index for index in case.launch.flagged.get("compile", ()) if stop is None or index < stop]
    if _default(case):
        yield from _by_default(case, compiled, warmup) if warmup is not None else ()
        return
    if inside := [index for index in compiled if start is not None and index >= start]:
        yield _compiled(inside, f"in a window from {start}")
    if not warmup and (start == 0 or (start is None and warmup == 0)):
        yield Offense(
            at=START,
            found="a window from the first step of the launch",
            expected="warm-up steps before it",
            do="warm up, and state window.start or window.warmup_steps",
        )


def _by_default(case: Case, compiled: list[int], boundary: int) -> Iterator[Offense]:
    """Compiles that are late wherever the warm-up ends, then what may be warm-up and may be not."""
    end = boundary + MARGIN
    if inside := [index for index in compiled if index >= end]:
        yield _compiled(inside, f"more than {MARGIN} steps behind a warm-up of {boundary}")
    steps = case.launch.series
    usual = median(steps[end:]) if len(steps) > end else None
    slow = [index for index, seconds in enumerate(steps[:end]) if usual and seconds > SLOW * usual]
    if early := sorted({*slow, *(index for index in compiled if index < end)}):
        yield Offense(
            at=STEPS if slow else FLAGS,
            found=f"a compile or a slow step at {_shown(early)}, and nothing states where the warm-up ends",
            expected=f"no such step among the first {end}, or a stated window",
            do="state measurement.window.start, the first step after the warm-up",
            level=I,
        )


def _compiled(inside: list[int], where: str) -> Offense:
    return Offense(at=FLAGS, found=f"compile at step {_shown(inside)}, {where}", expected="none in the window", do=DO)


def _shown(steps: list[int]) -> str:
    return ", ".join(str(index) for index in steps[:5])
