"""Marks of series that are distinguished without colour: a shape and a dash each, with a colour for light and for dark.

Each light colour has a contrast of at least 4.5 to 1 on white, each dark one on the page's dark ground (WCAG 2 asks 3
of graphics). The hues are those of Okabe and Ito (2008), moved to those contrasts.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from receipts.publish.pictures.colours import FAINT, INK, LINE, PAPER


class SeriesStyle(NamedTuple):
    """How a series is drawn: its colours on light and on dark ground, its shape, and its dash in widths of the line."""

    light: str
    dark: str
    shape: str
    dash: tuple[float, ...]


MARKS: Final = (
    SeriesStyle("#0072b2", "#56b4e9", "circle", ()),
    SeriesStyle("#c24e00", "#f08a4b", "square", (5, 2)),
    SeriesStyle("#007a59", "#2fc79a", "triangle", (1.5, 1.5)),
    SeriesStyle("#a0487a", "#e39ac4", "diamond", (6, 2, 1.5, 2)),
    SeriesStyle("#7a5c00", "#d9b23c", "inverted", (9, 3)),
    SeriesStyle("#5c5c5d", "#b4b8bd", "plus", (3, 3)),
    SeriesStyle("#4a3fb5", "#a79cf5", "cross", (6, 2, 1.5, 2, 1.5, 2)),
    SeriesStyle("#b3261e", "#ff8f86", "pentagon", (2, 4)),
)
_PLUS: Final = (
    *((-1 / 3, -1.0), (1 / 3, -1.0), (1 / 3, -1 / 3), (1.0, -1 / 3), (1.0, 1 / 3), (1 / 3, 1 / 3)),
    *((1 / 3, 1.0), (-1 / 3, 1.0), (-1 / 3, 1 / 3), (-1.0, 1 / 3), (-1.0, -1 / 3), (-1 / 3, -1 / 3)),
)
_HALF: Final = math.sqrt(0.5)
# Corners of each shape within a square from -1 to 1, y downward; a circle has none.
SHAPES: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "circle": (),
    "square": ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)),
    "triangle": ((0.0, -1.0), (1.0, 1.0), (-1.0, 1.0)),
    "diamond": ((0.0, -1.41), (1.41, 0.0), (0.0, 1.41), (-1.41, 0.0)),
    "inverted": ((0.0, 1.0), (1.0, -1.0), (-1.0, -1.0)),
    "plus": _PLUS,
    "cross": tuple(((x - y) * _HALF, (x + y) * _HALF) for x, y in _PLUS),
    "pentagon": tuple((math.sin(turn), -math.cos(turn)) for turn in (math.tau * index / 5 for index in range(5))),
}
# Names that the page's style gives values for its light, dark and printed forms; see reports/parts/colors.css.
VARIABLES: Final = {
    INK: "--ink",
    FAINT: "--soft",
    LINE: "--line",
    PAPER: "--paper",
    **{mark.light: f"--mark-{number}" for number, mark in enumerate(MARKS, 1)},
}
