"""A figure that stands inside a page: it takes the page's colours and font, and shares no id with another one.

Ink, lines, paper and marks are the page's own variables (`receipts.publish.pictures.marks.VARIABLES`), each with the
colour of a light page behind it, so that dark mode and print need no second picture.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from receipts.publish.pictures.canvas import Canvas, printable
from receipts.publish.pictures.marks import VARIABLES

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_SVG: Final = "http://www.w3.org/2000/svg"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_FONT: Final = re.compile(r"\s*font-family:[^;]*;?")
_TITLE: Final = 200  # signs: a label may be as long as a book, and a description is read aloud
_SAYS: Final = 2000
_FINE: Final = re.compile(r"\d+\.\d{3,}")  # a hundredth of a pixel is nothing that anybody sees
# All of matplotlib's that its renderer reads here.
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "receipts",
    "svg.id": None,
    "path.simplify": True,
    "path.snap": True,
    "font.family": ["sans-serif"],
    "path.sketch": None,
    "path.effects": [],
    "text.usetex": False,
}
_LINKED: Final = re.compile(r"url\(#([^)]+)\)")


def svg(paint: Callable[[Canvas], None], *, name: str, width: float, height: float, title: str, alt: str) -> str:
    """The SVG element of a drawing that ``paint`` makes, ``width`` by ``height`` of the page's pixels.

    ``name`` starts every id in it: letters, digits and hyphens, once on a page. ``title`` and ``says`` are its name and
    description for a reader who does not see it.
    """
    from xml.etree import ElementTree

    root = ElementTree.fromstring(_drawn(paint, width, height))
    _plain_names(root)
    _without_sheet(root)
    _own_ids(root, name)
    for item in root.iter():
        _in_the_page(item)
    root.attrib = {
        "xmlns": _SVG,
        "viewBox": root.attrib["viewBox"],
        "width": f"{width:g}",
        "height": f"{height:g}",
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-says",
        "stroke-linejoin": "round",
    }
    for place, (tag, suffix, text) in enumerate((("title", "title", title[:_TITLE]), ("desc", "says", alt[:_SAYS]))):
        element = ElementTree.Element(tag, {"id": f"{name}-{suffix}"})
        element.text, element.tail = printable(text), "\n"
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _drawn(paint: Callable[[Canvas], None], width: float, height: float) -> str:
    """What matplotlib makes of it, whatever a user's matplotlibrc says."""
    import matplotlib
    from matplotlib.backends.backend_svg import RendererSVG

    buffer = io.StringIO()
    with matplotlib.rc_context(_SETTINGS):
        renderer = RendererSVG(width, height, buffer, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]  # as its stub
        canvas = Canvas(renderer)
        paint(canvas)
        canvas.finish()
    return buffer.getvalue()


def alone(svg: str) -> str:
    """The same as a file of its own: with a font, and on paper."""
    return svg.replace("<svg ", '<svg font-family="DejaVu Sans, Verdana, sans-serif" style="background: #ffffff" ', 1)


def _plain_names(root: Element) -> None:
    """Names without their namespace, as a page writes them."""
    for item in root.iter():
        item.tag = item.tag.rpartition("}")[2]
        if _HREF in item.attrib:
            item.attrib["href"] = item.attrib.pop(_HREF)


def _without_sheet(root: Element) -> None:
    """Without the style sheet, which would hold for the whole page."""
    for parent in list(root.iter()):
        for child in [item for item in parent if item.tag == "defs" and item.find("style") is not None]:
            parent.remove(child)


def _own_ids(root: Element, name: str) -> None:
    """Ids that something leads to, numbered after the picture's name; the others go."""
    links = [item.attrib["href"][1:] for item in root.iter() if "href" in item.attrib]
    links += [match for item in root.iter() for value in item.attrib.values() for match in _LINKED.findall(value)]
    numbers = {link: f"{name}-{number}" for number, link in enumerate(dict.fromkeys(links), 1)}
    for item in root.iter():
        own = item.attrib.pop("id", None)
        if own in numbers:
            item.set("id", numbers[own])
        if "href" in item.attrib:
            item.set("href", f"#{numbers[item.attrib['href'][1:]]}")
        for key, value in item.attrib.items():
            item.attrib[key] = _LINKED.sub(lambda match: f"url(#{numbers[match[1]]})", value)


def _in_the_page(item: Element) -> None:
    """The page's colours and font, and no more white space than is needed."""
    if "style" in item.attrib:
        style = _FONT.sub("", item.attrib["style"])
        item.set("style", _COLOUR.sub(_variable, style).strip())
    if item.attrib.get("transform", "").startswith("rotate(-0 "):
        del item.attrib["transform"]
    if "d" in item.attrib:
        item.set("d", " ".join(item.attrib["d"].split()))
    for key in {"d", "x", "y"} & item.attrib.keys():
        item.set(key, _FINE.sub(lambda match: f"{float(match[0]):.2f}", item.attrib[key]))
    if item.tag not in ("text", "title", "desc"):
        item.text = None
    item.tail = "\n" if item.tag in ("g", "path", "text", "title", "desc") else None


def _variable(match: re.Match[str]) -> str:
    colour = match[0]
    return f"var({VARIABLES[colour]}, {colour})" if colour in VARIABLES else colour
