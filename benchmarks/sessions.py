"""Sessions, days, blocked order and outliers: how often a comparison is wrong about launches of more than one hour.

Launches vary by 0.3 %, days by 1 or 2 % (launches of one day share its level). Each cell is judged by the product's own
`compare`, without an effect and with one of 2 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.steadiness import Bar
from receipts.stats.effect import compare
from receipts.stats.log_ratio import Sigma
from receipts.stats.sessions import sessions

if TYPE_CHECKING:
    from benchmarks.launch_models import Floats
    from receipts.stats.equivalence import Effect

LAUNCH: Final = 0.003  # spread of a launch
EFFECT: Final = math.log(1.02)
HOUR, DAY = 3600.0, 86400.0
HISTORY: Final = 20  # stored launches of A, twenty days ago, over one to four days


@dataclass(frozen=True)
class Layout:
    """Launches of a cell: side (0 or 1) and start in seconds of each, and what the comparison is told beside them."""

    name: str
    side: Floats
    start: Floats
    day: float = 0.01  # spread between days
    drift: float = 0.0  # a launch, in the order in which they ran
    outliers: float = 0.0  # share of launches that are 3 to 5 % slow
    freedom: float | None = None  # of the spread of days that the store knows
    pooled: bool = False


class Cell(NamedTuple):
    """Shares of the comparisons of one layout: wrong without an effect; with one, covered and named."""

    layout: Layout
    wrong: float
    covered: float
    named: float


def _turns(launches: int, start: float = 0.0) -> tuple[Floats, Floats]:
    return np.resize((0.0, 1.0, 1.0, 0.0), 2 * launches), start + np.arange(2.0 * launches) * HOUR / 3


def _joined(*parts: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return np.concatenate([side for side, _ in parts]), np.concatenate([start for _, start in parts])


def _history(days: int) -> tuple[Floats, Floats]:
    each = HISTORY // days
    return np.zeros(HISTORY), np.concatenate([-(20.0 + day) * DAY + np.arange(each) * HOUR for day in range(days)])


def layouts() -> Iterator[Layout]:
    """Every cell."""
    yield Layout("5 in turns", *_turns(5))
    for days in (1, 2, 4):
        for spread in (0.01, 0.02):
            name = f"5 in turns, {HISTORY} of A stored on {days} other days {spread:.0%} apart"
            yield Layout(name, *_joined(_turns(5), _history(days)), day=spread)
    nights = [(np.array([night % 2, 1 - night % 2], float), night * DAY + np.array([0.0, HOUR])) for night in range(10)]
    yield Layout("ten nights of one a side", *_joined(*nights), day=0.02)
    yield Layout("three sessions of 3 in turns", *_joined(*(_turns(3, day * DAY) for day in range(3))), day=0.02)
    apart = _joined((np.zeros(5), np.arange(5) * HOUR), (np.ones(5), 4 * DAY + np.arange(5) * HOUR))
    yield Layout("5 and 5 on other days, days known by 12 degrees", *apart, day=0.002, freedom=12.0)
    several = [(np.full(4, float(day % 2)), day * DAY + np.arange(4) * HOUR) for day in range(12)]
    yield Layout("pooled over twelve days of one side each", *_joined(*several), day=0.004, pooled=True)
    blocked = np.repeat((0.0, 1.0), 5), np.arange(10) * HOUR / 3
    yield Layout("5, then 5", *blocked)
    yield Layout("5, then 5, drifting 0.2 % a launch", *blocked, drift=0.002)
    for launches in (5, 8):
        yield Layout(f"{launches} in turns, one in ten 3 to 5 % slow", *_turns(launches), outliers=0.1)


def judged(layout: Layout, count: int, seed: int) -> Cell:
    """One cell: comparisons without an effect, and as many with one of 2 %."""
    rng = np.random.default_rng(seed)
    none, some = (list(_compared(layout, effect, count, rng)) for effect in (0.0, EFFECT))
    return Cell(
        layout,
        wrong=_share(none, lambda effect: effect.kind in ("faster", "slower")),
        covered=_share(some, _covers),
        named=_share(some, lambda effect: effect.kind == "slower"),
    )


def _share(effects: list[Effect], told: Callable[[Effect], bool]) -> float:
    return float(np.mean([told(effect) for effect in effects]))


def _covers(effect: Effect) -> bool:
    low, high = effect.low, effect.high
    return low is not None and high is not None and math.log(low) <= EFFECT <= math.log(high)


def _compared(layout: Layout, effect: float, count: int, rng: np.random.Generator) -> Iterator[Effect]:
    is_b = layout.side == 1.0
    numbers = np.array(sessions(layout.start.tolist(), [None] * len(layout.start)))
    for _ in range(count):
        logs = rng.normal(0.0, LAUNCH, len(numbers)) + effect * layout.side
        logs += rng.normal(0.0, layout.day, numbers.max() + 1)[numbers]
        logs += layout.drift * np.argsort(np.argsort(layout.start))
        slow = rng.random(len(logs)) < layout.outliers
        logs[slow] += rng.uniform(0.03, 0.05, slow.sum())
        yield compare(
            np.exp(logs[~is_b]).tolist(),
            np.exp(logs[is_b]).tolist(),
            times_a=layout.start[~is_b].tolist(),
            times_b=layout.start[is_b].tolist(),
            sessions=(numbers[~is_b].tolist(), numbers[is_b].tolist()),
            day=_known(layout, rng),
            pooled_days=layout.pooled,
        )


def _known(layout: Layout, rng: np.random.Generator) -> Sigma | None:
    """The spread of days as a store has it by then."""
    if layout.freedom is None:
        return None
    estimated = layout.day * math.sqrt(rng.chisquare(layout.freedom) / layout.freedom)
    return Sigma(estimated, layout.freedom, "measured")


def cells(count: int, seed: int) -> list[Cell]:
    """Every cell, seeded by its place."""
    return [judged(layout, count, seed + place) for place, layout in enumerate(layouts())]


def bars(measured: list[Cell]) -> list[Bar]:
    """The bars over the cells."""
    plain = [cell for cell in measured if not cell.layout.outliers]
    alone, *others = plain
    stored = [cell for cell in others if "stored" in cell.layout.name]
    few, many = (cell for cell in measured if cell.layout.outliers)
    return [
        _bar("sessions: verdicts that are wrong without an effect", measured, lambda cell: cell.wrong, 0.01),
        _bar("sessions: intervals that hold 2 %: off 95 % by", plain, lambda cell: abs(cell.covered - 0.95), 0.02),
        _bar("power that a stored history takes", stored, lambda cell: alone.named - cell.named, 0.03),
        Bar("power that 8 launches with outliers lack beside 5", few.named - many.named, many.layout.name, 0.0),
    ]


def _bar(name: str, measured: list[Cell], wrong: Callable[[Cell], float], most: float) -> Bar:
    worst = max(measured, key=wrong)
    return Bar(name, wrong(worst), worst.layout.name, most)


def table(measured: list[Cell]) -> Iterator[str]:
    """The cells as a table in Markdown."""
    yield "| launches | wrong | covered | named |"
    yield "| --- | ---: | ---: | ---: |"
    for cell in measured:
        yield f"| {cell.layout.name} | {cell.wrong:.3f} | {cell.covered:.3f} | {cell.named:.3f} |"
