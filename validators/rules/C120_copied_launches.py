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

from receipts.axes.replicates import rhythm, rise_together
from receipts.judging.rule import NONE, Offense, PairCase, W, rule
from receipts.receipt.written import intact

_MOST: Final = 12  # launches that are compared with each other


@rule("C120", "copied_launches", W, on="pair", question=NONE)
def copied_launches(pair: PairCase) -> Iterator[Offense]:
    """Launches of either side that are one launch with some noise, as far as anybody can see."""
    launches = [launch.parsed for launch in (*pair.group_a, *pair.group_b)][:_MOST]
    rhythms = {one.id: rhythm(one) for one in launches}
    vouched = {one.id for one in launches if intact(one)}
    for one, other in combinations(launches, 2):
        if not {one.id, other.id} <= vouched and rise_together(rhythms[one.id], rhythms[other.id]):
            yield Offense(
                at="measurement.step_durations_seconds",
                found=f"the steps of {one.name} and {other.name} rise and fall together; no program vouches for both",
                expected="launches with noise of their own",
                do="submit the receipts as the recorder wrote them, or run the launches again",
            )
            return
