"""# R407 thin_headroom

*Why.* A launch that fits to the last gigabyte fits once. Compile peaks, collectives, fragmentation and one crowded
expert come out of what is left.

*Rejected.* A live peak of 131 GiB under a limit of 139.8: 6 % left, where the lane keeps 10 %.

*Accepted.* Every chip keeps the share of memory free that the lane calls `headroom`. A launch that ran out of memory is
not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB
from receipts.judging.rule import MEMORY, NONE, Case, Offense, W, rule


@rule("R407", "thin_headroom", W, question=NONE, taints=(MEMORY,))
def thin_headroom(case: Case) -> Iterator[Offense]:
    """The tightest chip, where less is left on it than the lane keeps."""
    chip = case.launch.account.tightest
    if chip is None or chip.left is None or chip.limit is None or case.get("run.outcome") == "oom":
        return
    # R403 covers figures above the limit.
    if 0 <= chip.left < case.lane.headroom:
        yield Offense(
            at=f"memory.chips[{chip.rows[0]}].peak_bytes",
            found=f"chip {chip.chip} keeps {chip.left:.1%} of {chip.limit / GIB:.2f} GiB in phase {chip.phase}",
            expected=f"at least {case.lane.headroom:.0%} on lane {case.lane.name}",
            do="take the first rung of the ladder that relieves this chip before calling this shape a ceiling",
        )
