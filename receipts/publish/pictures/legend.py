"""Series of a picture: their marks and names, below its panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from receipts.publish.pictures.canvas import SMALL, Canvas, cut
from receipts.publish.pictures.marks import MARKS, SeriesStyle

WIDTH: Final = 420.0  # of a picture: what a phone holds nearly as it is, and a page twice
LEFT: Final = 56.0
RIGHT: Final = 14.0
_LINE: Final = 16.0
MOST: Final = len(MARKS)  # series that a reader can tell apart


def mark_of(index: int) -> SeriesStyle:
    """The mark of the series at this place; no picture has more than `MOST`."""
    return MARKS[index % MOST]


def height(names: Sequence[str]) -> float:
    """What the legend takes."""
    return _LINE * len(names) + 6.0 if names else 0.0


def draw(canvas: Canvas, names: Sequence[str], top: float, *, dashes: bool = False) -> None:
    """A line for each series: its mark, on its dash where ``dashes``, and its name as far as it fits."""
    for index, name in enumerate(names):
        y = top + 10.0 + index * _LINE
        mark = mark_of(index)
        if dashes:
            canvas.line([(4.0, y), (32.0, y)], colour=mark.light, dash=mark.dash)
        canvas.marks([(18.0, y)], mark, size=7.0)
        canvas.label(40.0, y, cut(name, WIDTH - 44.0, SMALL), size=SMALL)
