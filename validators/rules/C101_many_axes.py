"""# C101 many_axes

*Why.* When two settings change at once, the difference cannot be credited to either. A doubling of throughput was
credited to an interleaved pipeline. Micro batch, global batch and pipeline had all changed, and a later grid showed
that the pipeline alone gained nothing.

*Rejected.* Pipeline 1 → 2 with micro batch 2 → 4: two axes changed. `--heads 8 → 2` with `--lr 1e-2 → 3e-4`, though no
leaf states either: an option that differs is an axis, `inputs.heads`.

*Accepted.* MTP depth 1 → 0 with everything else equal, `--mtp-depth` with it; `--attn math → flash` beside another
`--run-name` and another seed, which are bookkeeping; or micro and global batch together when the study
`fixed-accumulation` is asked for by name and its constraint holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words
from receipts.base.units import named
from receipts.judging.rule import COMPARABLE, E, Offense, PairCase, Topic, rule

_MAX_NAMED = 6  # axes that are named in a row; each has a finding of its own


@rule("C101", "many_axes", E, on="pair", question=COMPARABLE, about=Topic.AXES)
def many_axes(pair: PairCase) -> Iterator[Offense]:
    """Each changed axis that counts, with both values, when there is more than one."""
    if len(pair.counted) < 2:
        return
    for change in pair.difference.changed:
        if change.axis not in pair.counted:
            continue
        values = "; ".join(
            f"{'' if item.path == change.axis else f'{item.path} '}{in_words(item.a)} → {in_words(item.b)}"
            for item in change.members
        )
        yield Offense(
            at=change.axis,
            found=values,
            expected=f"one changed axis; {len(pair.counted)} changed: {named(pair.counted, _MAX_NAMED)}",
            do="run a pair in which one of them changes, or find a chain of one-axis receipts between the two",
        )
