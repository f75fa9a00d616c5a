"""# R405 lone_chip

*Why.* One chip that peaks alone decides whether the launch fits, and why: an expert that drew the tokens, a stage with
the embedding, a buffer that the compiler replicated. Broad fixes miss it.

*Rejected.* Seven chips peak at 110 GiB and one at 131; or seven at step 12 and one at step 4,000.

*Accepted.* Chips within the lane's `chip_skew` of their median; two groups of chips, as pipeline stages make them;
fewer than three chips.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.rule import MEMORY, NONE, Case, Offence, W, rule
from receipts.stats.order_statistics import median

_GIB = 2**30
_STEPS = 10  # peaks that are this near in time are one moment: the first steps after warm-up

Row = tuple[int, int, float]  # position in the list, chip, value


@rule("R405", "lone_chip", W, question=NONE, taints=(MEMORY,))
def lone_chip(case: Case) -> Iterator[Offence]:
    """Chips whose peak, or whose time of peak, stands apart from their peers' in one phase."""
    rows = list(enumerate((case.receipt.memory.chips if case.receipt.memory is not None else None) or ()))
    for phase in dict.fromkeys(row.phase for _, row in rows):
        here = [(index, row) for index, row in rows if row.phase == phase]
        peaks = [(index, row.chip, row.peak_bytes) for index, row in here if row.peak_bytes is not None]
        middle = median([value for _, _, value in peaks]) if peaks else 0.0
        for index, chip, value in _apart(peaks, case.lane.chip_skew * middle):
            yield Offence(
                at=f"memory.chips[{index}].peak_bytes",
                found=f"chip {chip} peaks at {value / _GIB:.2f} GiB in phase {phase}",
                expected=f"within {case.lane.chip_skew:.0%} of its peers' {middle / _GIB:.2f} GiB",
                do="look for what this chip alone holds: a stage, an expert, a replicated buffer",
            )
        times = [(index, row.chip, float(row.step)) for index, row in here if row.step is not None]
        moment = median([value for _, _, value in times]) if times else 0.0
        for index, chip, value in _apart(times, max(_STEPS, case.lane.chip_skew * moment)):
            yield Offence(
                at=f"memory.chips[{index}].step",
                found=f"chip {chip} peaks at step {value:.0f} in phase {phase}",
                expected=f"near its peers' step {moment:.0f}",
                do="look at what that step did on this chip",
            )


def _apart(rows: Sequence[Row], tolerance: float) -> list[Row]:
    """Rows farther from the median than the tolerance, where they are few: half of the chips is no lone chip."""
    if len(rows) < 3:
        return []
    middle = median([value for _, _, value in rows])
    found = [row for row in rows if abs(row[2] - middle) > tolerance]
    return found if len(found) <= max(1, len(rows) // 4) else []
