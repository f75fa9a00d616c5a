"""Ceilings of a lane, validated apart from repeated ones and from peaks, and the nearest shapes that did not fit.

`receipts ceiling` shows them as a report does, which takes launches that started before its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from receipts.axes.shape import Description, described, pressure
from receipts.publish.page import State
from receipts.questions.ceiling import GRADES, Ceiling, CeilingFrontiers, Size, frontiers
from receipts.questions.week.ref import Ref, ref_of

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

    @property
    def validated(self) -> bool:
        """Whether any of them is validated."""
        return any(item.grade == "validated" for group in self.reached.frontiers for item in group.ceilings)


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


def gap(here: Size, there: Size) -> str:
    """By how much one size exceeds another."""
    return ", ".join(f"{name} ×{b / a:.3g}" for name, a, b in zip(_NAMES, here, there, strict=True) if a != b)
