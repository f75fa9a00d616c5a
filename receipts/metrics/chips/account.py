"""The memory of one launch, by physical chip and phase.

A figure for several chips together (``memory.aggregate``) is no chip's, and enters no ranking.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from receipts.metrics.chips.chip import PHASES, Chip, Metric, tightness
from receipts.metrics.chips.phase import Phase
from receipts.receipt.memory import Memory, MemoryPhase

if TYPE_CHECKING:
    from receipts.receipt import Parsed

# Of a row, in the order of `Chip`.
_FIGURES: Final = itemgetter(
    *("chip", "phase", "bytes_used", "bytes_limit", "peak_bytes", "peak_reserved_bytes", "step")
)


# A count is whatever somebody wrote: beyond this many, chips without a row are counted and not named.
MOST_NAMED: Final = 16_384


class Account:
    """The memory of one launch by phase, in the order of a run; phases without a row are left out.

    ``stated`` is how many chips took part, None where it is not stated. ``rows`` are the document's, each by itself.
    """

    def __init__(self, memory: Memory | None, stated: int | None) -> None:
        rows = (memory.chips if memory is not None else None) or ()
        self.rows: tuple[Chip, ...] = tuple(
            [Chip._make((*_FIGURES(vars(row)), (index,))) for index, row in enumerate(rows)]
        )
        self.stated = stated
        self.aggregate = memory.aggregate if memory is not None else None
        known = _known({row.chip for row in self.rows}, stated)
        chips = _chips(self.rows)
        self.phases: tuple[Phase, ...] = tuple(
            Phase(name, chips[name], known, stated) for name in PHASES if name in chips
        )

    def __repr__(self) -> str:
        return f"Account({self.stated} chips, {', '.join(phase.name for phase in self.phases) or 'no rows'})"

    def __bool__(self) -> bool:
        return bool(self.phases)

    def get(self, name: str) -> Phase | None:
        """The phase of that name, where it has rows."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def tightest(self) -> Chip | None:
        """The chip and phase with the least of a limit left."""
        chips = [phase.tightest for phase in self.phases]
        return min([item for item in chips if item is not None], key=tightness, default=None)

    def worst(self, metric: Metric) -> Phase | None:
        """The phase in which the figure is highest (of headroom: least), the later one where two are equal."""
        ranked = [(phase, ranking) for phase in self.phases if (ranking := phase.ranking(metric)) is not None]
        if metric == "headroom":
            return min(reversed(ranked), key=lambda item: item[1].lowest, default=(None,))[0]
        return max(reversed(ranked), key=lambda item: item[1].highest, default=(None,))[0]

    def by_chip(self, metric: Metric, phases: Iterable[str]) -> dict[int, int]:
        """Each chip's highest figure over some phases (of headroom: its least), in bytes."""
        wanted, values = set(phases), dict[int, int]()
        choose = min if metric == "headroom" else max
        for phase in self.phases:
            for item in phase.chips if phase.name in wanted else ():
                value = item.read(metric)
                if value is not None:
                    values[item.chip] = choose(value, values.get(item.chip, value))
        return dict(sorted(values.items()))

    @cached_property
    def peaks(self) -> dict[int, int]:
        """Each chip's highest live peak over all phases, in bytes."""
        return self.by_chip("peak", PHASES)


def account(parsed: Parsed) -> Account:
    """The account of a receipt; that of a launch is `receipts.metrics.Launch.account`."""
    stated = parsed.stated.get("hardware.chips")
    return Account(parsed.receipt.memory, int(stated) if stated is not None else None)


def highest(memory: Memory | None, leaf: str) -> int | None:
    """The fullest chip's figure over all phases, in bytes; None where no chip states it."""
    rows = (memory.chips if memory is not None else None) or ()
    return max([value for row in rows if (value := getattr(row, leaf)) is not None], default=None)


def _known(seen: set[int], stated: int | None) -> frozenset[int]:
    """Ordinals that took part for certain. Ordinals may have gaps: chips 8, 9, 12 and 13 are four of four."""
    if stated is None or len(seen) == stated or (len(seen) < stated and any(chip >= stated for chip in seen)):
        return frozenset(seen)
    return frozenset(range(min(stated, MOST_NAMED)))


def _chips(rows: Iterable[Chip]) -> dict[MemoryPhase, list[Chip]]:
    """Chips by phase, each in the order of ordinals."""
    phases: dict[MemoryPhase, dict[int, Chip]] = {}
    for row in rows:
        chip, by_chip = row.chip, phases.setdefault(row.phase, {})
        by_chip[chip] = _tighter(by_chip[chip], row) if chip in by_chip else row
    return {phase: [by_chip[chip] for chip in sorted(by_chip)] for phase, by_chip in phases.items()}


def _tighter(one: Chip, other: Chip) -> Chip:
    first = one if other.peak is None or (one.peak is not None and one.peak >= other.peak) else other
    limits = [limit for limit in (one.limit, other.limit) if limit is not None]
    return first._replace(
        used=_larger(one.used, other.used),
        peak=_larger(one.peak, other.peak),
        pool=_larger(one.pool, other.pool),
        limit=min(limits, default=None),
        rows=(*one.rows, *other.rows),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
