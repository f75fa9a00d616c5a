"""Tables of the store: receipts, a receipt's neighbors axis by axis, and incidents of histories.

Of receipts: which columns, with which units, and which a narrow terminal drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.base.units import counted
from receipts.base.untrusted_text import UNKNOWN
from receipts.publish.page import Page, Section, Table, lines_of, sections_of, table_of
from receipts.publish.readings import effect_word, ends, moved, number, signed, unit
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood
    from receipts.store import Entry
    from receipts.store.decisions import Incident

NONE = "-"


def stored(entries: Sequence[Entry], *, who: bool = False) -> Table:
    """Stored receipts, one a row; with who submitted them where that is asked for."""
    rate, memory = metrics.get("tokens_per_second"), metrics.get("peak_bytes")
    header = (
        "id | status | outcome | lane ^5 | chips ^3 | #sequence ^6 | #micro ^7"
        f" | rate, [{unit(rate)}] ^1 | !what it is ^8 | peak, [{unit(memory)}] ^4"
        f"{' | submitted by' if who else ''} | label…"
    )
    rows = (
        (
            item.id[:12],
            item.status if item.stands else "superseded",
            item.outcome,
            item.lane,
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            str(item.sequence_length or NONE),
            str(item.micro_batch or NONE),
            number(rate, item.tokens_per_second) if item.tokens_per_second else NONE,
            _basis(item),
            number(memory, item.peak_bytes) if item.peak_bytes else NONE,
            *([item.actor or "not recorded"] if who else []),
            item.label or "",
        )
        for item in entries
    )
    return table_of("Receipts", header, rows, empty="no receipt meets these conditions")


def listed(entries: Sequence[Entry], commands: Mapping[str, str], *, who: bool = False) -> Page | Table:
    """The same, as a page with the commands that would decide open receipts, by receipt, if there are any."""
    steps = tuple((command, f"What would decide {receipt[:12]}") for receipt, command in commands.items() if command)
    table = stored(entries, who=who)
    return Page("Receipts", next=steps, sections=(Section("receipts", "", tables=(table,)),)) if steps else table


def _basis(item: Entry) -> str:
    """What the rate of a receipt is."""
    if item.rate_of is None:
        return {"stated": "as stated", "derived": "derived from what is stated"}.get(item.rate_source or "", NONE)
    return f"{item.rate_of}, not steady" if item.rate_source == "unsteady" else item.rate_of


SHOWN_UNSTATED: Final = 12


def neighbours(near: Neighbourhood, axis: str | None = None) -> Page:
    """The whole neighbours, of one axis or of all."""
    answer = f"{counted(len(near.compared), 'configuration')} one axis away"
    best = next((item for item in near.compared if item.verdict.status == "accepted"), None)
    if best is not None and (result := best.verdict.headline) is not None:
        answer += f"; the best accepted: {best.axis} {_axis_moved(best)}, {signed(result.ratio)}, {effect_word(result)}"
    about = f"lane {near.of.receipt.run.lane} · metric {near.metric}"
    lead = () if near.compared else (_nothing(near, axis),)
    facts = (("", (f"{near.of.name}  {near.of.id[:12]}",)), ("", (about,)))
    return Page(
        f"Neighbors of {near.of.name}", (answer,), facts=facts, lead=lead, sections=sections_of(*_sections(near))
    )


def _sections(near: Neighbourhood) -> Iterator[Section]:
    for axis, items in near.by_axis.items():
        yield Section(f"axis-{axis}", axis, tables=(_along(items, tuple(_remarks(axis, items, near.more))),))
    texts = (
        f"{item.axis} {_axis_moved(item)}: {item.entry.name} ({item.entry.id[:12]}): {item.reason}"
        for item in near.refused
    )
    yield Section("refused", "Rejected", points=lines_of(texts))


def _remarks(axis: str, items: Sequence[JudgedNeighbour], more: Sequence[str]) -> Iterator[str]:
    if axis in more:
        yield f"the newest of this axis; more with --axis {axis} --limit N"
    reasons = (item.reason for item in items if item.verdict.status == "inconclusive" and item.reason)
    yield from (f"open: {reason}" for reason in dict.fromkeys(reasons))


def _along(items: Sequence[JudgedNeighbour], after: tuple[str, ...]) -> Table:
    """The neighbors along one axis, one configuration a row."""
    header = "id | from → to ^1 | #change | 95 % interval ^3 | effect ^2 | verdict | #launches ^4 | label… ^5"
    rows = (
        (
            *(item.entry.id[:12], _axis_moved(item)),
            signed(result.ratio) if (result := item.verdict.headline) else UNKNOWN,
            ends(result.effect.low, result.effect.high) if result else UNKNOWN,
            effect_word(result) if result else item.verdict.effect,
            *(item.verdict.status, str(len(item.verdict.b)), item.entry.label or ""),
        )
        for item in items
    )
    return table_of("", header, rows, after)


def _axis_moved(item: JudgedNeighbour) -> str:
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


say_history = words("history")


def incidents_section(shown: Sequence[Incident]) -> tuple[Section, ...]:
    """The incidents as a table; none where none is open, since not every store is watched."""
    return (Section("regressions", "Open incidents", tables=(incidents(shown),)),) if shown else ()


def incidents(items: Sequence[Incident], empty: str | None = None) -> Table:
    """Incidents as a table."""
    header = "incident | lane ^5 | metric ^4 | #change | from launch… | suspects… ^1 | owner ^3 | state… ^2"
    return table_of("", header, map(_incident, items), empty=say_history("no_incidents") if empty is None else empty)


def _incident(item: Incident) -> tuple[str, ...]:
    body: dict[str, Any] = item.body
    return (
        item.id,
        body["lane"],
        item.metric,
        signed(body["ratio"]),
        body["name"],
        ", ".join(body["moved"]) or say_history("nothing"),
        item.owner or "~",
        f"closed {item.closed:%Y-%m-%d}: {item.closed_why}" if item.closed else f"open since {item.opened:%Y-%m-%d}",
    )
