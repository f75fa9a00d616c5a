"""Memory by chip of the launches that a report lists: what was in use, the live peak and the pool, against limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts.publish.pictures import strips
from receipts.publish.report.page import Cell, Column, Figure, Row, Table, link
from receipts.publish.report.ref import Ref
from receipts.publish.report.text import gib, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import Headroom
    from receipts.publish.report.shelf import Shelf

MOST: Final = 8  # launches
TOGETHER: Final = 4  # in one picture
LISTED: Final = 8  # chips of a launch in the table, the tightest of them


@dataclass(frozen=True, slots=True)
class OneChip:
    """A chip in one phase, in bytes; None is not stated."""

    chip: int
    used_bytes: int | None
    peak_bytes: int | None
    pool_bytes: int | None
    limit_bytes: int | None

    @property
    def row(self) -> strips.Row:
        """As it is drawn."""
        return strips.Row(self.chip, self.used_bytes, self.peak_bytes, self.pool_bytes, self.limit_bytes)


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a launch in the phase in which the tightest of them is; `wanted` is what the lane wants kept."""

    receipt: Ref
    lane: str
    phase: str
    wanted: float
    chips: tuple[OneChip, ...]

    @property
    def strip(self) -> strips.Strip:
        """As it is drawn."""
        title = f"{plain(self.receipt.name)} · {plain(self.phase.replace('_', ' '))}"
        return strips.Strip(title, tuple(item.row for item in self.chips), self.wanted)


def chips(shelf: Shelf, listed: Sequence[Headroom]) -> tuple[Chips, ...]:
    """The chips of the first of these launches."""

    shown = listed[:MOST]
    rows = {row.id: row for row in shelf.stored.entries([item.receipt.id for item in shown])} if shown else {}
    found = []
    for item in shown:
        phase = shelf.launch(rows[item.receipt.id]).account.get(item.phase)
        if phase is not None:
            figures = tuple(OneChip(one.chip, one.used, one.peak, one.pool, one.limit) for one in phase.chips)
            found.append(Chips(item.receipt, item.lane, item.phase, item.wanted, figures))
    return tuple(found)


def figures(anchor: str, found: Sequence[Chips]) -> tuple[Figure, ...]:
    """Pictures of so many launches each, the tightest first; none where no launch read its memory chip by chip."""
    parts = [found[at : at + TOGETHER] for at in range(0, len(found), TOGETHER)]
    return tuple(_figure(f"{anchor}-{index}", part) for index, part in enumerate(parts, 1))


def _figure(anchor: str, found: Sequence[Chips]) -> Figure:
    title = "Memory by chip against its limit"

    def draw(name: str) -> str | None:
        return strips.picture([item.strip for item in found], name=name, title=title)

    return Figure(anchor, _caption(title, found), draw, _table(title, found), "None of these chips states its limit.")


def _caption(title: str, found: Sequence[Chips]) -> Cell:
    says = f"{title}: a row a chip, the tightest first, in the phase in which its launch is tightest. "
    named = [part for item in found for part in (*link(item.receipt), "; ")]
    return (says, *named[:-1], ".")


def _table(title: str, found: Iterable[Chips]) -> Table:
    columns = (
        Column("launch"),
        Column("phase"),
        Column("chip", numeric=True),
        *(Column(name, "GiB", True) for name in ("in use", "live peak", "pool peak", "limit")),
    )
    rows, after = [], []
    for item in found:
        ordered = item.strip.ordered
        for one in ordered[:LISTED]:
            amounts = tuple((gib(value),) for value in (one.used, one.peak, one.pool, one.limit))
            rows.append(Row((link(item.receipt), (item.phase.replace("_", " "),), (str(one.chip),), *amounts)))
        if len(ordered) > LISTED:
            after.append(f"{plain(item.receipt.name)}: and {len(ordered) - LISTED:,} chips that keep more.")
    return Table(title, columns, tuple(rows), tuple(after))
