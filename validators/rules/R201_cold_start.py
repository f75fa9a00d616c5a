"""# R201 cold_start

*Why.* The first steps compile, allocate and fill caches. Two single cold iterations once showed 35.7 % between them,
and all of it was tracing and compiling.

*Rejected.* A step that is flagged `compile` inside the measured window. A window that starts at the first step of a
launch, with no warm-up before it.

*Accepted.* Ten warm-up steps, compiles among them, and a window that starts after them. A failed launch, which has no
steady window to be cold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.rule import EFFECT, MFU, RATE, Case, E, Offence, rule

START, STOP = "measurement.window.start", "measurement.window.stop"
WARMUP, FLAGS = "measurement.window.warmup_steps", "measurement.step_flags"


def needs(case: Case) -> Iterable[str]:
    """Where the window starts; and with steps, which of them were flagged."""
    if case.launch.durations:
        yield START
        yield FLAGS
    else:
        yield f"{START}|{WARMUP}"


def applies(case: Case) -> bool:
    """A launch that failed has no steady window."""
    return bool(case.receipt.run.outcome == "ok")


@rule("R201", "cold_start", E, question=EFFECT, taints=(RATE, MFU), needs=needs, applies=applies)
def cold_start(case: Case) -> Iterator[Offence]:
    """Compiles inside the window, then a window without warm-up."""
    start, stop = case.get(START), case.get(STOP)
    compiles = case.launch.flagged.get("compile", ()) if start is not None else ()
    inside = [index for index in compiles if index >= start and (stop is None or index < stop)]
    if inside:
        yield Offence(
            at=FLAGS,
            found=f"compile at step {', '.join(str(index) for index in inside[:5])}, in a window from {start}",
            expected="a window that starts after the last compile",
            do="start the window later, or warm up every shape before it",
        )
    if not case.get(WARMUP) and (start == 0 or (start is None and case.get(WARMUP) == 0)):
        yield Offence(
            at=START,
            found="a window from the first step of the launch",
            expected="warm-up steps before it",
            do="warm up, and state window.start or window.warmup_steps",
        )
