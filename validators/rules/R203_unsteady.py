"""# R203 unsteady

*Why.* A launch whose level still moves has no speed yet. Step 3 of one run was 5 % below the level that it settled at,
and a run of ten steps would have told the slower story.

*Rejected.* 300 steps that grow slower by 6 % from first to last. The finding says to run longer, for it may be right. A
window over the 70 fastest of 320 steps: those after it are 3 % slower, so it is not the level of the launch.

*Accepted.* 300 steps with a warm-up at their head, whose thirds agree after it. What too few steps cannot show is
R204's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import EFFECT, MFU, RATE, Case, I, Offence, rule
from receipts.stats.order_statistics import median

LEVEL = 0.01  # the smallest effect that matters, where no noise floor says otherwise


@rule("R203", "unsteady", I, question=EFFECT, taints=(RATE, MFU))
def unsteady(case: Case) -> Iterator[Offence]:
    """Why there is no steady segment."""
    if case.receipt.run.outcome != "ok":
        return
    segment = case.launch.segment
    if segment is not None and segment.status == "unsteady":
        yield Offence(
            at="measurement.step_durations_seconds",
            found=segment.reason or "no steady segment",
            expected="a steady segment: thirds that agree after the warm-up",
            do="run longer; 300 steps are recommended",
        )
    yield from _left_out(case)


def _left_out(case: Case) -> Iterator[Offence]:
    """Ordinary steps after the window, at another level than those within it."""
    stop, steps, within = case.get("measurement.window.stop"), case.launch.durations, case.launch.step_seconds
    flagged = {index for positions in case.launch.flagged.values() for index in positions}
    after = [steps[index] for index in range(min(stop or len(steps), len(steps)), len(steps)) if index not in flagged]
    if within is None or len(after) < case.lane.minimum_steps:
        return
    apart = median(after) / within - 1
    if abs(apart) > LEVEL:
        yield Offence(
            at="measurement.window.stop",
            found=f"the median of the {len(after)} steps after the window lies {apart:+.1%} from that within it",
            expected=f"steps left out within {LEVEL:.0%} of those measured",
            do="measure to the last step, or run until the level holds",
        )
