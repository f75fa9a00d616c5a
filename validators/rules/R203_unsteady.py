"""# R203 unsteady

*Why.* A launch whose level still moves has no speed yet. Step 3 of one run was 5 % below the level that it settled at,
and a run of ten steps would have told the slower story.

*Rejected.* 300 steps that grow slower by 6 % from first to last. The finding says to run longer, for it may be right. A
window that stops before the last step and gives no reason: the best 10 of 100 steps are 2 % faster than the launch.
Flags `checkpoint`, or `warmup`, on the slower half of the steps, each of which lasted as long as a step.

*Accepted.* 300 steps with a warm-up at their head, whose thirds agree after it. Independent steps, however few: what
too few of them cannot show is R204's to say. On a machine that others load, where the process waited for a processor in
a tenth of its time (`measurement.cpu_wait_share`), a level that moves after the warm-up is a warning: nothing that its
author could state would mend it, and the launch is no sample of a comparison anyway. A window that stops early for a
stated reason: the rate of the steps that it leaves out is shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import signed_percent
from receipts.judging.rule import EFFECT, MFU, RATE, Case, I, Offense, Topic, W, ended_well, rule
from receipts.stats.distributions import median

APART = ("checkpoint", "eval", "profile", "data", "warmup")  # what a step may hold beside its own work
MAX_AWAY, MOVED = 0.2, 0.005  # of the steps; of the level, as steadiness allows
MIN_WAITED = 0.1  # of the time: an idle machine shows a hundredth of that


@rule("R203", "unsteady", I, question=EFFECT, taints=(RATE, MFU), about=Topic.INCIDENT, applies=ended_well)
def unsteady(case: Case) -> Iterator[Offense]:
    """Why there is no steady segment."""
    segment = case.launch.segment
    if segment is not None and segment.status == "unsteady":
        waited = case.get("measurement.cpu_wait_share") or 0.0
        shared = segment.moves and waited >= MIN_WAITED
        beside = f"; the process waited for a processor in {min(1.0, waited):.0%} of its time" if shared else ""
        yield Offense(
            at="measurement.step_durations_seconds",
            found=(segment.reason or "no steady segment") + beside,
            expected="a steady segment: thirds that agree after the warm-up",
            do="run longer, on a machine that nobody else loads" if shared else "run longer; 300 steps are recommended",
            level=W if shared else I,
        )
    yield from _left_out(case)
    yield from _flagged_away(case)


def _flagged_away(case: Case) -> Iterator[Offense]:
    """Many steps of ordinary length that flags leave out, where the level would be another with them."""
    launch, segment = case.launch, case.launch.segment
    if segment is None or launch.level is None or launch.interval_steps:
        return
    first = next(index for index in range(segment.start, segment.stop) if index not in segment.left_out)
    marked = {index for flag in APART for index in launch.flagged.get(flag, ()) if first < index < segment.stop}
    away, change = launch.counting(marked)
    if away > MAX_AWAY * (away + segment.kept) and abs(change) > MOVED:
        yield Offense(
            at="measurement.step_flags",
            found=f"{away} of {away + segment.kept} steps are left out by flags, and lasted no longer than a "
            f"step; with them the median is {signed_percent(change)}",
            expected="flags on steps that held a checkpoint, an evaluation, a wait or a profile",
            do="submit the flags as the recorder wrote them, or time that work outside the steps",
        )


def _left_out(case: Case) -> Iterator[Offense]:
    """Ordinary steps after the window: why they are left out, and how fast they are."""
    after, within = case.launch.after_window, case.launch.level
    if within is None or not after:
        return
    reason = case.get("measurement.window.reason")
    level = median(after)
    yield Offense(
        at="measurement.window.stop",
        found=f"{len(after)} steps after the window are left out ({reason or 'no reason stated'}); their median is "
        f"{level:.4g} s, {signed_percent(level / within - 1)} from that within it",
        expected="a window to the last step, or the reason why it stops before",
        do="measure to the last step, or state measurement.window.reason",
        level=W if reason else I,
    )
