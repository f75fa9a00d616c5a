"""Changed axes that a comparison does not count: waived, indifferent to the metric, derived, or moved by a study."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from receipts.axes import Difference
from receipts.axes.catalogue import LENGTH, bookkeeping_reason
from receipts.axes.effective import leaves_of
from receipts.axes.lane import Lane
from receipts.base.errors import UsageError
from receipts.metrics import Metric
from receipts.receipt import Parsed, Role
from receipts.receipt.dtypes import dtype_of

if TYPE_CHECKING:
    from receipts.judging.study import Study

_OF_A_STEP = ("step", "rate", "memory", "compile")  # summaries that a longer run does not move


def check_waivers(waivers: Mapping[str, str], lane: Lane, diff: Difference, launches: Sequence[Parsed]) -> None:
    """Raises UsageError for a waiver without a reason, of an axis that the lane protects, or of one that is equal."""
    # A host that nobody states may be another host, and so may be waived as one that differs.
    unstated = (leaf.path for leaf in leaves_of(Role.BLOCK) if any(leaf.path not in item.stated for item in launches))
    places = (item.path for item in diff.blocks)
    named = {*diff.axes, *(item.axis for item in diff.unknown), *places, *unstated}
    for axis, reason in waivers.items():
        if not reason.strip():
            raise UsageError(f'a waiver needs a reason: --waive {axis}="why it cannot matter"')
        if not any(fnmatch.fnmatchcase(axis, pattern) for pattern in lane.waivable):
            allowed = ", ".join(lane.waivable) or "nothing"
            raise UsageError(f"lane {lane.name} does not allow to waive {axis}; it allows: {allowed}")
        if axis not in named:
            raise UsageError(f"{axis} neither changed nor is unknown here, so there is nothing to waive; leave it out")


def uncounted_axes(
    diff: Difference, metric: Metric, lane: Lane, study: Study | None, a: Parsed, b: Parsed
) -> Mapping[str, str]:
    """Changed axes that do not count, each with its reason: the metric's, the lane's, or the study's."""
    reasons: dict[str, str] = {}
    if metric.summary in _OF_A_STEP:
        reasons |= dict.fromkeys(diff.length, f"{metric.name} does not depend on it: {bookkeeping_reason(LENGTH)}")
    for item in metric.indifferent:
        if item.axis in diff.axes and not any(axis in diff.axes for axis in item.unchanged):
            reasons[item.axis] = f"{metric.name} does not depend on it: {item.because}"
    for coupling in lane.couplings:
        if coupling.when in diff.axes:
            for axis in coupling.then:
                if axis in diff.axes and axis != coupling.when and not _other_library(axis, diff, lane):
                    reasons.setdefault(axis, f"follows {coupling.when}: {coupling.because}")
    if study is not None:
        broken = study.broken_by(diff, a.stated, b.stated)
        moving = [axis for axis in study.axes if axis in diff.axes and axis not in reasons]
        if not broken:
            for axis in moving[1:]:
                reasons[axis] = f"moves with {moving[0]} in the study {study.name}"
    return reasons


def _other_library(axis: str, diff: Difference, lane: Lane) -> bool:
    """Whether a GEMM changed in more than the type that its name carries, where no list of the lane holds it."""
    if axis != "path.gemm" or "gemm" in lane.path:
        return False
    members = next(change.members for change in diff.changed if change.axis == axis)
    return any(_without_dtypes(item.a) != _without_dtypes(item.b) for item in members)


def _without_dtypes(name: object) -> tuple[str, ...]:
    return tuple(word for word in re.findall(r"[a-z0-9]+", str(name).lower()) if dtype_of(word) is None)
