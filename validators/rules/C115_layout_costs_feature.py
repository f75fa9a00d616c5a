"""# C115 layout_costs_feature

*Why.* A layout may quietly cost a feature that the lane exists for: tensor 2 moved the Mamba mixer to another kernel
family, and the gain that was measured was the gain of leaving it out.

*Rejected.* Tensor 1 → 2, and `path.ssm` goes from the lane's kernels to something else; or a feature that the lane
requires is on in A and off, or unset, in B.

*Accepted.* Every required feature is as it was. Or the model changed: a dense stack has no mixer to lose, and what goes
with its blocks is a part of the other model, not what a layout cost.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words, is_off
from receipts.base.units import named
from receipts.judging.rule import PATH, E, Offense, PairCase, rule

_NAMED = 3  # changed axes that are named beside it; C101 lists them all
_MODEL = ("pattern", "dimensions", "routing")  # axes of the model that are no single leaf of it


@rule("C115", "layout_costs_feature", E, on="pair", question=PATH)
def layout_costs_feature(pair: PairCase) -> Iterator[Offense]:
    """Features that the lane requires, and that the change switched off."""
    difference = pair.difference
    if any(axis in _MODEL or axis.startswith("model.") for axis in difference.axes):
        return
    moved = (*(member for change in difference.changed for member in change.members), *difference.derived)
    values = {member.path: (member.a, member.b) for member in moved}
    for path in pair.lane.required_leaves:
        a, b = values.get(path, (None, None))
        if a is None or is_off(a):
            continue
        # Two kernels of one family against each other are an experiment, where nothing else moved.
        chosen = path.startswith("path.") and pair.difference.axes != (path,)
        if chosen or b is None or is_off(b):
            others = [axis for axis in pair.difference.axes if axis != path]
            beside = f", where {named(others, _NAMED)} changed" if others else ""
            yield Offense(
                at=path,
                found=f"{in_words(a)} on A, {in_words(b)} on B{beside}",
                expected=f"{path} kept at {a}: lane {pair.lane.name} requires it",
                do="keep the feature on both sides, or compare in a lane that does not require it",
            )
