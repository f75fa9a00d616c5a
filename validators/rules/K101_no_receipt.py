"""# K101 no_receipt

*Why.* A hundred articles restated a lab's figures; for most of them no run could be named any more. What cites nothing
cannot be checked, and cannot go stale either.

*Rejected.* A speed-up without a baseline; a candidate `3f9c` that is not a receipt in the store; a label that names
launches of two configurations.

*Accepted.* Every side that the claim's kind asks for names receipts that are there. A ceiling, an MFU and what does
not fit speak of a candidate alone; arithmetic speaks of none.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, ClaimCase, E, Offense, Topic, rule


@rule("K101", "no_receipt", E, on="claim", question=NONE, about=Topic.RECEIPTS)
def no_receipt(case: ClaimCase) -> Iterator[Offense]:
    """Words without a matching receipt, and sides that name nothing."""
    for side, why in case.missing:
        yield Offense(side, why, "a receipt that is there", "submit it, or name another")
    if case.claim.kind == "arithmetic":
        return
    wanted = ["candidate"]
    if case.claim.kind in ("speedup", "equivalence"):
        wanted.insert(0, "baseline")
    for side in wanted:
        if not getattr(case.claim, side):
            yield Offense(side, "it cites nothing", f"the receipts of its {side}", f"name them under {side}")
