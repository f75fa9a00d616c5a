"""# K104 off_target

*Why.* A kernel that won 33 % on one chip lost 9 % on another, and a win at depth 4 was gone at depth 52. Small shapes
are where people look first, not where they train.

*Rejected.* The lane's target is 8 chips at 4,096 tokens and depth 52, and the candidate ran at depth 4. The claim names
a target of its own, and the candidate ran elsewhere. The target states a pattern, and the candidate has other blocks,
whatever the model is called. A substrate of a lane is not a target. Where the claim itself names the
smaller shape this is only shown (W): the claim says so already.

*Accepted.* The candidate ran at the claim's target, or at one of its lane's; or neither names one.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.shape import target_of
from receipts.judging.rule import NONE, ClaimCase, I, Offense, Topic, W, rule


@rule("K104", "off_target", I, on="claim", question=NONE, about=Topic.TARGET)
def off_target(case: ClaimCase) -> Iterator[Offense]:
    """Not shown at the shape where it is to hold."""
    if not case.candidate or case.claim.kind == "does-not-fit":
        return
    if case.at_target is False:
        yield Offense(
            at="target",
            found=f"{case.candidate[0].parsed.name} did not run at {case.target}",
            expected=f"launches at {case.target}",
            do="repeat both sides there; until then it waits: receipts claim pending",
        )
    elif case.at_target and case.lane.targets and target_of(case.candidate[0].parsed, case.lane) is None:
        names = " or ".join(item.name for item in case.lane.targets)
        yield Offense(
            at="target",
            found=f"it holds at {case.target}, away from the targets of lane {case.lane.name}",
            expected=f"launches at {names}",
            do="repeat both sides there before it is used for that shape",
            level=W,
        )
