"""Memory by chip over the physical topology, in the page's colours: the layout that `receipts chips` draws.

The darker a cell, the more of its limit a chip used. A chip that keeps less than its lane wants is red and has a ``!``;
the chips with the highest value are outlined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from receipts.base.units import counted
from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import SMALL, Canvas, cut
from receipts.publish.pictures.colours import FAINT, INK, LINE
from receipts.publish.pictures.layout import Layout
from receipts.publish.pictures.legend import WIDTH
from receipts.publish.pictures.marks import MARKS

FEWEST: Final = 2  # a lone chip is a number
_HEAD: Final = 36.0  # a launch's name, and how its chips stand
_GAP: Final = 14.0
_EDGE: Final = 4.0
_NAMES: Final = 52.0  # names of rows
_TALLEST: Final = 30.0  # a row
_MOST: Final = 260.0  # pixels of a launch, before its rows become flatter
_FLAT: Final = 8.0
_TEXT: Final = 34.0  # pixels of a cell that holds its value
_PALE, _DARK = 0.08, 0.5  # how full a cell's color is: words on it stay readable on light and on dark ground
_USED, _THIN = MARKS[1].light, MARKS[7].light


@dataclass(frozen=True, slots=True)
class Map:
    """One launch in one phase: by chip the share of its limit that was used and that in words.

    ``leaders`` have the highest value, ``thin`` keep less than the lane wants.
    """

    title: str
    layout: Layout
    shares: Mapping[int, float]
    texts: Mapping[int, str]
    leaders: frozenset[int]
    thin: frozenset[int]

    @property
    def row(self) -> float:
        """Pixels of a row."""
        return min(_TALLEST, max(_FLAT, _MOST / (self.layout.rows * self.layout.planes)))

    @property
    def height(self) -> float:
        """Pixels of the whole."""
        return _HEAD + self.layout.planes * (self.layout.rows * self.row + 6.0)


def picture(maps: Sequence[Map], *, name: str, title: str) -> str | None:
    """The SVG element, or None where no launch has two chips with a value."""
    kept = [item for item in maps if len(item.shares) >= FEWEST]
    if not kept:
        return None
    height = sum(item.height + _GAP for item in kept)
    says = "; ".join(_says(item) for item in kept)
    return inline.svg(partial(_paint, kept), name=name, width=WIDTH, height=height, title=title, says=says)


def _says(item: Map) -> str:
    first = max(item.shares, key=lambda chip: (item.shares[chip], -chip))
    return f"{item.title}: {counted(len(item.shares), 'chip')}, the fullest chip {first} with {item.texts[first]}"


def _paint(maps: Sequence[Map], canvas: Canvas) -> None:
    top = 0.0
    for item in maps:
        canvas.label(_EDGE, top + 10.0, cut(item.title, WIDTH - 2 * _EDGE), bold=True)
        canvas.label(_EDGE, top + 25.0, cut(item.layout.says, WIDTH - 2 * _EDGE, SMALL), size=SMALL, colour=FAINT)
        for plane in range(item.layout.planes):
            _plane(canvas, item, plane, top + _HEAD + plane * (item.layout.rows * item.row + 6.0))
        top += item.height + _GAP


def _plane(canvas: Canvas, item: Map, plane: int, top: float) -> None:
    layout = item.layout
    wide = (WIDTH - _NAMES - _EDGE) / layout.columns
    for row in range(layout.rows):
        y = top + row * item.row
        # Of flat rows every so many have a name.
        every = max(1, round(12.0 / item.row))
        if row % every == 0:
            where = f"z {plane} " if layout.planes > 1 else ""
            name = f"{where}{layout.row_word} {row}"
            canvas.label(_NAMES - 6.0, y + item.row / 2, name, ha="right", size=SMALL, colour=FAINT)
        for chip in layout.chips(plane, row):
            x = _NAMES + layout.places[chip].column * wide
            _cell(canvas, item, chip, (x + 1.0, y + 1.0, wide - 2.0, item.row - 2.0))


def _cell(canvas: Canvas, item: Map, chip: int, box: tuple[float, float, float, float]) -> None:
    x, y, wide, tall = box
    share = item.shares.get(chip)
    if share is None:
        canvas.boxes([box], edge=LINE, dash=":")
    else:
        fill = _THIN if chip in item.thin else _USED
        canvas.boxes([box], fill=fill, alpha=_PALE + (_DARK - _PALE) * min(1.0, max(0.0, share)) ** 3)
    if chip in item.leaders:
        canvas.boxes([(x + 0.5, y + 0.5, wide - 1.0, tall - 1.0)], edge=INK)
    if tall < 14.0:
        return
    text = item.texts.get(chip, "~") if wide >= _TEXT else ""
    warning = "!" if chip in item.thin else ""
    canvas.label(x + wide / 2, y + tall / 2, f"{text}{warning}", ha="center", size=SMALL)
