"""What launches cost: the time that they ran, and the same by the chips that they held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from receipts.store import Entry

_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds from start to end of `timed` launches, and chip seconds; `untimed` launches do not say when they ended.

    `chip_seconds` leaves out launches that do not state their chips.
    """

    seconds: float
    chip_seconds: float
    timed: int
    untimed: int


def cost(rows: Iterable[Entry]) -> Cost:
    """What these launches cost together."""
    launches = list(rows)
    times = [
        ((row.finished - row.started).total_seconds(), row.chips or 0) for row in launches if row.finished is not None
    ]
    return Cost(
        seconds=sum(seconds for seconds, _ in times),
        chip_seconds=sum(seconds * chips for seconds, chips in times),
        timed=len(times),
        untimed=len(launches) - len(times),
    )


def spent(total: Cost) -> str:
    """A cost in words; `~` where no launch says how long it ran."""
    if not total.timed:
        return "~"
    spent_on, of = (total.chip_seconds, "chip ") if total.chip_seconds else (total.seconds, "")
    size, unit = next(pair for pair in _UNITS if spent_on >= pair[0] or pair[0] == 1)
    amount = f"{spent_on / size:,.1f} {of}{unit}"
    return f"{amount} ({total.untimed} not stated)" if total.untimed else amount
