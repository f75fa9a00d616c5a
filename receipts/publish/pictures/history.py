"""A line over time: each launch with its interval, and the levels between changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import SMALL, Canvas
from receipts.publish.pictures.colours import FAINT, INK
from receipts.publish.pictures.legend import LEFT, RIGHT
from receipts.publish.pictures.marks import MARKS
from receipts.publish.pictures.panel import BELOW, Panel, Scale, below, frame, nice

WIDTH: Final = 640.0
FEWEST: Final = 2
_TOP: Final = 34.0
_HEIGHT: Final = 190.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A launch: its value and interval in the unit of the picture, and the day under it."""

    value: float
    low: float | None
    high: float | None
    day: str


@dataclass(frozen=True, slots=True)
class LevelSegment:
    """The level from launch ``start`` to before ``stop``, from ``first`` to ``last`` where it drifts.

    ``name`` is over its first launch; ``matters`` tells an incident from the rest.
    """

    start: int
    stop: int
    first: float
    last: float
    name: str = ""
    matters: bool = False


def picture(dots: Sequence[Dot], levels: Sequence[LevelSegment], *, name: str, title: str, measure: str) -> str | None:
    """The SVG element, or None for fewer than two launches. ``measure`` names the values, with their unit."""
    if len(dots) < FEWEST:
        return None
    paint = partial(_paint, dots, levels, measure)
    alt = "; ".join(f"{item.name or 'level'}: launches {item.start + 1} to {item.stop}" for item in levels)
    return inline.svg(paint, name=name, width=WIDTH, height=_TOP + _HEIGHT + BELOW, title=title, alt=alt)


def _paint(dots: Sequence[Dot], levels: Sequence[LevelSegment], measure: str, canvas: Canvas) -> None:
    ends = [value for item in dots for value in (item.low, item.value, item.high) if value is not None]
    ticks = [value for value in nice(min(ends), max(ends), 5) if value >= 0.0]
    scale = Scale(min(ticks), max(ticks))
    panel = Panel(LEFT, _TOP, WIDTH - LEFT - RIGHT, _HEIGHT, Scale(-0.5, len(dots) - 0.5), scale)
    frame(canvas, panel, title=measure, ticks=ticks)
    for index, item in enumerate(dots):
        x, y = panel.at(index, item.value)
        if item.low is not None and item.high is not None:
            canvas.uprights([(x, panel.at(index, item.low)[1], panel.at(index, item.high)[1])], colour=FAINT)
        canvas.marks([(x, y)], MARKS[0], size=5.0)
    for level in levels:
        ends_at = [panel.at(level.start - 0.4, level.first), panel.at(level.stop - 0.6, level.last)]
        canvas.line(ends_at, colour=MARKS[1].light, width=2.0)
        if level.name:
            x = panel.at(level.start - 0.5, level.first)[0]
            canvas.uprights([(x, panel.top, panel.bottom)], colour=INK if level.matters else FAINT)
            canvas.label(x + 3.0, panel.top - 2.0, level.name, size=SMALL, bold=level.matters)
    below(canvas, panel, [(float(index), item.day) for index, item in enumerate(dots)], "day of the launch, UTC")
