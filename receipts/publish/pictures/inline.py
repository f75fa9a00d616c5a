"""A figure that is inside a page: an SVG element that takes its colors and font, with ids of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from receipts.publish.pictures.canvas import Canvas, printable

_TITLE: Final = 200  # signs: a label may be as long as a book, and a description is read aloud
_ALT: Final = 2000


def svg(paint: Callable[[Canvas], None], *, name: str, width: float, height: float, title: str, alt: str) -> str:
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


def alone(svg: str) -> str:
    """The same as a file of its own: with a font, and on paper."""
    return svg.replace("<svg ", '<svg font-family="DejaVu Sans, Verdana, sans-serif" style="background: #ffffff" ', 1)
