"""What pictures for a page are drawn on: pixels of the page, with the origin at the top left.

A drawing is SVG elements that take the page's colors and font. Ink, lines, paper and marks are variables of the page
(`receipts.publish.pictures.marks.VARIABLES`), each with the color of a light page behind it, so that dark mode and
print need no second picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from receipts.publish.pictures.colours import INK, PAPER
from receipts.publish.pictures.marks import SHAPES, VARIABLES, SeriesStyle

TEXT: Final = 11.0  # sizes of text
SMALL: Final = 10.0
DOTTED: Final = (1.0, 1.65)  # lengths of strokes and gaps, in widths of the line
_SIGN: Final = 0.56  # of its size: the width of a sign in the fonts that pages have
_BELOW_MIDDLE: Final = 0.26  # of its size: from the middle of a line in those fonts down to where its letters stand
_ANCHORS: Final = {"left": "start", "center": "middle", "right": "end"}
Place = tuple[float, float]


def extent(text: str, size: float = TEXT) -> float:
    """The width of a text, to what can be known without its font."""
    return len(text) * _SIGN * size


def cut(text: str, width: float, size: float = TEXT) -> str:
    """Text that fits a width."""
    most = max(1, int(width / (_SIGN * size)))
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def printable(text: str) -> str:
    """Text that XML can hold, as XML writes it."""
    return escape("".join(char if char.isprintable() else " " for char in text), quote=False)


class Canvas:
    """A drawing at places in pixels: shapes lie below marks, and marks below text.

    ``name`` starts every id in it. ``dash`` holds lengths of strokes and gaps in widths of the line; none is solid.
    """

    def __init__(self, name: str, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._name = name
        self._outlines: dict[str, str] = {}  # ids of marks by their paths
        self._layers: tuple[list[str], list[str], list[str]] = ([], [], [])

    def __repr__(self) -> str:
        return f"Canvas({self.width:g} by {self.height:g})"

    def drawing(self) -> str:
        """All that was drawn, an element a line."""
        outlines = "".join(f'<path id="{key}" d="{path}" />' for path, key in self._outlines.items())
        shapes, marks, texts = self._layers
        return "\n".join([*shapes, *([f"<defs>{outlines}</defs>"] if outlines else []), *marks, *texts])

    def label(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        ha: str = "left",
        colour: str = INK,
        bold: bool = False,
    ) -> None:
        """Text in one line, its middle at ``y``, and its left end, ``center`` or ``right`` end at ``x``."""
        weight = "font-weight: 700; " if bold else ""
        style = f"{weight}font-size: {size:g}px; text-anchor: {_ANCHORS[ha]}; fill: {_paint(colour)}"
        at = f'x="{_number(x)}" y="{_number(y + _BELOW_MIDDLE * size)}"'
        self._layers[2].append(f'<text style="{style}" {at}>{printable(text)}</text>')

    def line(
        self, points: Sequence[Place], *, colour: str = INK, width: float = 1.5, dash: Sequence[float] = ()
    ) -> None:
        """A line through places."""
        self.segments([points], colour=colour, width=width, dash=dash)

    def segments(
        self, lines: Sequence[Sequence[Place]], *, colour: str = INK, width: float = 1.0, dash: Sequence[float] = ()
    ) -> None:
        """Lines that do not touch, each through its places."""
        path = " ".join(_through(points) for points in lines if points)
        if path:
            self._layers[0].append(f'<path d="{path}" style="fill: none; {_stroke(colour, width, dash)}" />')

    def uprights(
        self,
        spans: Sequence[tuple[float, float, float]],
        *,
        colour: str = INK,
        width: float = 1.0,
        dash: Sequence[float] = (),
    ) -> None:
        """Vertical lines, each at an x from a top to a bottom."""
        self.segments([((x, top), (x, bottom)) for x, top, bottom in spans], colour=colour, width=width, dash=dash)

    def boxes(
        self, boxes: Sequence[tuple[float, float, float, float]], *, fill: str = "none", edge: str = "none",
        alpha: float = 1.0, dash: Sequence[float] = (),
    ) -> None:  # fmt: skip
        """Rectangles of one look, each a left, a top, a width and a height. ``alpha`` is that of the filling."""
        if not boxes:
            return
        corners = (((x, y), (x + wide, y), (x + wide, y + tall), (x, y + tall)) for x, y, wide, tall in boxes)
        path = " ".join(f"{_through(places)} z" for places in corners)
        style = f"fill: {_paint(fill)}"
        style += f"; fill-opacity: {alpha:g}" if alpha < 1.0 else ""
        style += f"; {_stroke(edge, 1.0, dash)}" if edge != "none" else ""
        self._layers[0].append(f'<path d="{path}" style="{style}" />')

    def marks(self, places: Sequence[Place], mark: SeriesStyle, *, hollow: bool = False, size: float = 8.0) -> None:
        """A series' mark at each place: filled, or hollow."""
        if not places:
            return
        path = _outline(mark.shape, size)
        key = self._outlines.setdefault(path, f"{self._name}-{len(self._outlines) + 1}")
        style = f"fill: {_paint(PAPER if hollow else mark.light)}; stroke: {_paint(mark.light)}; stroke-width: 1.5"
        at = (f'x="{_number(x)}" y="{_number(y)}"' for x, y in places)
        self._layers[1].extend(f'<use {place} style="{style}" href="#{key}" />' for place in at)

    def whisker(self, x: float, low: float, high: float, colour: str) -> None:
        """An upright interval with two feet."""
        feet = [((x - 4.0, y), (x + 4.0, y)) for y in (low, high)]
        self.segments([((x, low), (x, high)), *feet], colour=colour, width=1.4)


def _number(value: float) -> str:
    """To a hundredth of a pixel: finer is nothing that anybody sees."""
    return f"{round(value, 2) + 0.0:g}" if abs(value) < 1e4 else f"{value:.2f}"


def _through(places: Iterable[Place]) -> str:
    return "M " + " L ".join(f"{_number(x)} {_number(y)}" for x, y in places)


def _paint(colour: str) -> str:
    return f"var({VARIABLES[colour]}, {colour})" if colour in VARIABLES else colour


def _stroke(colour: str, width: float, dash: Sequence[float]) -> str:
    lengths = ",".join(f"{length * width:g}" for length in dash)
    return (
        f"stroke-dasharray: {lengths}; " if lengths else ""
    ) + f"stroke: {_paint(colour)}; stroke-width: {width:g}; stroke-linejoin: miter"


def _outline(shape: str, size: float) -> str:
    """The path of a mark around the origin: a circle, or the polygon of its corners."""
    half = size / 2
    corners = SHAPES[shape]
    if not corners:
        return f"M {-half:g} 0 a {half:g} {half:g} 0 1 0 {size:g} 0 a {half:g} {half:g} 0 1 0 {-size:g} 0 z"
    return f"{_through((x * half, y * half) for x, y in corners)} z"
