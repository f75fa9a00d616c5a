"""# R405 lone_chip

*Why.* One chip that peaks alone decides whether the launch fits, and why: an expert that drew the tokens, a stage with
the embedding, a buffer that the compiler replicated. Broad fixes miss it.

*Rejected.* Seven chips peak at 110 GiB and one at 131; or seven at step 12 and one at step 4,000.

*Accepted.* Chips within the lane's `chip_skew` of their median; two groups of chips, as pipeline stages make them;
fewer than three chips.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB
from receipts.judging.rule import MEMORY, NONE, Case, Offense, W, rule


@rule("R405", "lone_chip", W, question=NONE, taints=(MEMORY,))
def lone_chip(case: Case) -> Iterator[Offense]:
    """Chips whose peak, or whose time of peak, is far from their peers' in one phase."""
    tolerance = case.lane.chip_skew
    for phase in case.launch.account.phases:
        peaks = phase.lone(tolerance)
        for chip in peaks.chips:
            yield Offense(
                at=f"memory.chips[{chip.rows[0]}].peak_bytes",
                found=f"chip {chip.chip} peaks at {(chip.peak or 0) / GIB:.2f} GiB in phase {phase.name}",
                expected=f"within {tolerance:.0%} of its peers' {peaks.middle / GIB:.2f} GiB",
                do="look for what this chip alone holds: a stage, an expert, a replicated buffer",
            )
        times = phase.lone_in_time(tolerance)
        for chip in times.chips:
            yield Offense(
                at=f"memory.chips[{chip.rows[0]}].step",
                found=f"chip {chip.chip} peaks at step {chip.step} in phase {phase.name}",
                expected=f"near its peers' step {times.middle:.0f}",
                do="look at what that step did on this chip",
            )
