"""# C109 moved_pressure

*Why.* A change that lowers the largest peak may only have moved it: another chip now leads, at nearly the old
height, and the next increase in batch fails there.

*Rejected.* Chip 0 led at 119 GiB; now chip 5 leads at 118 GiB while chip 0 fell to 90 GiB. Pressure moved where the
leader changed, the old leader's live peak fell and the new leader's rose, each by more than equal launches lie apart
on one chip: the store's A/A pairs and the launches compared show how far that is, else 1 % is assumed.

*Accepted.* The leading chip is the same, or every chip fell, or what changed lies within that spread.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB, signed_percent
from receipts.judging.rule import NONE, Offense, PairCase, W, rule
from receipts.metrics.chip_pressure import pressure


@rule("C109", "moved_pressure", W, on="pair", question=NONE)
def moved_pressure(pair: PairCase) -> Iterator[Offense]:
    """A leading chip that was relieved while another rose and now leads."""
    a, b = ([launch.account for launch in side] for side in (pair.group_a, pair.group_b))
    change = pressure(a, b, spread=pair.facts.chip_spread if pair.facts is not None else None)
    old, new = change.relieved, change.burdened
    if old is None or new is None:
        return
    before, after = change.highest
    yield Offense(
        at="memory.chips",
        found=f"chip {old} fell from {change.a[old] / GIB:.1f} GiB to {change.b[old] / GIB:.1f} GiB, and chip {new} "
        f"rose from {change.a[new] / GIB:.1f} GiB to {change.b[new] / GIB:.1f} GiB and now leads: the highest "
        f"live peak changed by {signed_percent(after / before - 1)}; {change.margin}",
        expected="a peak that fell, not one that moved",
        do="judge the change by the largest peak, and look at what the new leader holds",
    )
