"""The table of a difference as a waterfall: A, what each class adds or takes, what is not in the traces, and B.

At most ten bars. What is within noise is grey; the way a bar went is that of its sign, too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.publish.pictures import svg
from receipts.publish.pictures.svg import (
    BELOW,
    FAINT,
    LINE,
    MARKS,
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
    from receipts.plugins.why.difference import Difference
    from receipts.plugins.why.explanation import Explanation

MAX_LINES: Final = 6
_LEFT, _RIGHT, _TOP, _ROW, _NAME, _BAR = 16.0, 92.0, 6.0, 34.0, 16.0, 12.0
_UP, _DOWN, _WHOLE, _NOISE = MARKS[1].light, MARKS[0].light, MARKS[5].light, LINE
Bar = tuple[str, float, float, str]  # what it is, from where to where in ms, its colour


class Waterfall(NamedTuple):
    """The table of a difference as bars, in milliseconds a step."""

    a: str
    b: str
    bars: list[Bar]


def bars_of(item: Explanation, table: Difference) -> list[Bar]:
    """The bars, in milliseconds a step; from the measured step of A to that of B, or between the traced ones."""
    lines = sorted(table.lines, key=lambda line: (line.standing == "noise", -abs(line.change)))
    shown, rest = lines[:MAX_LINES], lines[MAX_LINES:]
    parts = [(line.name, float(line.change), line.standing == "noise") for line in shown if line.change]
    if rest:
        parts.append((f"{len(rest)} more", float(sum(line.change for line in rest)), True))
    begin, end = (float(value) for value in (not item.span and item.measured) or (table.a, table.b))
    if item.residual is not None:
        parts.append(("not in the traces", float(item.residual), True))
    bars: list[Bar] = [("A", 0.0, begin / 1e6, _WHOLE)]
    now = begin / 1e6
    for name, change, quiet in parts:
        bars.append((name, now, now + change / 1e6, _NOISE if quiet else _UP if change > 0 else _DOWN))
        now += change / 1e6
    return [*bars, ("B", 0.0, end / 1e6, _WHOLE)]


def waterfall(item: Explanation) -> Waterfall | None:
    """The bars of an explanation; None where there is no table to show."""
    return Waterfall(item.a, item.b, bars_of(item, item.shown)) if item.shown is not None else None


def picture(drawn: Waterfall, name: str = "why") -> str:
    """The SVG element."""
    bars = drawn.bars
    alt = "; ".join(f"{what} {amount(what, start, stop)}" for what, start, stop, _ in bars)
    height = _TOP + _ROW * len(bars) + BELOW
    title = f"Where the step's time went: {drawn.a} → {drawn.b}"
    return svg.inline_svg(partial(_paint, bars), name=name, width=WIDTH, height=height, title=title, alt=alt)


def amount(what: str, start: float, stop: float) -> str:
    """The time of a bar, or by how much it moves the step."""
    return f"{stop:,.3f} ms" if what in "AB" else f"{stop - start:+,.3f} ms".replace("-", "−")


def _paint(bars: list[Bar], canvas: Canvas) -> None:
    ends = [end for what, start, stop, _ in bars[1:-1] for end in (start, stop)] or [0.0]
    # Of long steps with a small difference the whole is cut, and the axis says where it begins.
    low = 0.0 if min(ends) < 4 * (max(ends) - min(ends)) else min(ends) - (max(ends) - min(ends))
    high = max(*ends, bars[0][2], bars[-1][2])
    marks = nice(low, high, 6)
    low = marks[0]
    x = Scale(low, high + (high - low) * 0.02 + 1e-9)
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    for at, (what, start, stop, colour) in enumerate(bars):
        top = _TOP + at * _ROW + _NAME
        left, right = sorted(plot.at(max(value, low), 0.0)[0] for value in (start, stop))
        canvas.label(4.0, top - 8.0, cut(what, WIDTH - 110.0), bold=what in "AB")
        canvas.label(WIDTH - 4.0, top - 8.0, amount(what, start, stop), ha="right", bold=True)
        canvas.boxes([(left, top, max(1.0, right - left), _BAR)], fill=colour)
        if at < len(bars) - 1:
            canvas.uprights([(plot.at(max(stop, low), 0.0)[0], top + _BAR, top + _ROW)], colour=FAINT, dash=(2, 2))
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, [(mark, tick_label(mark)) for mark in marks if mark <= x.high], "ms a step")
