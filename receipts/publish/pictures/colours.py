"""Colours that people with any colour vision tell apart, for the terminal and for pictures alike.

Categories are those of Okabe and Ito (2008), *Color Universal Design*, with lighter and darker forms for the ninth and
later. Ramps are ColorBrewer's YlOrRd and RdBu (Harrower and Brewer 2003), which it lists as safe for the colour-blind;
YlOrRd grows darker all the way, so that a grey print keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

INK: Final = "#1b1b1b"
FAINT: Final = "#6b6b6b"
LINE: Final = "#bdbdbd"
PAPER: Final = "#ffffff"

CATEGORIES: Final = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#5c5c5c"),
    *("#80b9d9", "#8a5f00", "#7fceb9", "#7f3800", "#7a4864", "#1f6a91", "#b3a800", "#b0b0b0"),
)
SEQUENTIAL: Final = ("#ffffcc", "#ffeda0", "#fed976", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026", "#800026")
# From blue, less, to red, more; white is no change.
DIVERGING: Final = ("#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b")


class Colour(NamedTuple):
    """Red, green and blue, each from 0 to 255."""

    red: int
    green: int
    blue: int

    @property
    def hex(self) -> str:
        """As SVG writes it."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"

    @property
    def luminance(self) -> float:
        """Relative luminance from 0 to 1, as WCAG 2 defines it."""
        linear = [_linear(part / 255) for part in self]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    @property
    def ink(self) -> str:
        """The text colour with the better contrast on it: dark or white."""
        dark = (self.luminance + 0.05) / (of(INK).luminance + 0.05)
        return INK if dark >= 1.05 / (self.luminance + 0.05) else PAPER


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def of(text: str) -> Colour:
    """The colour of ``#rrggbb``."""
    return Colour(int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))


def category(index: int) -> str:
    """The colour of the category at this place; the seventeenth takes the first one again."""
    return CATEGORIES[index % len(CATEGORIES)]


def ramp(share: float, colours: Sequence[str] = SEQUENTIAL) -> Colour:
    """The colour at a share of the way through a ramp; shares beyond 0 and 1 take its ends."""
    place = min(1.0, max(0.0, share)) * (len(colours) - 1)
    index = min(int(place), len(colours) - 2)
    low, high = of(colours[index]), of(colours[index + 1])
    rest = place - index
    return Colour(*(round(a + (b - a) * rest) for a, b in zip(low, high, strict=True)))


def diverging(share: float) -> Colour:
    """The colour of a change: -1 is the most relief, 0 none at all, 1 the most growth."""
    return ramp((share + 1.0) / 2.0, DIVERGING)
