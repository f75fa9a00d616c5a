"""# R406 estimate_off

*Why.* An estimate that nobody checks against the measured peak is trusted for the next launch as well. A gap says that
the plan and the run differ (a recompute that was not applied, a state that was not sharded) or that the estimator
misses a surface.

*Rejected.* 90 GiB of live surfaces predicted, 118 GiB measured on the fullest chip, at a tolerance of 10 %.

*Accepted.* The sum of the predicted surfaces is within the lane's `estimate_tolerance` of the highest live peak of any
chip. Runtime reserve and allocator overhead are not live memory and are left out; where only the pool was read, the
overhead counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB, signed_percent
from receipts.estimate.surface import SurfaceName
from receipts.judging.rule import MEMORY, NONE, Case, Offense, W, rule
from receipts.metrics.chips import highest
from receipts.receipt.document import UNFAILED


@rule("R406", "estimate_off", W, question=NONE, taints=(MEMORY,))
def estimate_off(case: Case) -> Iterator[Offense]:
    """The predicted bytes of the fullest chip and its measured peak lie apart."""
    memory = case.receipt.memory
    rows = (memory.predicted if memory is not None else None) or ()
    if not rows or case.get("run.outcome") not in UNFAILED:
        return
    live = highest(memory, "peak_bytes")
    measured = live if live is not None else highest(memory, "peak_reserved_bytes")
    if not measured:
        return
    left_out = {SurfaceName.RESERVE.value} | ({SurfaceName.OVERHEAD.value} if live is not None else set())
    predicted = sum(row.bytes for row in rows if row.surface not in left_out)
    off = predicted / measured - 1
    if abs(off) > case.lane.estimate_tolerance:
        kind = "live" if live is not None else "in the pool"
        yield Offense(
            at="memory.predicted",
            found=f"{predicted / GIB:.2f} GiB predicted, {measured / GIB:.2f} GiB {kind} measured "
            f"({signed_percent(off)})",
            expected=f"within {case.lane.estimate_tolerance:.0%} of the fullest chip's peak",
            do="look at receipts fit with this receipt: which surface is off, and what it had to assume",
        )
