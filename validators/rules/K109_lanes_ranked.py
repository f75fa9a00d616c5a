"""# K109 lanes_ranked

*Why.* An MFU has a meaning below its lane's header only: hardware, block mix, batch geometry, compile, precision and
overlap policy. A dense Megatron lane with Transformer Engine kernels, an FSDP2 lane for debugging and a TPU SPMD lane
are three experiments, even if all three print a share of a peak. One column of such shares is read as a ranking.

*Rejected.* A table has 46 % MFU of `tpu-maxtext` above 41 % MFU of `nvidia-megatron`; each number holds. "MaxText beats
Megatron, 46 % to 41 % MFU." The same of TPU and H200, with or without links. A factor of MFU between receipts of two
lanes.

*Accepted.* MFU of one lane, in whatever order. MFU of two lanes, each in its own table or section, or in sentences that
compare nothing. Tokens a second of two lanes: rates state their unit, and other rules hold them.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, E, Offense, StatementCase, rule


@rule("K109", "lanes_ranked", E, on="statement", question=NONE)
def lanes_ranked(case: StatementCase) -> Iterator[Offense]:
    """MFU numbers of several lanes in one order."""
    lanes = sorted(set(case.lanes))
    if case.metric != "mfu" or len(lanes) < 2 or case.ignored:
        return
    yield Offense(
        at=case.place,
        found=f"one order of MFU across lanes: {', '.join(lanes)}",
        expected="MFU beside MFU of one lane",
        do="give each lane a table or section of its own, or compare launches of one lane",
    )
