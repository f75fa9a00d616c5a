"""# R204 too_few_steps

*Why.* With few steps a warm-up, a trend and noise look alike. Windows of 3 to 8 steps gave three different numbers of
one launch.

*Rejected.* 12 steps, three of them warm-up: nine are left.

*Accepted.* 290 steps after 10 of warm-up. Ten steps that count: a launch is one sample however many steps it has, and
launches are the units; 300 are recommended.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import EFFECT, MFU, RATE, Case, I, Offense, ended_well, rule
from receipts.stats.steady import MINIMUM_STEPS


@rule("R204", "too_few_steps", I, question=EFFECT, taints=(RATE, MFU), applies=ended_well)
def too_few_steps(case: Case) -> Iterator[Offense]:
    """Steps that count against the lane's least."""
    segment = case.launch.segment
    if segment is not None and segment.status == "too_few" and not case.launch.interval_steps:
        yield Offense(
            at="measurement.step_durations_seconds",
            found=segment.reason or f"{segment.kept} steps that count",
            expected=f"at least {max(case.lane.minimum_steps, MINIMUM_STEPS)} in lane {case.lane.name}",
            do="run longer; 300 steps are recommended",
        )
