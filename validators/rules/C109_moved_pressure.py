"""# C109 moved_pressure

*Why.* A change that lowers the largest peak may only have moved it: another chip now leads, at nearly the old
height, and the next increase in batch fails there.

*Rejected.* Chip 0 led at 119 GiB; now chip 5 leads at 118 GiB while chip 0 fell to 90 GiB.

*Accepted.* The leading chip is the same, or every chip fell.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import NONE, Offence, Pair, W, rule


@rule("C109", "moved_pressure", W, on="pair", question=NONE)
def moved_pressure(pair: Pair) -> Iterator[Offence]:
    """A leading chip that was relieved while another rose."""
    a, b = _peaks(pair.a.receipt), _peaks(pair.b.receipt)
    if len(a) < 2 or set(a) != set(b):
        return
    leader, heir = max(a, key=lambda chip: a[chip]), max(b, key=lambda chip: b[chip])
    if leader != heir and b[heir] > a[heir] and b[leader] < a[leader]:
        yield Offence(
            at="memory.chips",
            found=f"chip {leader} fell from {_gib(a[leader])} to {_gib(b[leader])}, "
            f"and chip {heir} rose from {_gib(a[heir])} to {_gib(b[heir])} and now leads",
            expected="a peak that fell, not one that moved",
            do="judge the change by the largest peak, and look at what stands on the new leader",
        )


def _peaks(receipt: object) -> dict[int, int]:
    memory = getattr(receipt, "memory", None)
    found: dict[int, int] = {}
    for row in (memory.chips or ()) if memory is not None else ():
        if row.peak_bytes is not None:
            found[row.chip] = max(row.peak_bytes, found.get(row.chip, 0))
    return found


def _gib(value: int) -> str:
    return f"{value / 2**30:.1f} GiB"
