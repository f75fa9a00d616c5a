"""A bridge as a waterfall: what each hop gave, one after another, from A to B, with the interval of the whole.

The axis is that of logs, so that hops of one size are bars of one length and add up; its ticks are changes in percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from receipts.base.units import signed, signed_percent
from receipts.publish.pictures import svg
from receipts.publish.pictures.svg import (
    BELOW,
    FAINT,
    LINE,
    MARKS,
    PAPER,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    cut,
    nice,
)

_LEFT: Final = 16.0
_RIGHT: Final = 76.0  # where the amounts stand
_TOP: Final = 6.0
_ROW: Final = 38.0  # a name, and the bar below it
_NAME: Final = 18.0
_BAR: Final = 14.0
_UP, _DOWN, _WHOLE = MARKS[0].light, MARKS[1].light, MARKS[5].light


@dataclass(frozen=True, slots=True)
class WaterfallHop:
    """One hop: its axis, and the log of what B of the hop has over its A; an interval of the log where there is one."""

    name: str
    log: float
    low: float | None = None
    high: float | None = None


def picture(steps: Sequence[WaterfallHop], total: WaterfallHop, *, metric: str, name: str, title: str) -> str | None:
    """The SVG element, or None without a hop. ``total`` is what B has over A; the hops add up to it."""
    if not steps:
        return None
    height = _TOP + _ROW * (len(steps) + 1) + BELOW
    alt = "; ".join(_alt_of(item) for item in (*steps, total))
    paint = partial(_paint, steps, total, metric)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=alt)


def _percent(log: float) -> str:
    return signed_percent(math.expm1(log), 2)


def _alt_of(item: WaterfallHop) -> str:
    interval = ""
    if item.low is not None and item.high is not None:
        interval = f" ({_percent(item.low)} to {_percent(item.high)})"
    return f"{item.name} {_percent(item.log)}{interval}"


def _paint(steps: Sequence[WaterfallHop], total: WaterfallHop, metric: str, canvas: Canvas) -> None:
    starts = [math.fsum(item.log for item in steps[:index]) for index in range(len(steps) + 1)]
    bars = [(start, start + item.log, item) for start, item in zip(starts, steps, strict=False)]
    bars.append((0.0, total.log, total))
    ends = [end for start, stop, item in bars for end in (start, stop, *_whiskers(start, item))]
    marks = _marks(min(ends), max(ends))
    x = Scale(min(*ends, *marks) - 1e-4, max(*ends, *marks) + 1e-4)
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    # Only beside bars: a line would run through the names between them.
    tops = [_TOP + index * _ROW + _NAME for index in range(len(bars))]
    places = [plot.at(mark, 0.0)[0] for mark in marks]
    canvas.uprights([(x, top - 2.0, top + _BAR + 2.0) for x in places for top in tops], colour=LINE, width=0.8)
    zero = plot.at(0.0, 0.0)[0]
    canvas.uprights([(zero, top - 2.0, top + _BAR + 2.0) for top in tops], colour=FAINT, width=1.2)
    for top, (start, stop, item) in zip(tops, bars, strict=True):
        _bar(canvas, plot, item, start, stop, top, item is total)
    ends_at = [
        (plot.at(stop, 0.0)[0], top + _BAR, top + _ROW) for top, (_, stop, _) in zip(tops, bars[:-1], strict=False)
    ]
    canvas.uprights(ends_at, colour=FAINT, dash=(2, 2))
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, [(mark, _tick(mark)) for mark in marks], f"change of {metric} against A, % (log scale)")


def _whiskers(start: float, item: WaterfallHop) -> tuple[float, ...]:
    return () if item.low is None or item.high is None else (start + item.low, start + item.high)


def _marks(low: float, high: float) -> list[float]:
    """Round percentages over a range of logs, as logs."""
    marks = nice(math.expm1(low) * 100, math.expm1(high) * 100, 6)
    return [math.log1p(value / 100) for value in marks if value > -100.0]


def _tick(log: float) -> str:
    value = round(math.expm1(log) * 100, 6)
    return signed(value) if value else "0"


def _bar(canvas: Canvas, plot: Panel, item: WaterfallHop, start: float, stop: float, top: float, whole: bool) -> None:
    left, right = sorted((plot.at(start, 0.0)[0], plot.at(stop, 0.0)[0]))
    colour = _WHOLE if whole else _UP if item.log >= 0.0 else _DOWN
    canvas.label(4.0, top - 9.0, cut(item.name, WIDTH - 90.0), bold=whole)
    canvas.label(WIDTH - 4.0, top - 9.0, _percent(item.log), ha="right", bold=True)
    middle = top + _BAR / 2
    canvas.boxes([(left, top, max(1.0, right - left), _BAR)], fill=colour, alpha=0.55 if whole else 1.0)
    # Without color, the way a hop went is that of the arrow at its end.
    if not whole and right - left > 12.0:
        tip, back = (right - 4.0, -5.0) if item.log >= 0.0 else (left + 4.0, 5.0)
        arrow = [(tip + back, middle - 3.5), (tip, middle), (tip + back, middle + 3.5)]
        canvas.line(arrow, colour=PAPER, width=1.6)
    ends = [plot.at(end, 0.0)[0] for end in _whiskers(start, item)]
    if ends:
        feet = [((x, middle - 4.0), (x, middle + 4.0)) for x in ends]
        canvas.segments([((ends[0], middle), (ends[1], middle)), *feet], width=1.4)
