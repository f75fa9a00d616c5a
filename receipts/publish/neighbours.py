"""The page of a receipt's neighbors: a table for each axis, the best first, then what is rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from receipts.base.text import UNKNOWN
from receipts.base.units import counted
from receipts.publish.page import Page, Section, Table, lines_of, sections_of, table_of
from receipts.publish.readings import effect_word, ends, moved, signed

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood

SHOWN_UNSTATED: Final = 12


def page(near: Neighbourhood, axis: str | None = None) -> Page:
    """The whole page, of one axis or of all."""
    answer = f"{counted(len(near.compared), 'configuration')} one axis away"
    best = next((item for item in near.compared if item.verdict.status == "accepted"), None)
    if best is not None and (result := best.verdict.headline) is not None:
        answer += f"; the best accepted: {best.axis} {_moved(best)}, {signed(result.ratio)}, {effect_word(result)}"
    about = f"lane {near.of.receipt.run.lane} · metric {near.metric}"
    lead = () if near.compared else (_nothing(near, axis),)
    facts = (("", (f"{near.of.name}  {near.of.id[:12]}",)), ("", (about,)))
    return Page(
        f"Neighbors of {near.of.name}", (answer,), facts=facts, lead=lead, sections=sections_of(*_sections(near))
    )


def _sections(near: Neighbourhood) -> Iterator[Section]:
    for axis, items in near.by_axis.items():
        yield Section(f"axis-{axis}", axis, tables=(_table(items, tuple(_remarks(axis, items, near.more))),))
    texts = (
        f"{item.axis} {_moved(item)}: {item.entry.name} ({item.entry.id[:12]}): {item.reason}" for item in near.refused
    )
    yield Section("refused", "Rejected", points=lines_of(texts))


def _remarks(axis: str, items: Sequence[JudgedNeighbour], more: Sequence[str]) -> Iterator[str]:
    if axis in more:
        yield f"the newest of this axis; more with --axis {axis} --limit N"
    reasons = (item.reason for item in items if item.verdict.status == "inconclusive" and item.reason)
    yield from (f"open: {reason}" for reason in dict.fromkeys(reasons))


def _table(items: Sequence[JudgedNeighbour], after: tuple[str, ...]) -> Table:
    """The neighbors along one axis, one configuration a row."""
    header = "id | from → to ^1 | #change | 95 % interval ^3 | effect ^2 | verdict | #launches ^4 | label… ^5"
    rows = (
        (
            *(item.entry.id[:12], _moved(item)),
            signed(result.ratio) if (result := item.verdict.headline) else UNKNOWN,
            ends(result.effect.low, result.effect.high) if result else UNKNOWN,
            effect_word(result) if result else item.verdict.effect,
            *(item.verdict.status, str(len(item.verdict.b)), item.entry.label or ""),
        )
        for item in items
    )
    return table_of("", header, rows, after)


def _moved(item: JudgedNeighbour) -> str:
    """What the axis changed from and to, leaf by leaf."""
    change = next((change for change in item.verdict.difference.changed if change.axis == item.axis), None)
    return moved(change.members) if change is not None else "?"


def _nothing(near: Neighbourhood, axis: str | None) -> str:
    """Why there is none, and what to do next."""
    where = f"in {axis} alone" if axis is not None else "in one axis alone"
    if near.refused:
        return f"Every launch that differs {where} is rejected; receipts compare says what would settle it."
    if near.unstated:
        shown = ", ".join(near.unstated[:SHOWN_UNSTATED])
        rest = len(near.unstated) - SHOWN_UNSTATED
        return (
            f"No stored launch is known to differ {where}: the receipt leaves "
            f"{counted(len(near.unstated), 'axis', 'axes')} open and names no run.context that holds them "
            f"({shown}{f' and {rest} more' if rest > 0 else ''}). State them, or "
            "the context, in this receipt and in those that it is to be compared with."
        )
    return (
        f"No stored launch of lane {near.of.receipt.run.lane} differs {where}. The chain to one that is further away: "
        f"receipts bridge {near.of.id[:12]} ID"
    )
