"""# C101 many_axes

*Why.* When two settings move at once, neither owns the difference. A doubling of throughput was credited to an
interleaved pipeline; micro batch, global batch and pipeline had all moved, and a later grid showed that the pipeline
alone bought nothing.

*Rejected.* Pipeline 1 → 2 with micro batch 2 → 4: two axes changed.

*Accepted.* MTP depth 1 → 0 with everything else equal; or micro and global batch together when the study
`fixed-accumulation` is asked for by name and its constraint holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import COMPARABLE, E, Offence, Pair, rule


@rule("C101", "many_axes", E, on="pair", question=COMPARABLE)
def many_axes(pair: Pair) -> Iterator[Offence]:
    """Each changed axis that counts, with both values, when there is more than one."""
    if len(pair.counted) < 2:
        return
    for change in pair.difference.changed:
        if change.axis not in pair.counted:
            continue
        values = "; ".join(
            f"{item.a} → {item.b}" if item.path == change.axis else f"{item.path} {item.a} → {item.b}"
            for item in change.members
        )
        yield Offence(
            at=change.axis,
            found=values,
            expected=f"one changed axis; {len(pair.counted)} changed: {', '.join(pair.counted)}",
            do="run the pair with one of them held, or find a chain of one-axis receipts between the two",
        )
