"""# C120 copied_launches

*Why.* Five copies of one launch agree better than any five launches do. With some noise in their steps, or a factor on
them, no two copies are equal, and the interval between them shows nothing but that noise.

*Rejected.* Shown where the steps of two launches, one by one, are longer and shorter together (correlation of the
differences of their logarithms above 0.9), and no program vouches for both. Data of varying length does the same, so
this rejects nothing: read it beside the grade.

*Accepted.* Launches with noise of their own. Launches that a program wrote and nobody edited, whatever their steps.
Launches with the same steps, in order or shuffled, are refused before any rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from receipts.axes.replicates import rise_together
from receipts.judging.rule import NONE, Offense, PairCase, W, rule
from receipts.receipt.parse import intact

_MOST: Final = 6  # launches of a side that are compared with each other and with the other side's


@rule("C120", "copied_launches", W, on="pair", question=NONE)
def copied_launches(pair: PairCase) -> Iterator[Offense]:
    """Launches of either side that are one launch with some noise, as far as anybody can see."""
    launches = [(launch, intact(launch.parsed)) for group in (pair.group_a, pair.group_b) for launch in group[:_MOST]]
    alike = [
        (one, other)
        for (one, vouched), (other, vouched_too) in combinations(launches, 2)
        if not (vouched and vouched_too) and rise_together(one.rhythm, other.rhythm)
    ]
    if alike:
        copies = sorted({launch.parsed.id[:12] for pair_of in alike for launch in pair_of})
        yield Offense(
            at="measurement.step_durations_seconds",
            found=f"steps of {len(copies)} launches rise and fall together ({', '.join(copies[:4])}"
            f"{', …' if len(copies) > 4 else ''}), and no program vouches for them",
            expected="launches with noise of their own",
            do="submit the receipts as the recorder wrote them, or run the launches again",
        )
