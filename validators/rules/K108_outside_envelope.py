"""# K108 outside_envelope

*Why.* A second was saved at 8,192 tokens, and the sentence promised it at 65,536, which that lane had never sustained.

*Rejected.* The claim's target is 65,536 tokens on 8 chips, and the largest shape that the lane sustained repeatedly (by
two launches) on as many chips or fewer is 16,384.

*Accepted.* The shape lies inside the envelope or on its edge; no shape of the lane was sustained repeatedly, so that
there is no envelope yet. A claim's target is compared at the target's own chips with what any layout held there: the
launch that shows the effect may be smaller, and cut in another way. A ceiling moves the envelope and is not judged by
it, and neither is what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.facts import shape_in_words
from receipts.judging.rule import NONE, ClaimCase, I, Offense, Topic, rule


@rule("K108", "outside_envelope", I, on="claim", question=NONE, facts=True, about=Topic.TARGET)
def outside_envelope(case: ClaimCase) -> Iterator[Offense]:
    """A claim for a shape beyond the lane's envelope."""
    position, moves = case.envelope, case.claim.kind in ("ceiling", "does-not-fit")
    if position.word == "beyond" and position.ceiling is not None and not moves:
        yield Offense(
            at="target" if case.claim.target is not None else "candidate",
            found=f"on its chips or fewer lane {case.lane.name} sustained no shape as large repeatedly",
            expected=f"a shape inside the lane's envelope; the nearest is {shape_in_words(position.ceiling)}",
            do=f"sustain that shape by two launches first; see: receipts ceiling --lane {case.lane.name}",
        )
