"""Ceilings of a lane, validated apart from repeated ones and from peaks, and the nearest shapes that did not fit.

The values are those of `receipts ceiling`, of launches that started before the end of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.axes.shape import described
from receipts.base.units import counted
from receipts.publish.page import Cell, Section, Table, table_of
from receipts.publish.report.page import joined, link, more, without_repeated
from receipts.publish.report.ref import Ref
from receipts.publish.text import model, plain

if TYPE_CHECKING:
    from receipts.axes.shape import Description
    from receipts.questions.ceiling import Cause, Ceiling, Frontier
    from receipts.store import Store

MOST = 12
NEAREST = 2  # failures that are named beyond one ceiling
_GRADES = {
    "validated": "validated by three on two days or hosts",
    "repeated": "repeated by two launches",
    "peak": "peaks of one",
    "failed": "failed where nothing fitted",
}


@dataclass(frozen=True, slots=True)
class Beyond:
    """A shape that ran out of memory: where, how often, and how (class and phase)."""

    sequence_length: int
    micro_batch: int
    depth: int
    launches: int
    kinds: tuple[str, ...]
    receipt: Ref


@dataclass(frozen=True, slots=True)
class CeilingShape:
    """A shape that no larger one of its grade or better holds; `failed_here` launches ran out of memory at it.

    `shape` is the geometry and the layout by their digests, `model` and `layout` are in words.
    `grade` is `validated` (three launches on two days or hosts), `repeated` (two) or `peak` (one); where nothing was
    sustained it is `failed`, and `failures` says what did not fit.
    """

    grade: str
    shape: str
    family: str | None
    name: str | None
    model: str
    layout: str
    accelerator: str | None
    chips: int
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    launches: int
    days: int
    hosts: int
    failed_here: int
    receipt: Ref | None
    failures: tuple[Beyond, ...]
    failures_more: int


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a lane sustained. `more` were left out, `shapeless` launches state no whole shape."""

    reached: tuple[CeilingShape, ...]
    more: int
    shapeless: int


def ceilings(store: Store, lane: str, until: datetime) -> Ceilings:
    """The ceilings of a lane among launches that started before a moment."""
    from receipts.questions.ceiling import frontiers

    reached = frontiers(store.query.reached(lane, None, until))
    rows = [one for group in reached.frontiers for one in _of(group)]
    ids = dict.fromkeys(name for one in rows[:MOST] for name in _ids(one))
    names = {name: store.entry(name).name for name in ids}
    shown = tuple(_reached(*one, described(store.parsed(one[0].receipt).stated), names) for one in rows[:MOST])
    return Ceilings(shown, max(0, len(rows) - MOST), reached.shapeless)


def _of(group: Frontier) -> Iterator[tuple[Frontier, Ceiling | None, tuple[Cause, ...]]]:
    for item in group.ceilings:
        yield group, item, item.failures
    if group.elsewhere:
        yield group, None, group.elsewhere


def _ids(row: tuple[Frontier, Ceiling | None, tuple[Cause, ...]]) -> Iterator[str]:
    _, item, failures = row
    if item is not None:
        yield item.receipt
    yield from (cause.receipt for cause in failures[:NEAREST])


def _reached(
    group: Frontier, item: Ceiling | None, failures: tuple[Cause, ...], known: Description, names: dict[str, str]
) -> CeilingShape:
    length, micro, depth = item.size if item is not None else (None, None, None)
    return CeilingShape(
        grade=item.grade if item is not None else "failed",
        shape=str(group.key),
        **known._asdict(),
        accelerator=group.accelerator,
        chips=group.chips,
        sequence_length=length,
        micro_batch=micro,
        depth=depth,
        launches=item.launches if item is not None else 0,
        days=item.days if item is not None else 0,
        hosts=item.hosts if item is not None else 0,
        failed_here=item.failed_here if item is not None else 0,
        receipt=Ref(item.receipt, names[item.receipt]) if item is not None else None,
        failures=tuple(
            Beyond(*cause.size, cause.launches, cause.kinds, Ref(cause.receipt, names[cause.receipt]))
            for cause in failures[:NEAREST]
        ),
        failures_more=max(0, len(failures) - NEAREST),
    )


def section(anchor: str, lane: str, data: Ceilings) -> Section:
    """The ceilings in words."""
    intro = "The largest shapes that measured training sustained, whatever else the launches had. A peak is no ceiling."
    if not data.reached:
        intro = "No measured training launch of this lane that states its shape sustained one, or ran out of memory."
    elif not any(item.grade == "validated" for item in data.reached):
        intro = f"{intro} None is validated yet."
    several = counted(data.shapeless, "launch", "launches")
    shape = "chips, sequence length, micro batch, depth"
    left = (f"Without a whole shape ({shape}): {several}.",) if data.shapeless else ()
    if not data.reached:
        return Section(anchor, "Ceilings", sentences=(intro, *left))
    reached = sorted(data.reached, key=lambda item: list(_GRADES).index(item.grade))
    grades = {item.grade: _GRADES[item.grade] for item in reached}
    caption = f"{plain(lane)}: {', '.join(grades.values())}"
    table, points = without_repeated(_table(caption, reached, data.more))
    return Section(anchor, "Ceilings", sentences=(intro, *left), points=points, tables=(table,))


def _table(caption: str, reached: Iterable[CeilingShape], left_out: int = 0) -> Table:
    header = (
        "grade | family | model | layout | #chips | sequence [tokens] | #micro batch | #depth | launches"
        " | last | out of memory beyond it"
    )
    return table_of(caption, header, map(_cells, reached), more(left_out, "shapes"))


def _cells(item: CeilingShape) -> tuple[Cell, ...]:
    machine = f" × {item.accelerator}" if item.accelerator else ""
    hosts = f" · {counted(item.hosts, 'host')}" if item.hosts else ""
    launches = counted(item.launches, "launch", "launches")
    times = f"{launches} · {counted(item.days, 'day')}{hosts}" if item.launches else "none"
    return (
        (item.grade,),
        (item.family or "not stated",),
        (model(item.name, item.model),),
        (plain(item.layout) or "~",),
        (f"{item.chips:,}{machine}",),
        *((f"{size:,}" if size is not None else "~",) for size in (item.sequence_length, item.micro_batch, item.depth)),
        (times,),
        link(item.receipt) if item.receipt is not None else ("~",),
        _failures(item),
    )


def _failures(item: CeilingShape) -> Cell:
    cells: list[Cell] = []
    if item.failed_here:
        cells.append((f"{counted(item.failed_here, 'launch', 'launches')} at this very shape",))
    for failed in item.failures:
        size = f"{failed.sequence_length:,} tokens × micro batch {failed.micro_batch:,}, depth {failed.depth:,}"
        kinds = plain(", ".join(kind.replace("_", " ") for kind in failed.kinds))
        cells.append((f"{size}: {kinds}, {counted(failed.launches, 'launch', 'launches')} ", *link(failed.receipt)))
    if item.failures_more:
        cells.append((f"and {item.failures_more} more",))
    return joined(cells, "; ") or ("none known: the gap is open",)
