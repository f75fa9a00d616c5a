"""Text from receipts and numbers for people: whatever a label holds, it stays one harmless piece of text."""

from __future__ import annotations

import re
from typing import Any

from receipts.base import units
from receipts.base.text import UNKNOWN, plain

NOTE = 240  # of a message or a note, where the receipt holds the whole
CELL = 1200
_MARKUP = "\\`*[]<>#|$"
_EDGE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~|\S)")  # what Markdown reads as a mark of its own
_HELD = re.compile(r"\d \+ \d+(?: launches)?|\d %")  # what no line is broken within
_MEANS_MORE = re.compile(r"[\\`*\[\]<>#|$_~&@]|://|www\.")  # all that `cell` changes


def held(text: str) -> str:
    """Text whose numbers stay with their sign and unit: no-break spaces, which `plain` never leaves in a text."""
    return _HELD.sub(lambda match: match[0].replace(" ", "\u00a0"), text)


def cell(text: object) -> str:
    """Text that cannot break a Markdown table, or smuggle markup into a page that renders it."""
    shown = plain(text, CELL)
    if _MEANS_MORE.search(shown) is None:
        return shown
    for char in _MARKUP:
        shown = shown.replace(char, f"\\{char}")
    shown = _EDGE.sub(r"\\\g<0>", shown)
    # `&lt;` would come out as markup's own sign, and `http://…` or `@name` as a link.
    shown = shown.replace("&", "&amp;").replace("://", ":&#47;/").replace("@", "&#64;")
    return shown.replace("www.", "www&#46;")


def model(name: str | None, axes: str) -> str:
    """A model by its name, and by the axes that tell it from others of that name."""
    return plain(": ".join(filter(None, (name, axes))) or "not stated")


def value(item: Any) -> str:
    """An axis value for people."""
    from receipts.axes.effective import stated_words  # a command's help is printed without pydantic

    return plain(stated_words(item))


def number(item: float | None) -> str:
    """A whole number in groups of three, a small one to four digits; `~` where there is none."""
    if item is None:
        return UNKNOWN
    return f"{item:,.0f}" if abs(item) >= 1000 or float(item).is_integer() else f"{item:.4g}"


def gib(item: float | None) -> str:
    """Bytes as GiB, to a hundredth."""
    return UNKNOWN if item is None else f"{item / 2**30:,.2f}"


def amount(item: float | None, like: float | None = None) -> str:
    """Bytes with the unit of their size, or of that of ``like``: what a kernel asks for is lost in GiB."""
    return UNKNOWN if item is None else units.amount(item, like)


def percent(item: float | None, digits: int = 1) -> str:
    """A fraction in percent."""
    return UNKNOWN if item is None else f"{item * 100:.{digits}f}"


def change(ratio: float | None) -> str:
    """B over A as a signed change in percent, where the column names the unit."""
    return UNKNOWN if ratio is None else units.signed((ratio - 1) * 100, "+.2f")


def span(low: float | None, high: float | None) -> str:
    """An interval of B over A as changes in percent."""
    return UNKNOWN if low is None or high is None else f"{change(low)} to {change(high)}"
