"""# K102 wrong_cause

*Why.* A gain was credited to tensorwise FP8 while the micro batch had grown from 8 to 10; a 100 TFLOP/s gap was called
a host's, with five other axes beside it. The number was right each time, and the sentence was not.

*Rejected.* The claim credits `precision`, and `batch.micro_batch` changed; it credits one axis, and two changed; it
credits the driver, and only CUDA changed; it says that another kernel did it, and both sides compiled the same program;
it says that a rank holds fewer weights, and the peak rose; that the sequence is divided otherwise, and tensor
parallelism grew without sequence parallelism; that the topology became feasible, and the baseline ran the same work.

*Accepted.* The axis that it credits is the one that changed, alone; a change that follows from it, was waived, or is
the study's, does not count. The mechanism is one that this axis can carry, and no observation contradicts it. Weight
residency, sequence partition, compile shape and a feasible topology are all ways in which one change of the tensor
degree can help, so each must also be seen: a lower peak, another division of the sequence, another program, a baseline
that could not run. Until then the claim is open. As W: "TP helped", where the layout has pipeline or expert parts too
and neither they nor a mechanism are named.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.axes import axis_of
from receipts.axes.effective import wheel_name
from receipts.base.units import amount
from receipts.judging.mechanism import SEQUENCE_WAYS
from receipts.judging.rule import COMPARABLE, ClaimCase, E, I, Offense, W, rule
from receipts.metrics import Launch

if TYPE_CHECKING:
    from receipts.judging.mechanism import Trace
    from receipts.judging.verdict import Comparison

# "TP helped": the words for a degree. Which way it helped depends on what else divides the model.
DEGREES = {
    "parallelism.tensor": re.compile(r"\bTP\b|tensor[- ]parallel", re.IGNORECASE),
    "parallelism.pipeline": re.compile(r"\bPP\b|pipeline[- ]parallel", re.IGNORECASE),
    "parallelism.expert": re.compile(r"\bEP\b|expert[- ]parallel", re.IGNORECASE),
    "parallelism.context": re.compile(r"\bCP\b|context[- ]parallel", re.IGNORECASE),
}
SLACK = 0.01  # a metric that moved by less did not move


@rule("K102", "wrong_cause", E, on="claim", question=COMPARABLE)
def wrong_cause(case: ClaimCase) -> Iterator[Offense]:
    """The credited axis against the changed ones, and the mechanism against axes and observations."""
    if case.comparison is None:
        return
    yield from _axis(case)
    yield from _mechanism(case)
    yield from _vague(case)


def _vague(case: ClaimCase) -> Iterator[Offense]:
    """A degree that is credited by its name alone, in a layout of several."""
    claim = case.claim
    if claim.mechanism_named is not None:
        return
    credited = {path for path, words in DEGREES.items() if path == claim.axis or words.search(claim.text)}
    sides = [{path: launch.stated.get(path) for path in DEGREES} for launch in case.launches]
    parts = {path for side in sides for path, degree in side.items() if isinstance(degree, int) and degree > 1}
    if credited and claim.axis in (None, *DEGREES) and (others := sorted(parts - credited)):
        yield Offense(
            at="axis" if claim.axis else "text",
            found=f"it credits {', '.join(sorted(credited))}, in a layout with {', '.join(others)} as well",
            expected="the whole layout, or the way in which the degree helped",
            do="name the layout of both sides in the text, or a mechanism: receipts claim --help",
            level=W,
        )


def _axis(case: ClaimCase) -> Iterator[Offense]:
    credited, comparison = case.claim.axis, case.comparison
    if credited is None or comparison is None:
        return
    changed, counted = comparison.difference.axes, comparison.counted
    unknown = {item.axis for item in comparison.difference.unknown}
    axis = axis_of(credited)
    others = [other for other in counted if other != axis]
    moved = axis == credited or _moved(credited, comparison)
    if (axis not in changed and axis in unknown) or (axis in changed and not moved and _silent(credited, case)):
        yield Offense(
            at="axis",
            found=f"it credits {credited}, and whether that changed is not stated on both sides",
            expected=f"{credited} stated on both sides",
            do=f"state {credited}",
            level=I,
        )
    elif axis not in changed or not moved:
        changes = ", ".join(counted if axis not in changed else _members(axis, comparison)) or "nothing"
        yield Offense(
            "axis", f"it credits {credited}, and what changed is {changes}", "the axis that changed", "credit that axis"
        )
    elif others:
        yield Offense(
            at="axis",
            found=f"it credits {credited}, and {', '.join(others)} changed as well",
            expected=f"{credited} alone",
            do="compare launches that differ in it alone, or name the study that moves them together",
        )


def _moved(leaf: str, comparison: Comparison) -> bool:
    """Whether a member of an axis is among those that changed."""
    head, _, name = leaf.partition(".")
    return (f"wheels.{wheel_name(name)}" if head == "wheels" else leaf) in _members(axis_of(leaf), comparison)


def _silent(leaf: str, case: ClaimCase) -> bool:
    """Whether a launch does not state a leaf. Which wheels there are is stated as a whole."""
    return not leaf.startswith("wheels.") and any(leaf not in launch.stated for launch in case.launches)


def _members(axis: str, comparison: Comparison) -> list[str]:
    return [member.path for item in comparison.difference.changed if item.axis == axis for member in item.members]


def _mechanism(case: ClaimCase) -> Iterator[Offense]:
    mechanism, comparison = case.claim.mechanism_named, case.comparison
    if mechanism is None or comparison is None:
        return
    counted = comparison.counted
    if counted and not any(mechanism.carried_by(axis) for axis in counted):
        yield Offense(
            at="mechanism",
            found=f"{mechanism.name} ({mechanism.says}) is not what {', '.join(counted)} changes",
            expected=f"a change of {', '.join(mechanism.axes)}",
            do="credit a mechanism that this axis can carry",
        )
    for trace in mechanism.traces:
        if any(fnmatch.fnmatchcase(axis, trace.on) for axis in counted or ("",)):
            yield from _trace(mechanism.name, trace, case)


def _trace(name: str, trace: Trace, case: ClaimCase) -> Iterator[Offense]:
    before, after = ([_value(trace.of, launch) for launch in side] for side in (case.baseline, case.candidate))
    unknown = not before or not after or None in (*before, *after)
    elsewhere = any(len({_value(path, launch) for launch in case.launches}) > 1 for path in trace.same)
    contradiction = "" if unknown or elsewhere else _contradicted(trace, before, after)
    if contradiction:
        yield Offense("mechanism", f"{name}: {contradiction}", trace.because, "credit another mechanism")
    elif trace.required and (unknown or elsewhere or not _seen(trace, before, after)):
        why = "not stated on both sides" if unknown else "no sign of it"
        do = f"state what shows it ({trace.of}), or credit another mechanism"
        yield Offense("mechanism", f"{name}: {trace.of}: {why}", trace.because, do, level=I)


def _contradicted(trace: Trace, before: list[Any], after: list[Any]) -> str:
    """What stated values say against a trace; empty where they agree."""
    if trace.moves == "differs":
        same = set(before) == set(after) and len(set(before)) == 1
        return f"{trace.of} is the same on both sides" if same else ""
    low, high = max(before), min(after)
    if trace.moves == "more" and max(after) < min(before) * (1 - SLACK):
        return f"{trace.of} fell from {_shown(trace.of, min(before))} to {_shown(trace.of, max(after))}"
    if trace.moves == "less" and high > low * (1 + SLACK):
        return f"{trace.of} rose from {_shown(trace.of, low)} to {_shown(trace.of, high)}"
    return ""


def _seen(trace: Trace, before: list[Any], after: list[Any]) -> bool:
    """Whether every launch of one side lies where the trace says, beyond every one of the other."""
    if trace.moves == "differs":
        return not set(before) & set(after)
    low, high = (before, after) if trace.moves == "more" else (after, before)
    return bool(max(low) < min(high))


def _shown(name: str, value: float) -> str:
    return amount(value) if name.endswith("bytes") else f"{value:,.4g}"


def _value(name: str, launch: Launch) -> Any:
    if name == SEQUENCE_WAYS:
        return _sequence_ways(launch)
    return launch.read(metrics.get(name)).value if name in metrics.METRICS else launch.stated.get(name)


def _sequence_ways(launch: Launch) -> int | None:
    """Ranks that share a sequence; None where the layout does not say."""
    stated, applies = launch.stated, launch.lane.applies
    context = stated.get("parallelism.context") if applies("parallelism.context") else 1
    tensor = stated.get("parallelism.tensor") if applies("parallelism.tensor") else 1
    parallel = tensor != 1 and (stated.get("parallelism.sequence") if applies("parallelism.sequence") else False)
    if context is None or tensor is None or parallel is None:
        return None
    return int(context) * (int(tensor) if parallel else 1)
