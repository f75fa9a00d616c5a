"""Marks of series that are told apart without colour: a shape and a dash each, with a colour for light and for dark.

Each light colour has a contrast of at least 4.5 to 1 on white, each dark one on the page's dark ground (WCAG 2 asks 3
of graphics). The hues are those of Okabe and Ito (2008), moved to those contrasts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from receipts.publish.pictures.colours import FAINT, INK, LINE, PAPER


class SeriesStyle(NamedTuple):
    """How a series is drawn: its colours on light and on dark ground, and matplotlib's words for marker and dash."""

    light: str
    dark: str
    marker: str
    dash: object


MARKS: Final = (
    SeriesStyle("#0072b2", "#56b4e9", "o", "-"),
    SeriesStyle("#c24e00", "#f08a4b", "s", (0, (5, 2))),
    SeriesStyle("#007a59", "#2fc79a", "^", (0, (1.5, 1.5))),
    SeriesStyle("#a0487a", "#e39ac4", "D", (0, (6, 2, 1.5, 2))),
    SeriesStyle("#7a5c00", "#d9b23c", "v", (0, (9, 3))),
    SeriesStyle("#5c5c5d", "#b4b8bd", "P", (0, (3, 3))),
    SeriesStyle("#4a3fb5", "#a79cf5", "X", (0, (6, 2, 1.5, 2, 1.5, 2))),
    SeriesStyle("#b3261e", "#ff8f86", "p", (0, (2, 4))),
)
# Names that the page's style gives values for its light, dark and printed forms; see reports/parts/colors.css.
VARIABLES: Final = {
    INK: "--ink",
    FAINT: "--soft",
    LINE: "--line",
    PAPER: "--paper",
    **{mark.light: f"--mark-{number}" for number, mark in enumerate(MARKS, 1)},
}
