"""Memory by chip of the launches that a report lists, over the physical topology."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from receipts.base.text import plain
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import topology
from receipts.publish.pictures.topology import Heat, layout
from receipts.publish.report.page import link
from receipts.publish.text import gib
from receipts.questions.week.series import Chips, highest

TOGETHER: Final = 4  # in one picture
LISTED: Final = 4  # chips of a launch in the table, the tightest of them


def heat_of(of: Chips) -> Heat:
    """Chips as they are drawn."""
    known = of.ordered
    shares = {item.chip: of.share(item) for item in known}
    most, least = max(shares.values(), default=0.0), min(shares.values(), default=0.0)
    return Heat(
        layout=layout(
            [item.chip for item in of.chips],
            count=of.count,
            hosts=of.hosts,
            physical=of.physical,
            accelerator=of.accelerator,
        ),
        values={item.chip: float(highest(item)) for item in known},
        title=f"{plain(of.receipt.name, 40)} · {plain(of.phase.replace('_', ' '))}, GiB",
        about="",
        limits={item.chip: float(item.limit) for item in known if item.limit},
        leaders=frozenset(chip for chip, share in shares.items() if share == most > least),
        thin=frozenset(item.chip for item in known if item.limit and shares[item.chip] > 1.0 - of.wanted),
    )


def figures(anchor: str, launches: Sequence[Chips]) -> tuple[Figure, ...]:
    """Pictures of so many launches each, the tightest first, of those with two chips or more."""
    drawn = [item for item in launches if len(heat_of(item).values) >= topology.FEWEST]
    parts = [drawn[at : at + TOGETHER] for at in range(0, len(drawn), TOGETHER)]
    return tuple(_figure(f"{anchor}-{index}", part) for index, part in enumerate(parts, 1))


def _figure(anchor: str, launches: Sequence[Chips]) -> Figure:
    title, drawn = "Memory by chip", [heat_of(item) for item in launches]
    caption, table = _caption(title, launches), _table(title, launches)
    return Figure(anchor, caption, lambda name: topology.picture(drawn, name=name, title=title), table)


def _caption(title: str, launches: Sequence[Chips]) -> Cell:
    thin = " Red with !: less is left than the lane wants." if any(heat_of(item).thin for item in launches) else ""
    outlined = " Outlined: the fullest." if any(heat_of(item).leaders for item in launches) else ""
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
