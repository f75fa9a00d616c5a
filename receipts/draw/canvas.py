"""What pictures for a page are drawn on: pixels of the page, with the origin at the top left.

Artists stand on the figure itself and lie in it whole: axes that would clip and scale them cost more than drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from receipts.draw.colours import INK, PAPER
from receipts.draw.figure import POINTS, printable
from receipts.draw.marks import Mark

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

TEXT: Final = 11.0  # sizes of text
SMALL: Final = 10.0
_SIGN: Final = 0.56  # of its size: the width of a sign in the fonts that pages have
Place = tuple[float, float]


def extent(text: str, size: float = TEXT) -> float:
    """The width of a text, to what can be known without its font."""
    return len(text) * _SIGN * size


def cut(text: str, width: float, size: float = TEXT) -> str:
    """Text that fits a width."""
    most = max(1, int(width / (_SIGN * size)))
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


class Canvas:
    """A figure to draw on at places in pixels. ``dash`` is matplotlib's: ``-``, ``:``, or an offset and lengths."""

    def __init__(self, figure: Figure) -> None:
        from matplotlib.transforms import Affine2D

        self._figure = figure
        self.width = float(figure.get_figwidth() * POINTS)
        self.height = float(figure.get_figheight() * POINTS)
        self._places = Affine2D().scale(1.0, -1.0).translate(0.0, self.height)

    def __repr__(self) -> str:
        return f"Canvas({self.width:g} by {self.height:g})"

    def _add(self, artist: Artist) -> None:
        artist.set_transform(self._places)
        self._figure.add_artist(artist)

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
        from matplotlib.text import Text

        weight = "bold" if bold else "normal"
        self._add(Text(x, y, printable(text), size=size, ha=ha, va="center", color=colour, weight=weight))

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
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        places = [place for points in lines for place in points]
        if not places:
            return
        codes = [code for points in lines for code in (Path.MOVETO, *([Path.LINETO] * (len(points) - 1)))]
        drawn = PathPatch(Path(places, codes), facecolor="none", edgecolor=colour, linewidth=width, linestyle=dash)
        drawn.set_capstyle("butt")
        self._add(drawn)

    def boxes(
        self, boxes: Sequence[tuple[float, float, float, float]], *, fill: str = "none", edge: str = "none",
        alpha: float = 1.0, dash: Any = "-",
    ) -> None:  # fmt: skip
        """Rectangles of one look, each a left, a top, a width and a height. ``alpha`` is that of the filling."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if not boxes:
            return
        corners = [
            place
            for x, y, wide, tall in boxes
            for place in ((x, y), (x + wide, y), (x + wide, y + tall), (x, y + tall), (x, y))
        ]
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(boxes)
        face = to_rgba(fill, alpha) if fill != "none" else "none"
        self._add(PathPatch(Path(corners, codes), facecolor=face, edgecolor=edge, linewidth=1.0, linestyle=dash))

    def marks(self, places: Sequence[Place], mark: Mark, *, hollow: bool = False, size: float = 8.0) -> None:
        """A series' mark at each place: filled, or hollow."""
        from matplotlib.lines import Line2D

        if not places:
            return
        drawn = Line2D(
            [x for x, _ in places],
            [y for _, y in places],
            linestyle="none",
            marker=mark.marker,
            markersize=size,
            markerfacecolor=PAPER if hollow else mark.light,
            markeredgecolor=mark.light,
            markeredgewidth=1.5,
        )
        self._add(drawn)

    def whisker(self, x: float, low: float, high: float, colour: str) -> None:
        """An upright interval with two feet."""
        feet = [((x - 4.0, y), (x + 4.0, y)) for y in (low, high)]
        self.segments([((x, low), (x, high)), *feet], colour=colour, width=1.4)
