"""Step times of compared launches: a row for each launch, with the spread of its steady steps.

Launches stay apart: the spread between medians is what a comparison rests on, and pooled steps would hide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import DOTTED, SMALL, Canvas
from receipts.publish.pictures.colours import FAINT, INK, LINE
from receipts.publish.pictures.legend import WIDTH
from receipts.publish.pictures.marks import MARKS
from receipts.publish.pictures.panel import BELOW, Panel, Scale, below, nice, tick_label

Side = Literal["A", "B"]
SHARES: Final = tuple(index / 20 for index in range(21))  # the quantiles that a row is drawn from
_LEFT: Final = 46.0
_RIGHT: Final = 92.0
_TOP: Final = 30.0
_ROW: Final = 17.0
_BETWEEN: Final = 8.0  # the sides
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """One launch: quantiles of its steps in seconds at `SHARES`, of ``kept`` of ``steps`` steps.

    ``steady`` says that those kept are its steady segment; otherwise they are all that no flag leaves out. ``tokens``
    is what a step takes in, None where it is not known.
    """

    side: Side
    quantiles: tuple[float, ...]
    kept: int
    steps: int
    steady: bool
    tokens: int | None

    @property
    def median(self) -> float:
        """The middle one, in seconds."""
        return self.quantiles[len(SHARES) // 2]


def picture(rows: Sequence[LaunchSteps], *, name: str, title: str, measure: str = "step time") -> str | None:
    """The SVG element, or None where a side has no launch with steps. ``measure`` is what the quantiles are of."""
    if {item.side for item in rows} != {"A", "B"}:
        return None
    ordered = sorted(rows, key=lambda item: item.side)
    height = _TOP + _ROW * len(ordered) + _BETWEEN + BELOW
    return inline.svg(
        partial(_paint, ordered, measure), name=name, width=WIDTH, height=height, title=title, alt=_alt_of(ordered)
    )


def _unit(rows: Sequence[LaunchSteps]) -> tuple[float, str]:
    least = min(item.median for item in rows)
    return next((unit for unit in _UNITS if least >= unit[0]), _UNITS[-1])


def _alt_of(rows: Sequence[LaunchSteps]) -> str:
    size, unit = _unit(rows)
    parts = []
    for side in ("A", "B"):
        medians = ", ".join(f"{item.median / size:.4g}" for item in rows if item.side == side)
        parts.append(f"{side}: medians {medians} {unit}")
    return "; ".join(parts)


def _paint(rows: Sequence[LaunchSteps], measure: str, canvas: Canvas) -> None:
    size, unit = _unit(rows)
    # The outermost twentieths of a launch may lie many times farther out than all others.
    ends = [item.quantiles[index] / size for item in rows for index in (1, -2)]
    marks = nice(min(ends), max(ends), 6)
    x = Scale(min(marks), max(marks))
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    canvas.label(plot.right + 8.0, _TOP - 12.0, "steps kept", size=SMALL, colour=FAINT)
    grid = [(plot.at(value, 0.0)[0], plot.top, plot.bottom) for value in marks]
    canvas.uprights(grid, colour=LINE, width=0.8)
    seen = 0
    for index, item in enumerate(rows):
        first = index == 0 or rows[index - 1].side != item.side
        seen = 1 if first else seen + 1
        y = _TOP + (index + 0.5) * _ROW + (_BETWEEN if item.side == "B" else 0.0)
        canvas.label(4.0, y, f"{item.side} {seen}", size=SMALL, bold=True)
        _row(canvas, plot, item, size, y)
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, [(value, tick_label(value)) for value in marks], f"{measure}, {unit}")


def _row(canvas: Canvas, plot: Panel, item: LaunchSteps, size: float, y: float) -> None:
    mark = MARKS[0] if item.side == "A" else MARKS[1]
    values = [value / size for value in item.quantiles]
    inside = [value for value in values if plot.x.low <= value <= plot.x.high]
    places = [plot.at(value, 0.0)[0] for value in values]
    canvas.line([(places[1], y), (places[-2], y)], colour=mark.light, width=1.2)
    box = (places[5], y - 5.0, places[15] - places[5], 10.0)
    canvas.boxes([box], fill=mark.light, edge=mark.light, alpha=0.3, dash=() if item.steady else DOTTED)
    canvas.uprights([(plot.at(value, 0.0)[0], y - 3.0, y + 3.0) for value in inside], colour=mark.light)
    canvas.marks([(places[10], y)], mark, size=6.5)
    counts = f"{item.kept:,} of {item.steps:,}" + ("" if item.steady else " ?")
    canvas.label(plot.right + 8.0, y, counts, size=SMALL, colour=FAINT if item.steady else INK)
