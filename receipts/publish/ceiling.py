"""The page of a lane's ceilings: the largest shapes that it sustained, and the nearest that ran out of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from receipts.base.units import counted
from receipts.publish.page import Cell, Entry, Mark, Page, Section, State

if TYPE_CHECKING:
    from receipts.axes.shape import Description
    from receipts.questions.ceiling import Cause, Ceiling, CeilingFrontiers, Frontier, Size

STATES: Final[Mapping[str, State]] = {"validated": "yes", "repeated": "open", "peak": "shown"}
MOST_FAILURES: Final = 3
BESIDE: Final = "launches of one shape may differ in recompute and precision; each row names those of its last launch"


def page(
    lane: str,
    reached: CeilingFrontiers,
    names: Mapping[str, Description],
    pressures: Mapping[str, str],
    since: str | None,
) -> Page:
    """A section for each model, machine and layout; ``names`` describes the receipt that stands for each.

    ``pressures`` are what the last launch of each shape had beside it.
    """
    sections = tuple(_section(group, names[group.receipt], pressures) for group in reached.frontiers)
    lead = [BESIDE] if sections else []
    if not sections:
        lead.append(f"no measured training launch of {lane} states a whole shape{f' since {since}' if since else ''}")
    if reached.shapeless:
        shape = "launches state no whole shape (chips, sequence length, micro batch, depth) and are left out"
        lead.append(f"{reached.shapeless:,} {shape}")
    return Page(f"Ceilings of {lane}", lead=tuple(lead), sections=sections)


def _section(group: Frontier, known: Description, pressures: Mapping[str, str]) -> Section:
    family = " ".join(filter(None, (known.family, known.name))) or "family not stated"
    words = " · ".join(filter(None, (known.model, known.layout)))
    title = f"{family} on {group.chips} × {group.accelerator or 'accelerator not stated'}"
    entries = [_entry(item, pressures) for item in group.ceilings]
    for cause in group.elsewhere:
        why = f"{_cause(cause, pressures)}; beyond no shape that was sustained"
        entries.append(Entry("", (Mark("no", "failed"), f"  {_size(cause.size)}"), (("", (why,)),)))
    return Section("", title, sentences=(words,) if words else (), entries=tuple(entries))


def _entry(item: Ceiling, pressures: Mapping[str, str]) -> Entry:
    return Entry("", (Mark(STATES[item.grade], item.grade), f"  {_size(item.size)}"), tuple(_facts(item, pressures)))


def _facts(item: Ceiling, pressures: Mapping[str, str]) -> Iterator[tuple[str, Cell]]:
    hosts = f", {counted(item.hosts, 'host')}" if item.hosts else ""
    launches = f"{counted(item.launches, 'launch', 'launches')}, {counted(item.days, 'day')}{hosts}"
    yield "", (f"{launches}; last {item.receipt[:12]}, {item.at:%Y-%m-%d}, {pressures[item.receipt]}",)
    if item.failed_here:
        yield "", (f"and {item.failed_here:,} that ran out of memory at this very shape",)
    for cause in item.failures[:MOST_FAILURES]:
        yield "fails at", (f"{_size(cause.size)} ({_gap(item.size, cause.size)}): {_cause(cause, pressures)}",)
    if not item.failures:
        yield "", ("no failure beyond it is known: the gap is open",)


def _cause(cause: Cause, pressures: Mapping[str, str]) -> str:
    times = counted(cause.launches, "launch", "launches")
    last = f"last {cause.receipt[:12]}, {cause.at:%Y-%m-%d}, {pressures[cause.receipt]}"
    return f"{', '.join(cause.kinds)}; {times}, {last}"


def _size(size: Size) -> str:
    length, micro, depth = size
    return f"{length:,} tokens × micro batch {micro:,}, depth {depth:,}"


def _gap(here: Size, there: Size) -> str:
    names = ("tokens", "micro batch", "depth")
    parts = [f"{name} ×{b / a:.3g}" for name, a, b in zip(names, here, there, strict=True) if a != b]
    return f"gap: {', '.join(parts)}"
