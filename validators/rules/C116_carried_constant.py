"""# C116 carried_constant

*Why.* Bucket sizes, padding, chunking and an expert capacity are tuned for one grouping of ranks. With another
grouping the same number is no longer the same choice.

*Rejected.* Tensor 2 → 4 with the bucket size of the old grouping.

*Accepted.* Grouping, shape and fabric unchanged; or the constants were not stated.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.effective import OFF, canonical
from receipts.judging.rule import NONE, Offense, PairCase, W, rule

_DEGREES = ("tensor", "expert", "expert_tensor", "context", "pipeline", "shard", "replicate", "mesh_axes", "placement")
_GROUPING = ("topology", "batch.sequence_length", *(f"parallelism.{name}" for name in _DEGREES))
_TUNED = ("bucket_bytes", "padding", "chunking", "prefetch")
_CONSTANTS = (*(f"parallelism.{name}" for name in _TUNED), "path.intended.overlap")
# How many tokens an expert takes at once, by what divides tokens among experts.
_CAPACITY = ("parallelism.expert", "batch.sequence_length")


@rule("C116", "carried_constant", W, on="pair", question=NONE)
def carried_constant(pair: PairCase) -> Iterator[Offense]:
    """Constants that did not change although the grouping that they were tuned for did."""
    moved = [axis for axis in pair.difference.axes if axis in _GROUPING]
    if not moved:
        return
    tokens_moved = any(axis in _CAPACITY for axis in moved)
    for path in (*_CONSTANTS, *(("model.capacity_factor",) if tokens_moved else ())):
        a, b = pair.values(path)
        if a and a == b and canonical(a) != OFF:
            shown = f"{a:,}" if isinstance(a, int) else a
            yield Offense(
                at=path,
                found=f"{shown} on both sides, while {', '.join(moved)} changed",
                expected="constants tuned for the grouping that they serve",
                do="tune it on B before its speed is taken for that of the new grouping",
            )
