"""A figure that stands inside a page: it takes the page's colours and font, and shares no id with another one.

Ink, lines, paper and marks are the page's own variables (`receipts.draw.marks.VARIABLES`), each with the colour of a
light page behind it, so that dark mode and print need no second picture.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from receipts.draw import figure
from receipts.draw.marks import VARIABLES

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

_SVG: Final = "http://www.w3.org/2000/svg"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_FONT: Final = re.compile(r"\s*font-family:[^;]*;?")
_TITLE: Final = 200  # signs: a label may be as long as a book, and a description is read aloud
_SAYS: Final = 2000
_FINE: Final = re.compile(r"\d+\.\d{3,}")  # a hundredth of a pixel is nothing that anybody sees
_LINKED: Final = re.compile(r"url\(#([^)]+)\)")


def svg(paint: Callable[[Figure], None], *, name: str, width: float, height: float, title: str, says: str) -> str:
    """The SVG element of a figure that ``paint`` fills, ``width`` by ``height`` of the page's pixels.

    ``name`` starts every id in it: letters, digits and hyphens, once on a page. ``title`` and ``says`` are its name and
    description for a reader who does not see it.
    """
    from xml.etree import ElementTree

    def transparent(drawn: Figure) -> None:
        drawn.patch.set_visible(False)
        paint(drawn)

    with warnings.catch_warnings():
        # Signs that DejaVu lacks are measured as boxes; the page has its own font for them.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        drawn = figure.svg(transparent, width=width, height=height, title=title[:_TITLE], says=says[:_SAYS])
    root = ElementTree.fromstring(drawn)
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
    for tag, suffix in (("title", "title"), ("desc", "says")):
        found = root.find(tag)
        assert found is not None  # `figure.svg` writes both
        found.set("id", f"{name}-{suffix}")
    return ElementTree.tostring(root, encoding="unicode")


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
    links += [found for item in root.iter() for value in item.attrib.values() for found in _LINKED.findall(value)]
    numbers = {link: f"{name}-{number}" for number, link in enumerate(dict.fromkeys(links), 1)}
    for item in root.iter():
        own = item.attrib.pop("id", None)
        if own in numbers:
            item.set("id", numbers[own])
        if "href" in item.attrib:
            item.set("href", f"#{numbers[item.attrib['href'][1:]]}")
        for key, value in item.attrib.items():
            item.attrib[key] = _LINKED.sub(lambda found: f"url(#{numbers[found[1]]})", value)


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
        item.set(key, _FINE.sub(lambda found: f"{float(found[0]):.2f}", item.attrib[key]))
    if item.tag not in ("text", "title", "desc"):
        item.text = None
    item.tail = "\n" if item.tag in ("g", "path", "text", "title", "desc") else None


def _variable(found: re.Match[str]) -> str:
    colour = found[0]
    return f"var({VARIABLES[colour]}, {colour})" if colour in VARIABLES else colour
