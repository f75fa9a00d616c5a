"""Receipts of a stretch of time: what was submitted lane by lane, what is invalid and why, and what was superseded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.judging.verdict import Level
from receipts.publish.page import Cell, Code, Section, Table, table_of
from receipts.publish.report.page import folded, link, links, listed, more, rule, without
from receipts.publish.report.ref import Ref
from receipts.publish.report.sections.incidents import RuleOffenses, offenses
from receipts.publish.text import NOTE, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.publish.report.reader import Item
    from receipts.store import Store
    from receipts.store.history.events import Chronicle

MOST = 20


@dataclass(frozen=True, slots=True)
class Fallen:
    """A receipt that was superseded or retracted in the stretch; `successor` is None where it was retracted."""

    id: str
    receipt: Ref | None
    successor_id: str | None
    successor: Ref | None
    reason: str


@dataclass(frozen=True, slots=True)
class Intake:
    """Offences by how many receipts they spoil, and receipts that fell, in the order in which they did."""

    offences: tuple[RuleOffenses, ...]
    fallen: tuple[Fallen, ...]
    fallen_more: int


def intake(store: Store, items: Iterable[Item], chronicle: Chronicle, lanes: Sequence[str] = ()) -> Intake:
    """What the rules say of the receipts of a stretch, and which fell in it."""
    invalid = (item for item in items if item.verdict.status == "invalid")
    errors = offenses(invalid, lambda finding, _: finding.level is Level.ERROR)
    return Intake(tuple(errors), *_fallen(store, chronicle, lanes))


def _fallen(store: Store, chronicle: Chronicle, lanes: Sequence[str]) -> tuple[tuple[Fallen, ...], int]:
    from receipts.publish.report.sections.claims import known

    ids = [name for item in chronicle.superseded for name in (item.id, item.successor) if name is not None]
    refs = known(store, ids)
    fallen = [
        Fallen(item.id, refs.get(item.id), item.successor, refs.get(item.successor or ""), item.reason)
        for item in chronicle.superseded
        if not lanes or (item.id in refs and store.entry(item.id).lane in lanes)
    ]
    unread = 0 if lanes else chronicle.superseded_count - len(chronicle.superseded)
    return tuple(fallen[:MOST]), max(0, len(fallen) - MOST) + unread


def section(data: Intake, lanes: Sequence[LaneWeek]) -> Section | str:
    """The receipts of the stretch in words."""
    inner, nothing = folded((_offences(data), _superseded(data)))
    if not lanes and not inner:
        return "receipts"
    tables = (_lanes(lanes),) if lanes else ()
    return Section("intake", "Receipts by lane", sentences=without(nothing), tables=tables, sections=tuple(inner))


def _lanes(lanes: Sequence[LaneWeek]) -> Table:
    names = ("submitted", "valid", "open", "invalid", "superseded")
    rows = ((plain(lane.name), *(f"{getattr(lane.counts, name):,}" for name in names)) for lane in lanes)
    return table_of("Receipts by lane, as the present rules judge them", f"lane | #{' | #'.join(names)}", rows)


def _offences(data: Intake) -> Section | str:
    rows = (
        (rule(item.code, item.name), f"{item.launches:,}", links(item.receipts, more=item.receipts_more))
        for item in data.offences
    )
    table = table_of("Rules that make receipts invalid", "why | #receipts | such as", rows)
    return listed("intake-invalid", "Invalid", "invalid receipts", table)


def _superseded(data: Intake) -> Section | str:
    caption, header = "Receipts that were superseded or retracted", "receipt | replaced by | reason"
    table = table_of(caption, header, map(_cells, data.fallen), more(data.fallen_more, "receipts"))
    return listed("intake-superseded", "Superseded", "retractions or supersessions", table)


def _cells(item: Fallen) -> tuple[Cell, ...]:
    if item.successor_id is None:
        by: Cell = ("nothing: it was retracted",)
    else:
        by = link(item.successor) if item.successor is not None else (Code(item.successor_id[:12]),)
    named: Cell = link(item.receipt) if item.receipt is not None else (Code(item.id[:12]), " purged")
    return named, by, (plain(item.reason, NOTE),)
