"""# R203 unsteady

*Why.* A launch whose level still moves has no speed yet. Step 3 of one run was 5 % below the level that it settled at,
and a run of ten steps would have told the slower story.

*Rejected.* 300 steps that grow slower by 6 % from first to last. The finding says to run longer, for it may be right.

*Accepted.* 300 steps with a warm-up at their head, whose thirds agree after it. What too few steps cannot show is
R204's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import EFFECT, MFU, RATE, Case, I, Offence, rule


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
