"""What pictures for a page are drawn on: pixels of the page, with the origin at the top left.

matplotlib's SVG renderer is asked for paths, marks and text. A figure with artists would ask it for the same, and loads
and does twice as much for it, of which nothing shows here: no axes, no layout, no text that must be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from receipts.publish.pictures.colours import INK, PAPER
from receipts.publish.pictures.marks import SeriesStyle

if TYPE_CHECKING:
    from matplotlib.backend_bases import GraphicsContextBase
    from matplotlib.backends.backend_svg import RendererSVG
    from matplotlib.path import Path

TEXT: Final = 11.0  # sizes of text
SMALL: Final = 10.0
_SIGN: Final = 0.56  # of its size: the width of a sign in the fonts that pages have
_BELOW_MIDDLE: Final = 0.26  # of its size: from the middle of a line in those fonts down to where its letters stand
_DOTS: Final = (0.0, (1.0, 1.65))
Place = tuple[float, float]


def extent(text: str, size: float = TEXT) -> float:
    """The width of a text, to what can be known without its font."""
    return len(text) * _SIGN * size


def cut(text: str, width: float, size: float = TEXT) -> str:
    """Text that fits a width."""
    most = max(1, int(width / (_SIGN * size)))
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def printable(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(char if char.isprintable() else " " for char in text)


class Canvas:
    """A drawing at places in pixels. ``dash`` is ``-``, ``:``, or an offset with lengths, in widths of the line.

    What is drawn is kept until `finish`: shapes lie below marks, and marks below text.
    """

    def __init__(self, renderer: RendererSVG) -> None:
        from matplotlib.transforms import Affine2D

        self._renderer = renderer
        self.width = float(renderer.width)
        self.height = float(renderer.height)
        self._places = Affine2D().scale(1.0, -1.0).translate(0.0, self.height)
        self._layers: tuple[list[Callable[[], None]], ...] = ([], [], [])

    def __repr__(self) -> str:
        return f"Canvas({self.width:g} by {self.height:g})"

    def finish(self) -> None:
        """Draw all that was asked for, and end the picture."""
        for layer in self._layers:
            for draw in layer:
                draw()
        self._renderer.finalize()  # type: ignore[no-untyped-call]  # its stub leaves it so

    def _pen(self, colour: str, width: float, dash: Any = "-") -> GraphicsContextBase:
        pen = self._renderer.new_gc()
        pen.set_foreground(colour)
        pen.set_linewidth(width)
        pen.set_joinstyle("miter")
        pen.set_capstyle("butt")
        if dash != "-":
            offset, lengths = _DOTS if dash == ":" else dash
            pen.set_dashes(offset * width, [length * width for length in lengths])
        return pen

    def _shape(self, path: Path, pen: GraphicsContextBase, fill: Any = None) -> None:
        self._layers[0].append(partial(self._renderer.draw_path, pen, path, self._places, fill))

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
        from matplotlib.font_manager import FontProperties
        from matplotlib.text import Text

        font = FontProperties(weight="bold" if bold else "normal", size=size)
        anchor = Text(x, y, ha=ha, transform=self._places)
        baseline = y + _BELOW_MIDDLE * size
        pen, shown = self._pen(colour, 0.0), printable(text)
        self._layers[2].append(partial(self._renderer.draw_text, pen, x, baseline, shown, font, 0.0, mtext=anchor))

    def line(self, points: Sequence[Place], *, colour: str = INK, width: float = 1.5, dash: Any = "-") -> None:
        """A line through places."""
        self._path([points], colour, width, dash)

    def segments(
        self, ends: Sequence[tuple[Place, Place]], *, colour: str = INK, width: float = 1.0, dash: Any = "-"
    ) -> None:
        """Lines that do not touch, each from one place to another."""
        self._path(ends, colour, width, dash)

    def uprights(
        self, spans: Sequence[tuple[float, float, float]], *, colour: str = INK, width: float = 1.0, dash: Any = "-"
    ) -> None:
        """Vertical lines, each at an x from a top to a bottom."""
        self._path([((x, top), (x, bottom)) for x, top, bottom in spans], colour, width, dash)

    def _path(self, lines: Sequence[Sequence[Place]], colour: str, width: float, dash: Any) -> None:
        from matplotlib.path import Path

        places = [place for points in lines for place in points]
        if not places:
            return
        codes = [code for points in lines for code in (Path.MOVETO, *([Path.LINETO] * (len(points) - 1)))]
        self._shape(Path(places, codes), self._pen(colour, width, dash))

    def boxes(
        self, boxes: Sequence[tuple[float, float, float, float]], *, fill: str = "none", edge: str = "none",
        alpha: float = 1.0, dash: Any = "-",
    ) -> None:  # fmt: skip
        """Rectangles of one look, each a left, a top, a width and a height. ``alpha`` is that of the filling."""
        from matplotlib.colors import to_rgba
        from matplotlib.path import Path

        if not boxes:
            return
        corners = [
            place
            for x, y, wide, tall in boxes
            for place in ((x, y), (x + wide, y), (x + wide, y + tall), (x, y + tall), (x, y))
        ]
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(boxes)
        pen = self._pen(edge, 1.0, dash) if edge != "none" else self._pen(INK, 0.0)
        self._shape(Path(corners, codes), pen, to_rgba(fill, alpha) if fill != "none" else None)

    def marks(self, places: Sequence[Place], mark: SeriesStyle, *, hollow: bool = False, size: float = 8.0) -> None:
        """A series' mark at each place: filled, or hollow."""
        from matplotlib.colors import to_rgba
        from matplotlib.markers import MarkerStyle
        from matplotlib.path import Path
        from matplotlib.transforms import Affine2D

        if not places:
            return
        style = MarkerStyle(mark.marker)
        pen = self._pen(mark.light, 1.5)
        pen.set_joinstyle(style.get_joinstyle())
        pen.set_capstyle(style.get_capstyle())
        face = to_rgba(PAPER if hollow else mark.light)
        shape, turned = style.get_path(), style.get_transform() + Affine2D().scale(size)
        draw = partial(self._renderer.draw_markers, pen, shape, turned, Path(places), self._places, face)
        self._layers[1].append(draw)

    def whisker(self, x: float, low: float, high: float, colour: str) -> None:
        """An upright interval with two feet."""
        feet = [((x - 4.0, y), (x + 4.0, y)) for y in (low, high)]
        self.segments([((x, low), (x, high)), *feet], colour=colour, width=1.4)
