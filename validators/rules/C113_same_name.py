"""# C113 same_name

*Why.* Hidden 3,584 with 28 heads became 4,096 with 32 under one model name. TFLOP/s went up, tokens per second went
down, and both were quoted as progress of the same model.

*Rejected.* One `model.name` on both sides, and the dimensions, pattern or routing differ.

*Accepted.* Geometry that differs under names that differ, or that is equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Offense, PairCase, W, rule


@rule("C113", "same_name", W, on="pair", question=NONE)
def same_name(pair: PairCase) -> Iterator[Offense]:
    """Geometry that moved under an unchanged name."""
    a, b = pair.values("model.name")
    if a is None or a != b:
        return
    for change in pair.difference.changed:
        if change.axis in ("dimensions", "pattern", "routing"):
            values = "; ".join(f"{item.path} {item.a} → {item.b}" for item in change.members)
            yield Offense(
                at="model.name",
                found=f"both are called {a}; {values}",
                expected="one name for one geometry",
                do="give the new geometry a name of its own",
            )
