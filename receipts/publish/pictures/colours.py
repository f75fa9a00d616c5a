"""Colours that people with any colour vision tell apart.

Categories are those of Okabe and Ito (2008), *Color Universal Design*, with lighter and darker forms for the ninth and
later.
"""

from __future__ import annotations

from typing import Final

INK: Final = "#1b1b1b"
FAINT: Final = "#6b6b6b"
LINE: Final = "#bdbdbd"
PAPER: Final = "#ffffff"

CATEGORIES: Final = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#5c5c5c"),
    *("#80b9d9", "#8a5f00", "#7fceb9", "#7f3800", "#7a4864", "#1f6a91", "#b3a800", "#b0b0b0"),
)


def category(index: int) -> str:
    """The colour of the category at this place; the seventeenth takes the first one again."""
    return CATEGORIES[index % len(CATEGORIES)]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(ground: str) -> str:
    """The text colour with the better contrast on a colour: dark or white."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, ground))


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
