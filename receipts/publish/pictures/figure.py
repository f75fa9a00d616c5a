"""A figure as SVG: the same text for the same values, on every machine and day, and readable without seeing it.

matplotlib draws (Hunter 2007). Text stays text, so that it can be searched, copied and read aloud; widths are those of
DejaVu Sans, and a viewer without it takes Verdana, whose widths are the same.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, Final

from receipts.publish.pictures.colours import FAINT, INK, LINE, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS: Final = 72.0  # of an inch: matplotlib's unit of length, and that of the SVG's view box
TITLE: Final = 12.0  # sizes of text, in points
TEXT: Final = 9.0
SMALL: Final = 7.5
_STYLE: Final[dict[Any, Any]] = {  # matplotlib's stubs list every key there is
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "figure.dpi": POINTS,
    "figure.facecolor": PAPER,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": TEXT,
    "hatch.color": LINE,
    "hatch.linewidth": 0.6,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "receipts",
    "text.color": INK,
    "text.parse_math": False,  # a label may hold a dollar sign, and means it
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}
NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PROLOGUE: Final = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_HEAD: Final = re.compile(r"<svg(?P<attributes>[^>]*)>")


def svg(paint: Callable[[Figure], None], *, width: float, height: float, title: str, says: str) -> str:
    """The SVG text of a figure that ``paint`` fills. ``width`` and ``height`` are in points (1/72 inch).

    ``title`` and ``says`` become its ``<title>`` and ``<desc>``: what a reader who does not see the picture is told, so
    ``says`` holds the numbers that matter with their units. ``paint`` draws its own headline if it wants one seen.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        # What a user's matplotlibrc or an earlier picture set must not show in this one.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(width / POINTS, height / POINTS))
        FigureCanvasSVG(figure)
        paint(figure)
        made = io.StringIO()
        figure.savefig(made, format="svg", metadata=NO_METADATA)
    return _told(made.getvalue(), title, says)


def _told(drawn: str, title: str, says: str) -> str:
    """The drawing with its name and description as its first children, and without the prologue of a file."""
    body = _PROLOGUE.sub("", drawn, count=1)
    words = (
        f"<title>{escape(printable(title), quote=False)}</title>\n <desc>{escape(printable(says), quote=False)}</desc>"
    )
    named = _HEAD.sub(lambda found: f'<svg{found["attributes"]} role="img">\n {words}', body, count=1)
    return "\n".join(line.rstrip() for line in named.splitlines()) + "\n"


def printable(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(char if char.isprintable() else " " for char in text)


def canvas(figure: Figure, width: float, height: float) -> Axes:
    """Axes without frame or ticks over the whole figure, in points with the origin at the top left."""
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0.0, width)
    axes.set_ylim(height, 0.0)
    axes.set_axis_off()
    return axes


def label(axes: Axes, x: float, y: float, text: str, **how: object) -> None:
    """Text at a place of `canvas`, its left end and the middle of its line there unless ``how`` says otherwise.

    ``how`` is matplotlib's: ``ha``, ``va``, ``size``, ``color``, ``weight``.
    """
    given: dict[str, object] = {"ha": "left", "va": "center", "size": TEXT, **how}
    axes.text(x, y, printable(text), **given)  # type: ignore[arg-type]  # its stub names each keyword apart


def rectangle(axes: Axes, x: float, y: float, width: float, height: float, colour: str, **how: object) -> None:
    """A filled rectangle at a place of `canvas`; ``how`` is matplotlib's: ``edgecolor``, ``linewidth``, ``hatch``."""
    from matplotlib.patches import Rectangle

    given: dict[str, object] = {"facecolor": colour, "edgecolor": "none", "linewidth": 0.0, "clip_on": False, **how}
    axes.add_artist(Rectangle((x, y), width, height, **given))  # type: ignore[arg-type]  # as for text
