"""The frontier of fit: the largest shapes that a lane sustained, the nearest that ran out of memory, and the gap.

By geometry (model and accelerator), layout and chips: what one of them holds says nothing of another.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.shape import Description, ShapeKey, described, pressure
from receipts.judging.facts import SHAPE, CeilingGrade, ceiling_grade
from receipts.questions.week.data import Ref, ref_of

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.query.outcomes import ShapeOutcomes


GRADES: Final[tuple[CeilingGrade, ...]] = ("validated", "repeated", "peak")
Size = tuple[int, int, int]  # sequence length, micro batch, depth: the order of `receipts.judging.facts.SHAPE`


class Cause(NamedTuple):
    """What launches of a shape ended with. ``kinds`` are the class and phase of each kind of failure."""

    size: Size
    kinds: tuple[str, ...]
    launches: int
    receipt: str
    at: datetime


class Ceiling(NamedTuple):
    """A shape that was sustained, and that no larger one of its grade or a better one holds.

    ``failed_here`` counts launches that ran out of memory at this very shape. ``failures`` are the nearest failed
    shapes beyond it, at least as large in every direction; ``gap`` is how far the nearest of them is.
    """

    grade: CeilingGrade
    size: Size
    launches: int
    days: int
    hosts: int
    receipt: str
    at: datetime
    failed_here: int
    failures: tuple[Cause, ...]

    @property
    def last_launches(self) -> tuple[str, ...]:
        """The newest launch of this shape and of each failed one beyond it."""
        return (self.receipt, *(cause.receipt for cause in self.failures))

    @property
    def gap(self) -> dict[str, float] | None:
        """By direction, how many times as large the nearest failed shape is; None where none is known."""
        if not self.failures:
            return None
        pairs = zip(SHAPE, self.size, self.failures[0].size, strict=True)
        return {name: theirs / own for (name, _), own, theirs in pairs if theirs != own}


class Frontier(NamedTuple):
    """The ceilings of one geometry and layout on so many chips, and failures that lie beyond none of them.

    Validated ceilings come first. ``receipt`` is the id of the newest launch, which has the names that are shown.
    """

    key: ShapeKey
    accelerator: str | None
    chips: int
    receipt: str
    ceilings: tuple[Ceiling, ...]
    elsewhere: tuple[Cause, ...]

    @property
    def last_launches(self) -> tuple[str, ...]:
        """The newest launch of every shape in it."""
        return (
            *(name for item in self.ceilings for name in item.last_launches),
            *(cause.receipt for cause in self.elsewhere),
        )


class CeilingFrontiers(NamedTuple):
    """A lane's frontiers, and how many launches were left out because they state no whole shape."""

    frontiers: tuple[Frontier, ...]
    shapeless: int


def frontiers(rows: Iterable[ShapeOutcomes]) -> CeilingFrontiers:
    """The frontier of every geometry, layout and number of chips among these rows of one lane, the newest last."""
    groups: dict[tuple[ShapeKey, int], list[ShapeOutcomes]] = defaultdict(list)
    shapeless = 0
    for row in rows:
        if row.chips is None or None in (row.sequence_length, row.micro_batch, row.depth):
            shapeless += row.launches
        else:
            groups[row.key, row.chips].append(row)
    for members in groups.values():
        members.sort(key=lambda row: row.at)
    ordered = sorted(groups.items(), key=lambda item: (item[1][-1].accelerator or "~", item[0][1], item[1][-1].at))
    return CeilingFrontiers(tuple(_frontier(*key, members) for key, members in ordered), shapeless)


def _frontier(key: ShapeKey, chips: int, rows: Sequence[ShapeOutcomes]) -> Frontier:
    causes = _causes([row for row in rows if row.outcome == "oom"])
    good = [row for row in rows if row.outcome == "ok"]
    graded = [(ceiling_grade(row.launches, row.days, row.hosts), _size(row), row) for row in good]
    kept = []
    for word, size, row in graded:
        # A larger shape that is sustained as well or better makes this one no ceiling.
        if any(
            theirs != size and GRADES.index(other) <= GRADES.index(word) and _larger(theirs, size)
            for other, theirs, _ in graded
        ):
            continue
        beyond = _minimal([item for item in causes if item.size != size and _larger(item.size, size)])
        beyond.sort(key=lambda item: math.prod(a / max(1, b) for a, b in zip(item.size, size, strict=True)))
        here = sum(item.launches for item in causes if item.size == size)
        counts = row.launches, row.days, row.hosts
        kept.append(Ceiling(word, size, *counts, row.last, row.at, here, tuple(beyond)))
    kept.sort(key=lambda item: (GRADES.index(item.grade), [-part for part in item.size]))
    known = {cause.size for item in kept for cause in item.failures} | {item.size for item in kept}
    held = [item.size for item in kept]
    lost = [item for item in causes if item.size not in known and not any(_larger(item.size, size) for size in held)]
    return Frontier(key, rows[-1].accelerator, chips, rows[-1].last, tuple(kept), tuple(_minimal(lost)))


def _causes(failed: Sequence[ShapeOutcomes]) -> list[Cause]:
    """Failures by shape; several kinds at one shape are listed together, the newest first."""
    shapes: dict[Size, list[ShapeOutcomes]] = defaultdict(list)
    for row in sorted(failed, key=lambda row: row.at, reverse=True):
        shapes[_size(row)].append(row)
    causes = []
    for size, same in sorted(shapes.items()):
        phases = ((row.class_ or "class not stated", row.phase) for row in same)
        kinds = dict.fromkeys(f"{kind} in {phase}" if phase else kind for kind, phase in phases)
        causes.append(Cause(size, tuple(kinds), sum(row.launches for row in same), same[0].last, same[0].at))
    return causes


def _minimal(causes: Sequence[Cause]) -> list[Cause]:
    """Failures that no smaller failure implies."""
    return [
        item
        for item in causes
        if not any(other.size != item.size and _larger(item.size, other.size) for other in causes)
    ]


def _size(row: ShapeOutcomes) -> Size:
    return int(row.sequence_length or 0), int(row.micro_batch or 0), int(row.depth or 0)


def _larger(a: Size, b: Size) -> bool:
    """Whether a is at least as large in every direction."""
    return all(theirs >= own for theirs, own in zip(a, b, strict=True))


def as_data(
    lane: str, frontiers: CeilingFrontiers, described: Mapping[str, Description], pressures: Mapping[str, str]
) -> dict[str, Any]:
    """The frontiers as JSON; ``described`` are their receipts, ``pressures`` what the last of each shape had."""

    def shape(size: Size) -> dict[str, int]:
        return {name: value for (name, _), value in zip(SHAPE, size, strict=True)}

    def cause(item: Cause) -> dict[str, Any]:
        rest = {"causes": list(item.kinds), "launches": item.launches, "receipt": item.receipt, "at": item.at}
        return {**shape(item.size), **rest, "last_had": pressures[item.receipt]}

    def ceiling(item: Ceiling) -> dict[str, Any]:
        counts = {"launches": item.launches, "days": item.days, "hosts": item.hosts, "failed_here": item.failed_here}
        last = {"receipt": item.receipt, "at": item.at, "last_had": pressures[item.receipt]}
        failed = {"gap": item.gap, "failures": [cause(failure) for failure in item.failures]}
        return {"grade": item.grade, **shape(item.size), **counts, **last, **failed}

    return {
        "lane": lane,
        "shapeless": frontiers.shapeless,
        "frontiers": [
            {
                "shape": str(item.key),
                **described[item.receipt]._asdict(),
                "accelerator": item.accelerator,
                "chips": item.chips,
                "ceilings": [ceiling(one) for one in item.ceilings],
                "failed_elsewhere": [cause(one) for one in item.elsewhere],
            }
            for item in frontiers.frontiers
        ],
    }


MAX_GROUPS: Final = 12  # groups of shapes in a report
_SIZES: Final = ("tokens", "micro batch", "depth")


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

    @property
    def validated(self) -> bool:
        """Whether any of them is validated."""
        return any(item.grade == "validated" for group in self.reached.frontiers for item in group.ceilings)


def ceilings(
    store: Store, lane: str, *, since: datetime | None = None, until: datetime | None = None, most: int | None = None
) -> Ceilings:
    """The ceilings of a lane among launches that started in an interval, those groups first that have the best."""
    reached = frontiers(store.query.reached(lane, since, until))
    ordered = sorted(
        reached.frontiers,
        key=lambda group: GRADES.index(group.ceilings[0].grade) if group.ceilings else len(GRADES),
    )
    kept = tuple(ordered[:most])
    ids = dict.fromkeys(name for group in kept for name in group.last_launches)
    return Ceilings(
        reached=reached._replace(frontiers=kept),
        more=len(ordered) - len(kept),
        described={group.receipt: described(store.parsed(group.receipt).stated) for group in kept},
        refs={name: ref_of(store.entry(name)) for name in ids},
        pressures={name: pressure(store.parsed(name)) for name in ids},
    )


def gap(here: Size, there: Size) -> str:
    """By how much one size exceeds another."""
    return ", ".join(f"{name} ×{b / a:.3g}" for name, a, b in zip(_SIZES, here, there, strict=True) if a != b)
