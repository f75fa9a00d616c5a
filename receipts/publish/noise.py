"""The page of noise floors: one class of launches a row, what is missing from each, and the self-check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.base.units import counted
from receipts.publish.page import Page, Section, Table, table_of

if TYPE_CHECKING:
    from receipts.questions.noise import LaneNoise
    from receipts.stats.noise import GateCheck, SelfCheck

DELTA = {"lane": "set by the lane", "default": "default"}


def page(lanes: Sequence[LaneNoise], check: SelfCheck) -> Page:
    """The whole page."""
    lacks = tuple(f"{_name(item)}: {why}" for item in lanes if (why := missing(item)))
    checks = tuple(f"{_name(item)}: {item.check.why}" for item in lanes if item.check.pairs)
    floors = Section("floors", "Noise floor", tables=(_table(lanes, lacks),))
    gates = tuple(f"{_name(item)}: {_gate(item.gate)}" for item in lanes if item.gate is not None and item.gate.pairs)
    own = (Section("gate", "Your own gate", gates or ("no two equal launches ran one after the other",)),)
    asked = any(item.gate is not None for item in lanes)
    sections = (floors, *(own if asked else ()), Section("check", "Self-check", (*checks, _verdict(check))))
    return Page("Noise", (_answer(lanes, check),), sections=sections)


def _gate(gate: GateCheck) -> str:
    """How often the gate would have failed, and what would not."""
    seen = f"{gate.failed} of {gate.pairs} pairs of equal launches"
    what = f"a gate of {gate.share:.2%} on {counted(gate.launches, 'launch', 'launches')} a side"
    if gate.expected is None or gate.quiet_share is None:
        return f"{what} fails {seen}"
    launches = counted(gate.quiet_launches or 1, "launch", "launches")
    quiet = f"one in a hundred: a gate of {gate.quiet_share:.2%}, or {launches} a side"
    return f"{what} fails {seen}, and {gate.expected:.1%} by σ; {quiet}"


def _answer(lanes: Sequence[LaneNoise], check: SelfCheck) -> str:
    """How much identical launches vary, over all classes, and whether the statistics hold on them."""
    sigmas = [item.floor.sigma for item in lanes if item.floor.sigma is not None]
    if not sigmas:
        return "not known yet how much identical launches vary: no configuration ran twice with its steps kept"
    ends = dict.fromkeys(f"{sigma:.2%}" for sigma in (min(sigmas), max(sigmas)))
    alarm = check.alarm or any(item.check.alarm for item in lanes)
    state = "the self-check raises an ALARM" if alarm else "the self-check raises no alarm"
    measured = f"identical launches vary by {' to '.join(ends)} in {counted(len(sigmas), 'class', 'classes')}"
    return f"step times of {measured}; {state}"


def _table(lanes: Sequence[LaneNoise], after: tuple[str, ...]) -> Table:
    header = (
        "lane | accelerator ^3 | #chips ^2 | #sequence ^2 | #groups ^4 | #launches ^1 | #σ | #df ^5"
        " | #largest spread ^6 | δ"
    )
    return table_of("", header, map(_floor, lanes), after, empty="no launch kept its steps")


def _floor(item: LaneNoise) -> tuple[str, ...]:
    shape, floor = item.shape, item.floor
    return (
        shape.lane if shape.kind == "training" else f"{shape.lane} ({shape.kind})",
        *(shape.accelerator or "not stated", _count(shape.chips), _count(shape.sequence_length)),
        *(str(floor.groups), str(floor.launches), _sigma(item)),
        "~" if floor.df is None else f"{floor.df:g}",
        "~" if floor.largest_spread is None else f"{floor.largest_spread:.2%}",
        f"{item.delta:.2%} ({DELTA[item.delta_source]})",
    )


def _sigma(item: LaneNoise) -> str:
    if item.floor.sigma is not None:
        return f"{item.floor.sigma:.3%}"
    return "~" if item.declared is None else f"{item.declared:.3%} declared, not measured"


def _count(count: int | None) -> str:
    return "not stated" if count is None else str(count)


def _name(item: LaneNoise) -> str:
    shape = item.shape
    chips = "1 chip" if shape.chips == 1 else f"{_count(shape.chips)} chips"
    parts = (shape.lane, shape.accelerator, chips, f"sequence {_count(shape.sequence_length)}")
    return " · ".join(filter(None, parts))


def missing(item: LaneNoise) -> str | None:
    """What would give the number that is not there; None where it is."""
    if item.floor.sigma is not None:
        return None
    if item.floor.launches:
        return "equal launches agree to the last digit: a finer clock, or launches that are not copies, would show σ"
    launches = counted(item.stored, "launch", "launches")
    return f"{launches}, none of them repeated: run one configuration twice, with every axis stated, to show σ"


def _verdict(check: SelfCheck) -> str:
    if check.share is None:
        return f"not checked yet: {check.why}"
    state = "ALARM" if check.alarm else "no alarm"
    return f"all together: {check.why}: {check.share:.1%}, where 5 % are expected, as often faster as slower; {state}"
