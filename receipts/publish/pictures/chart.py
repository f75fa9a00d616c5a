"""A panel of a picture, a rectangle with two scales, their ticks and titles, and the legend of its series below.

Titles of the vertical scale stand above it and are not turned, so that they are read like the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from receipts.publish.pictures.svg import FAINT, LINE, MARKS, SMALL, Canvas, cut, extent

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
    for x, text in next((some for some in strides if not _touch(some)), ()):
        canvas.label(x, panel.bottom + 12.0, text, ha="center", size=SMALL, colour=FAINT)
    middle = (panel.left + panel.right) / 2
    canvas.label(middle, panel.bottom + 29.0, title, ha="center", size=SMALL, colour=FAINT)


def _touch(texts: Sequence[tuple[float, str]]) -> bool:
    """Whether two neighbors among texts, each around its place, have no room between them."""
    return any(
        b - a < (extent(one, SMALL) + extent(other, SMALL)) / 2 + 6.0
        for (a, one), (b, other) in itertools.pairwise(texts)
    )
