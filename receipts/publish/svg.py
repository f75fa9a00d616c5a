"""What pictures for a page are drawn on: colors, marks of series, a canvas, panels with scales, and the SVG element.

Colors are those of Okabe and Ito (2008), *Color Universal Design*, which people with any color vision tell apart, with
lighter and darker forms for the ninth category and later. Series are distinguished without color as well: by a shape
and a dash each. Each light color of a mark has a contrast of at least 4.5 to 1 on white, each dark one on the page's
dark ground (WCAG 2 asks 3 of graphics).

A canvas has the pixels of the page, with the origin at the top left. A drawing is SVG elements that take the page's
colors and font, with ids of its own. Ink, lines, paper and marks are variables of the page (`VARIABLES`), each with the
color of a light page behind it, so that dark mode and print need no second picture. Titles of a vertical scale stand
above it and are not turned, so that they are read like the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple

INK: Final = "#1b1b1b"
FAINT: Final = "#6b6b6b"
LINE: Final = "#bdbdbd"
PAPER: Final = "#ffffff"
YES: Final = "#00684b"

CATEGORIES: Final = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#5c5c5c"),
    *("#80b9d9", "#8a5f00", "#7fceb9", "#7f3800", "#7a4864", "#1f6a91", "#b3a800", "#b0b0b0"),
)


def category(index: int) -> str:
    """The colour of the category at this place; the seventeenth takes the first one again."""
    return CATEGORIES[index % len(CATEGORIES)]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG 2 defines it."""
    luminances = []
    for colour in (one, other):
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        luminances.append(float(0.2126 * red + 0.7152 * green + 0.0722 * blue))
    low, high = sorted(luminances)
    return (high + 0.05) / (low + 0.05)


def ink_on(ground: str) -> str:
    """The text colour with the better contrast on a colour: dark or white."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, ground))


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
    YES: "--yes",
    **{mark.light: f"--mark-{number}" for number, mark in enumerate(MARKS, 1)},
}


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


_TITLE: Final = 200  # signs: a label may be as long as a book, and a description is read aloud
_ALT: Final = 2000


def inline_svg(paint: Callable[[Canvas], None], *, name: str, width: float, height: float, title: str, alt: str) -> str:
    """The SVG element of a drawing that ``paint`` makes, ``width`` by ``height`` of the page's pixels.

    ``name`` starts every id in it: letters, digits and hyphens, once on a page. ``title`` and ``alt`` are its name and
    description for a reader who does not see it.
    """
    canvas = Canvas(name, width, height)
    paint(canvas)
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    reads = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-alt"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {reads} stroke-linejoin="round">',
            f'<title id="{name}-title">{printable(title[:_TITLE])}</title>',
            f'<desc id="{name}-alt">{printable(alt[:_ALT])}</desc>',
            canvas.drawing(),
            "</svg>",
        )
    )


def svg_file(svg: str | None) -> str | None:
    """The text of an SVG file, with a font, and on paper; None where nothing is drawn."""
    if svg is None:
        return None
    style = 'font-family="DejaVu Sans, Verdana, sans-serif" style="background: #ffffff"'
    return f"{svg.replace('<svg ', f'<svg {style} ', 1)}\n"


WIDTH: Final = 420.0  # of a picture: what a phone holds nearly as it is, and a page twice
LEFT: Final = 56.0
RIGHT: Final = 14.0
_LINE: Final = 16.0
MAX_SERIES: Final = len(MARKS)  # series that a reader can tell apart


def legend_height(names: Sequence[str]) -> float:
    """What the legend takes."""
    return _LINE * len(names) + 6.0 if names else 0.0


def draw_legend(canvas: Canvas, names: Sequence[str], top: float) -> None:
    """A line for each series: its mark, and its name as far as it fits."""
    for index, (name, mark) in enumerate(zip(names, MARKS, strict=False)):
        y = top + 10.0 + index * _LINE
        canvas.marks([(18.0, y)], mark, size=7.0)
        canvas.label(40.0, y, cut(name, WIDTH - 44.0, SMALL), size=SMALL)


BELOW: Final = 40.0  # pixels that `below` takes


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from ``low`` to ``high`` along a length; ``log`` for equal steps by equal ratios (both ends positive)."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value is: 0 at the low end, 1 at the high one."""
        low, high, at = (math.log(item) for item in (self.low, self.high, value)) if self.log else (
            self.low, self.high, value
        )  # fmt: skip
        return (at - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True, slots=True)
class Panel:
    """Where a panel is, and its scales."""

    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a pair of values."""
        return self.left + self.x.share(x) * self.width, self.bottom - self.y.share(y) * self.height


def nice(low: float, high: float, most: int) -> list[float]:
    """Round values that cover a range, at most about ``most`` steps of 1, 2, 2.5 or 5 times a power of ten."""
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        about = abs(low) / 1000 or 1.0
        low, high = low - about, high + about
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(share * power for share in (1.0, 2.0, 2.5, 5.0, 10.0) if share * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = 2 - math.floor(math.log10(step))
    return [round(index * step, digits) for index in range(first, last + 1)]


def upward(values: Sequence[float]) -> list[float]:
    """Ticks that cover positive values, from 0."""
    return [value for value in nice(0.0, max(values), 4) if value >= 0.0]


def tick_label(value: float) -> str:
    """A number at a tick."""
    return f"{value:,.10g}".replace("-", "\u2212")


def frame(canvas: Canvas, panel: Panel, *, title: str, ticks: Sequence[float]) -> None:
    """The vertical scale: its title, and a line for each tick."""
    canvas.label(panel.left, panel.top - 14.0, title, bold=True)
    heights = [panel.at(panel.x.low, value)[1] for value in ticks]
    canvas.segments([((panel.left, y), (panel.right, y)) for y in heights], colour=LINE, width=0.8)
    for value, y in zip(ticks, heights, strict=True):
        canvas.label(panel.left - 6.0, y, tick_label(value), ha="right", size=SMALL, colour=FAINT)
    canvas.line([(panel.left, panel.bottom), (panel.right, panel.bottom)], colour=FAINT, width=1.0)


def below(canvas: Canvas, panel: Panel, ticks: Sequence[tuple[float, str]], title: str) -> None:
    """The horizontal scale: ticks, the texts of every so many that do not touch, and its title. Takes 40 pixels."""
    places = [panel.at(value, panel.y.low)[0] for value, _ in ticks]
    canvas.uprights([(x, panel.bottom, panel.bottom + 4.0) for x in places], colour=FAINT)
    zero = next((at for at, (value, _) in enumerate(ticks) if value == 0.0), 0)
    texts = [(x, text) for x, (_, text) in zip(places, ticks, strict=True)]
    strides = (texts[zero % stride :: stride] for stride in range(1, len(texts) + 1))
    apart = (
        some
        for some in strides
        if all(
            b - a >= (extent(one, SMALL) + extent(other, SMALL)) / 2 + 6.0
            for (a, one), (b, other) in itertools.pairwise(some)
        )
    )
    for x, text in next(apart, ()):
        canvas.label(x, panel.bottom + 12.0, text, ha="center", size=SMALL, colour=FAINT)
    middle = (panel.left + panel.right) / 2
    canvas.label(middle, panel.bottom + 29.0, title, ha="center", size=SMALL, colour=FAINT)
