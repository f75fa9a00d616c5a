"""Ceilings of a lane, validated apart from repeated ones and from peaks, and the nearest shapes that did not fit.

`receipts ceiling` shows them as a report does, which takes launches that started before its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from receipts.axes.shape import Description, described, pressure
from receipts.base.units import counted
from receipts.publish.page import Cell, Mark, Section, State
from receipts.publish.report.page import joined, link, more
from receipts.publish.report.ref import Ref, ref_of
from receipts.publish.text import NOTE, plain
from receipts.questions.ceiling import GRADES, Cause, Ceiling, CeilingFrontiers, Frontier, Size, frontiers

if TYPE_CHECKING:
    from receipts.store import Store

MOST: Final = 12  # groups of shapes in a report
NEAREST: Final = 3  # failures that are named beyond one ceiling
STATES: Final[Mapping[str, State]] = {"validated": "yes", "repeated": "open", "peak": "shown"}
_NAMES: Final = ("tokens", "micro batch", "depth")


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a lane sustained, group by group, of which ``more`` are left out.

    `described` says what the receipt is of that represents a group; `refs` has every receipt that is named, and
    `pressures` what each had beside its shape.
    """

    reached: CeilingFrontiers
    more: int
    described: Mapping[str, Description]
    refs: Mapping[str, Ref]
    pressures: Mapping[str, str]


def ceilings(
    store: Store, lane: str, *, since: datetime | None = None, until: datetime | None = None, most: int | None = None
) -> Ceilings:
    """The ceilings of a lane among launches that started in an interval, those groups first that have the best."""
    reached = frontiers(store.query.reached(lane, since, until))
    ordered = sorted(reached.frontiers, key=lambda group: _rank(group.ceilings[0]) if group.ceilings else len(GRADES))
    kept = tuple(ordered[:most])
    ids = dict.fromkeys(name for group in kept for name in group.last_launches)
    return Ceilings(
        reached=reached._replace(frontiers=kept),
        more=len(ordered) - len(kept),
        described={group.receipt: described(store.parsed(group.receipt).stated) for group in kept},
        refs={name: ref_of(store.entry(name)) for name in ids},
        pressures={name: pressure(store.parsed(name)) for name in ids},
    )


def _rank(item: Ceiling) -> int:
    return GRADES.index(item.grade)


def section(anchor: str, data: Ceilings) -> Section:
    """The ceilings in words."""
    groups, shapeless = data.reached
    intro = (
        "The largest shapes that measured training sustained. Launches of one shape may differ in recompute and "
        "precision; those of the last one are named. A peak is no ceiling."
    )
    if not groups:
        intro = "No measured training launch of this lane that states its shape sustained one, or ran out of memory."
    elif not any(item.grade == "validated" for group in groups for item in group.ceilings):
        intro = f"{intro} None is validated yet."
    several = counted(shapeless, "launch", "launches")
    left = (f"Without a whole shape (chips, sequence length, micro batch, depth): {several}.",) if shapeless else ()
    points = tuple((_title(group, data), tuple(_lines(group, data))) for group in groups)
    return Section(anchor, "Ceilings", sentences=(intro, *left, *more(data.more, "groups of shapes")), points=points)


def _title(group: Frontier, data: Ceilings) -> str:
    known = data.described[group.receipt]
    family = plain(" ".join(filter(None, (known.family, known.name)))) or "family not stated"
    return f"{family} on {group.chips:,} × {plain(group.accelerator or 'accelerator not stated')}"


def _lines(group: Frontier, data: Ceilings) -> Iterator[Cell]:
    known = data.described[group.receipt]
    if words := plain(" · ".join(filter(None, (known.model, known.layout))), NOTE):
        yield (words,)
    for item in group.ceilings:
        yield (Mark(STATES[item.grade], item.grade), f" {_size(item.size)}: ", *_sustained(item, data))
    for cause in group.elsewhere:
        yield (Mark("no", "failed"), " ", *_cause(cause, data), "; beyond no shape that was sustained")


def _sustained(item: Ceiling, data: Ceilings) -> Cell:
    hosts = f", {counted(item.hosts, 'host')}" if item.hosts else ""
    times = f"{counted(item.launches, 'launch', 'launches')}, {counted(item.days, 'day')}{hosts}, last "
    parts: list[Cell] = [(times, *link(data.refs[item.receipt]), _when(item, data))]
    if item.failed_here:
        parts.append((f"{counted(item.failed_here, 'launch', 'launches')} ran out of memory at this very shape",))
    parts += [("out of memory at ", *_cause(cause, data, item.size)) for cause in item.failures[:NEAREST]]
    left = len(item.failures) - NEAREST
    parts += [(f"and {left} more",)] if left > 0 else []
    parts += [] if item.failures else [("no failure beyond it is known: the gap is open",)]
    return joined(parts, "; ")


def _cause(cause: Cause, data: Ceilings, below: Size | None = None) -> Cell:
    kinds = plain(", ".join(cause.kinds).replace("_", " "))
    times = counted(cause.launches, "launch", "launches")
    gap = f" (gap: {_gap(below, cause.size)})" if below is not None else ""
    return (f"{_size(cause.size)}{gap}: {kinds}, {times}, ", *link(data.refs[cause.receipt]), _when(cause, data))


def _when(item: Ceiling | Cause, data: Ceilings) -> str:
    """The day of the last launch, and what it had beside the shape."""
    return f", {item.at:%Y-%m-%d}, {data.pressures[item.receipt]}"


def _size(size: Size) -> str:
    length, micro, depth = size
    return f"{length:,} tokens × micro batch {micro:,}, depth {depth:,}"


def _gap(here: Size, there: Size) -> str:
    return ", ".join(f"{name} ×{b / a:.3g}" for name, a, b in zip(_NAMES, here, there, strict=True) if a != b)
