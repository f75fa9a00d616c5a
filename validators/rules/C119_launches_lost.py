"""# C119 launches_lost

*Why.* A launch that left its path, recompiled, crashed or never became steady is not a sample, and is left out of its
side. Choosing survivors is an effect of its own: a configuration of which two launches in five crash is not the equal
of one of which none does, however fast the other three are.

*Rejected.* Shown where more than a third of a side's launches are not samples: 3 of 5 count. Shown where the sides lost
different shares: none of five on A, one of five on B.

*Accepted.* Every launch counts. Each side lost one launch of five.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from receipts.judging.rule import NONE, Offense, PairCase, W, rule
from receipts.judging.verdict import ANOTHER_SESSION, counted_of

MAX_LOST = 1 / 3


@rule("C119", "launches_lost", W, on="pair", question=NONE)
def launches_lost(pair: PairCase) -> Iterator[Offense]:
    """Sides of which many launches, or more than of the other, are no samples."""
    sides: tuple[tuple[Literal["a", "b"], int], ...] = (("a", len(pair.group_a)), ("b", len(pair.group_b)))
    gone = {side: sum(item.side == side and item.why != (ANOTHER_SESSION,) for item in pair.lost) for side, _ in sides}
    shares = {side: gone[side] / max(1, kept + gone[side]) for side, kept in sides}
    uneven = shares["a"] != shares["b"]
    for side, kept in sides:
        if gone[side] and (uneven or shares[side] > MAX_LOST):
            yield Offense(
                at="run.launch",
                found=counted_of(side, kept, pair.lost),
                expected="launches that all count, or as large a share lost on both sides",
                do="find out why they do not count: a side that fails more often is worse, however fast the rest are",
                side=side,
            )
