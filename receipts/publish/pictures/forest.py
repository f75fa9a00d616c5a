"""Effects with their intervals, a row each, against the band of ±δ within which a difference does not matter.

A comparison has one of its metrics, the report one of each lane's comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.base.units import signed
from receipts.base.untrusted_text import plain
from receipts.publish.page import Figure
from receipts.publish.pictures import svg
from receipts.publish.pictures.svg import (
    BELOW,
    FAINT,
    INK,
    LINE,
    MARKS,
    SMALL,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    cut,
    nice,
    tick_label,
)

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison
    from receipts.questions.week.data import JudgedPair


MIN_EFFECTS: Final = 2  # a lone effect is a line of the table
MAX_EFFECTS: Final = 16
_LEFT: Final = 12.0
_RIGHT: Final = 24.0
_TOP: Final = 8.0
_ROW: Final = 32.0
_NAME: Final = 9.0  # from the top of a row to the middle of its name
_LINE: Final = 23.0
_AMOUNT: Final = 150.0


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A change of B against A as a ratio, with its 95 % interval and the δ of its lane.

    ``settled`` says that the verdict is proven; otherwise the mark is hollow.
    """

    name: str
    ratio: float
    low: float
    high: float
    delta: float
    settled: bool


def picture(effects: Sequence[ForestRow], *, name: str, title: str, fewest: int = MIN_EFFECTS) -> str | None:
    """The SVG element of the first `MAX_EFFECTS` effects, or None where there are fewer than ``fewest``."""
    shown = effects[:MAX_EFFECTS]
    if len(shown) < fewest:
        return None
    height = _TOP + _ROW * len(shown) + BELOW
    alt = "; ".join(f"{item.name}: {_amount(item)}" for item in shown)
    return svg.inline_svg(partial(_paint, shown), name=name, width=WIDTH, height=height, title=title, alt=alt)


def _percent(ratio: float) -> float:
    return (ratio - 1.0) * 100.0


def _amount(item: ForestRow) -> str:
    low, middle, high = (signed(_percent(value), "+.2f") for value in (item.low, item.ratio, item.high))
    return f"{middle} % ({low} to {high})"


def _paint(effects: Sequence[ForestRow], canvas: Canvas) -> None:
    ends = [_percent(value) for item in effects for value in (item.low, item.high)]
    ends += [_percent(1.0 + sign * item.delta) for item in effects for sign in (-1, 1)]
    ticks = nice(min(0.0, *ends), max(0.0, *ends), 6)
    x = Scale(ticks[0], ticks[-1])
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, _ROW * len(effects), x, Scale(0.0, 1.0))
    tops = [_TOP + index * _ROW for index in range(len(effects))]
    # Beside the intervals alone: a line would run through the names between them.
    lines = [(plot.at(tick, 0.0)[0], top + _LINE - 6.0, top + _LINE + 6.0) for tick in ticks for top in tops]
    canvas.uprights(lines, colour=LINE, width=0.8)
    for top, item in zip(tops, effects, strict=True):
        y = top + _LINE
        mark = MARKS[0] if item.settled else MARKS[5]
        low, middle, high = (plot.at(_percent(value), 0.0)[0] for value in (item.low, item.ratio, item.high))
        band = [plot.at(_percent(1.0 + sign * item.delta), 0.0)[0] for sign in (-1, 1)]
        canvas.boxes([(band[0], y - 6.0, band[1] - band[0], 12.0)], fill=LINE, alpha=0.45)
        canvas.label(4.0, top + _NAME, cut(item.name, WIDTH - _AMOUNT - 8.0, SMALL), size=SMALL, bold=True)
        canvas.label(WIDTH - 4.0, top + _NAME, _amount(item), ha="right", size=SMALL, colour=INK)
        feet = [((x, y - 4.0), (x, y + 4.0)) for x in (low, high)]
        canvas.segments([((low, y), (high, y)), *feet], colour=mark.light, width=1.6)
        canvas.marks([(middle, y)], mark, hollow=not item.settled, size=7.0)
    zero = plot.at(0.0, 0.0)[0]
    canvas.uprights([(zero, top + _LINE - 7.0, top + _LINE + 7.0) for top in tops], colour=FAINT, width=1.4)
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(
        canvas,
        plot,
        [(tick, tick_label(tick)) for tick in ticks],
        "change of B against A, %; the band is no change that matters",
    )


NAME = 60


def figure(anchor: str, lane: str, compared: Iterable[JudgedPair]) -> Figure | None:
    """The picture; None where fewer than two comparisons have an interval. Its numbers stand in the tables."""
    shown = [effect for item in compared if (effect := _effect(item)) is not None]
    if len(shown) < MIN_EFFECTS:
        return None
    title = f"{plain(lane)}: effects with their 95 % intervals"

    hollow = " Hollow: not settled." if any(not item.settled for item in shown[:MAX_EFFECTS]) else ""
    left = len(shown) - MAX_EFFECTS
    more = f" {left} more are in the table." if left > 0 else ""
    caption = f"{title}, B against A. A change within the gray band is none that matters.{hollow}{more}"
    return Figure(anchor, (caption,), lambda name: picture(shown, name=name, title=title))


def of_comparison(verdict: Comparison) -> Figure | None:
    """The effects of one comparison; None where it has none, or is rejected: a picture would be believed."""
    settled = verdict.status == "accepted"
    effects = [
        ForestRow(metrics.get(item.metric).title, item.ratio, low, high, item.effect.delta, settled)
        for item in verdict.results
        if item.ratio and (low := item.effect.low) and (high := item.effect.high)
    ]
    if not effects or verdict.status == "rejected":
        return None
    hollow = "" if settled else ". Hollow: not settled"
    caption = f"B over A with 95 % intervals; what lies in the shaded band is no change that matters{hollow}"
    return Figure("effects", (caption,), lambda name: picture(effects, name=name, title="Effects", fewest=1))


def _effect(item: JudgedPair) -> ForestRow | None:
    if item.ratio is None or item.low is None or item.high is None or item.delta is None:
        return None
    change = ", ".join(f"{one.path.rpartition('.')[2]} {one.a} → {one.b}" for one in item.moved[:2])
    name = f"{change or item.b[0].name}, {metrics.get(item.metric).title}"
    settled = item.status == "accepted"
    return ForestRow(plain(name, NAME), item.ratio, item.low, item.high, item.delta, settled)
