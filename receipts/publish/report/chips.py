"""Memory by chip of the launches that a report lists, over the physical topology."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts.metrics.chips import Chip
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import topology
from receipts.publish.pictures.topology import Heat, layout
from receipts.publish.report.page import link
from receipts.publish.text import gib, plain
from receipts.questions.week.ref import Ref

if TYPE_CHECKING:
    from receipts.questions.week.memory import Headroom
    from receipts.questions.week.reader import ReportReader

MOST: Final = 8  # launches
TOGETHER: Final = 4  # in one picture
LISTED: Final = 4  # chips of a launch in the table, the tightest of them


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a launch in the phase in which the tightest of them is; `wanted` is what the lane wants kept.

    `count`, `hosts`, `physical` and `accelerator` say how they stand, as far as the receipt does.
    """

    receipt: Ref
    lane: str
    phase: str
    wanted: float
    chips: tuple[Chip, ...]
    count: int | None
    hosts: int | None
    physical: str | None
    accelerator: str | None

    @property
    def ordered(self) -> list[Chip]:
        """The chips with a value, the tightest first."""
        known = [item for item in self.chips if _highest(item)]
        return sorted(known, key=lambda item: (-self._share(item), item.chip))

    def _share(self, item: Chip) -> float:
        """What a chip used of its limit, or of what the fullest one used where it states none."""
        return _highest(item) / (item.limit or max(map(_highest, self.chips)))

    @property
    def heat(self) -> Heat:
        """As it is drawn."""
        known = self.ordered
        shares = {item.chip: self._share(item) for item in known}
        most, least = max(shares.values(), default=0.0), min(shares.values(), default=0.0)
        return Heat(
            layout=layout(
                [item.chip for item in self.chips],
                count=self.count,
                hosts=self.hosts,
                physical=self.physical,
                accelerator=self.accelerator,
            ),
            values={item.chip: float(_highest(item)) for item in known},
            title=f"{plain(self.receipt.name, 40)} · {plain(self.phase.replace('_', ' '))}, GiB",
            about="",
            limits={item.chip: float(item.limit) for item in known if item.limit},
            leaders=frozenset(chip for chip, share in shares.items() if share == most > least),
            thin=frozenset(item.chip for item in known if item.limit and shares[item.chip] > 1.0 - self.wanted),
        )


def _highest(item: Chip) -> int:
    """A chip's live peak in bytes, else the pool's, else what was in use; 0 where it states none."""
    return next((size for size in (item.peak, item.pool, item.used) if size is not None), 0)


def chips(reader: ReportReader, listed: Iterable[Headroom]) -> tuple[Chips, ...]:
    """The chips of the first of these launches."""
    shown = tuple(listed)[:MOST]
    rows = {row.id: row for row in reader.stored.entries([item.receipt.id for item in shown])} if shown else {}
    launches = []
    for item in shown:
        launch = reader.launch(rows[item.receipt.id])
        phase = launch.account.get(item.phase)
        if phase is None:
            continue
        hardware = launch.parsed.receipt.hardware
        launches.append(
            Chips(
                *(item.receipt, item.lane, item.phase, item.wanted, phase.chips),
                count=launch.account.stated,
                hosts=hardware.hosts if hardware else None,
                physical=hardware.physical if hardware else None,
                accelerator=hardware.accelerator if hardware else None,
            )
        )
    return tuple(launches)


def figures(anchor: str, launches: Sequence[Chips]) -> tuple[Figure, ...]:
    """Pictures of so many launches each, the tightest first, of those with two chips or more."""
    drawn = [item for item in launches if len(item.heat.values) >= topology.FEWEST]
    parts = [drawn[at : at + TOGETHER] for at in range(0, len(drawn), TOGETHER)]
    return tuple(_figure(f"{anchor}-{index}", part) for index, part in enumerate(parts, 1))


def _figure(anchor: str, launches: Sequence[Chips]) -> Figure:
    title, drawn = "Memory by chip", [item.heat for item in launches]
    caption, table = _caption(title, launches), _table(title, launches)
    return Figure(anchor, caption, lambda name: topology.picture(drawn, name=name, title=title), table)


def _caption(title: str, launches: Sequence[Chips]) -> Cell:
    thin = " Red with !: less is left than the lane wants." if any(item.heat.thin for item in launches) else ""
    outlined = " Outlined: the fullest." if any(item.heat.leaders for item in launches) else ""
    caption = (
        f"{title} in the phase in which its launch is tightest; the darker, the nearer to its limit.{thin}{outlined} "
    )
    named = [part for item in launches for part in (*link(item.receipt), "; ")]
    return (caption, *named[:-1], ".")


def _table(title: str, launches: Iterable[Chips]) -> Table:
    header = "launch | phase | #chip | in use [GiB] | live peak [GiB] | pool peak [GiB] | limit [GiB]"
    rows: list[tuple[str | Cell, ...]] = []
    after = []
    for item in launches:
        ordered = item.ordered
        for one in ordered[:LISTED]:
            amounts = map(gib, (one.used, one.peak, one.pool, one.limit))
            rows.append((link(item.receipt)[:1], item.phase.replace("_", " "), str(one.chip), *amounts))
        if len(ordered) > LISTED:
            after.append(f"{plain(item.receipt.name)}: and {len(ordered) - LISTED:,} chips that keep more.")
    return table_of(title, header, rows, tuple(after))
