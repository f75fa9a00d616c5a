"""A heat map of chips over their physical topology, as SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts.publish.pictures import figure
from receipts.publish.pictures.colours import FAINT, INK, LINE, MISSING, PAPER
from receipts.publish.pictures.heat import Heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE: Final = 18.0  # lengths in points
NARROWEST: Final = 460.0
WIDEST: Final = 860.0
_TALLEST: Final = 700.0  # of a plane, before its cells become flatter
_LINE: Final = 13.0
_GAP: Final = 2.0
_BAR: Final = 150.0
_BETWEEN: Final = 22.0
_SIZES: Final = ((8, 66.0, 42.0), (16, 43.0, 32.0), (32, 24.0, 20.0))  # columns, width and height of a cell


class _Grid:
    """Where cells, planes and texts stand, in points."""

    def __init__(self, heat: Heat) -> None:
        layout = heat.layout
        self.width, self.height = next(((w, h) for most, w, h in _SIZES if layout.columns <= most), (14.0, 14.0))
        if layout.rows * self.height > _TALLEST:
            self.width, self.height = min(self.width, 54.0), min(self.height, 28.0)
        longest = max(len(name) for name in self._names(heat)) if layout.places else 0
        self.label = 8.0 + 4.7 * longest
        self.plane_width = self.label + layout.columns * self.width
        head = _LINE + 4.0 if layout.planes > 1 else 0.0
        self.plane_height = head + layout.rows * self.height
        self.head = head
        fit = max(1, int((WIDEST - 2 * EDGE + _BETWEEN) // (self.plane_width + _BETWEEN)))
        self.beside = min(layout.planes, fit)
        self.bands = -(-layout.planes // self.beside)
        inner = self.beside * self.plane_width + (self.beside - 1) * _BETWEEN
        self.total = max(NARROWEST, inner + 2 * EDGE)
        room = int((self.total - 2 * EDGE) / 4.9)
        self.texts = [part for text in heat.says for part in textwrap.wrap(text, room)]
        self.about = textwrap.wrap(heat.about, room)
        self.top = EDGE + 18.0 + _LINE * len(self.about) + 8.0
        self.bottom = self.top + self.bands * self.plane_height + (self.bands - 1) * _BETWEEN
        self.marks = _marks(heat)
        self.legend = self.bottom + 18.0
        self.tall = self.legend + 30.0 + _LINE * len(self.marks) + 8.0 + _LINE * len(self.texts) + EDGE - 6.0

    @staticmethod
    def _names(heat: Heat) -> list[str]:
        return [_row_name(heat, plane, row) for plane in range(heat.layout.planes) for row in range(heat.layout.rows)]

    def cell(self, heat: Heat, chip: int) -> tuple[float, float]:
        """The top left corner of a chip's cell."""
        place = heat.layout.places[chip]
        left, top = self.plane(place.plane)
        return left + self.label + place.column * self.width, top + self.head + place.row * self.height

    def plane(self, index: int) -> tuple[float, float]:
        """The top left corner of a plane."""
        left = EDGE + (index % self.beside) * (self.plane_width + _BETWEEN)
        return left, self.top + (index // self.beside) * (self.plane_height + _BETWEEN)


def picture(heat: Heat) -> str:
    """The SVG text of the map: title, cells with values where they fit, scale, marks and the sentences of ``says``."""
    grid = _Grid(heat)
    values = ", ".join(f"chip {chip} {heat.text(chip)}" for chip in heat.layout.places if chip in heat.values)
    says = ". ".join((heat.about, *heat.says, f"GiB a chip: {values}"))
    return figure.svg(partial(_paint, heat, grid), width=grid.total, height=grid.tall, title=heat.title, says=says)


def _paint(heat: Heat, grid: _Grid, drawn: Figure) -> None:
    axes = figure.canvas(drawn, grid.total, grid.tall)
    figure.label(axes, EDGE, EDGE + 4.0, heat.title, size=figure.TITLE, weight="bold")
    for index, text in enumerate(grid.about):
        figure.label(axes, EDGE, EDGE + 21.0 + index * _LINE, text, color=FAINT)
    for plane in range(heat.layout.planes):
        left, top = grid.plane(plane)
        if heat.layout.planes > 1:
            figure.label(axes, left + grid.label, top + 6.0, f"z {plane}", weight="bold")
        for row in range(heat.layout.rows):
            middle = top + grid.head + (row + 0.5) * grid.height
            name = _row_name(heat, plane, row)
            figure.label(axes, left + grid.label - 7.0, middle, name, ha="right", size=figure.SMALL, color=FAINT)
    # What is outlined is painted last: a neighbour would lie over its edge.
    for chip in sorted(heat.layout.places, key=lambda chip: (chip in heat.leaders, chip)):
        _cell(axes, heat, grid, chip)
    _scale(axes, heat, grid)
    below = grid.legend + 34.0
    for index, (sample, words) in enumerate(grid.marks):
        sample(axes, EDGE, below + index * _LINE)
        figure.label(axes, EDGE + 20.0, below + index * _LINE, words, size=figure.SMALL)
    below += len(grid.marks) * _LINE + 8.0
    for index, text in enumerate(grid.texts):
        figure.label(axes, EDGE, below + index * _LINE, text)


def _row_name(heat: Heat, plane: int, row: int) -> str:
    return f"{heat.layout.row_word} {row}"


def _cell(axes: Axes, heat: Heat, grid: _Grid, chip: int) -> None:
    x, y = grid.cell(heat, chip)
    width, height = grid.width - _GAP, grid.height - _GAP
    colour = heat.colour(chip)
    if colour is None:
        hatch = "////" if chip in heat.missing else None
        figure.rectangle(axes, x, y, width, height, MISSING, hatch=hatch, edgecolor=LINE, linewidth=0.5)
    else:
        figure.rectangle(axes, x, y, width, height, colour.hex)
    if chip in heat.leaders:
        figure.rectangle(axes, x + 1.0, y + 1.0, width - 2.0, height - 2.0, "none", edgecolor=INK, linewidth=2.0)
        figure.rectangle(axes, x + 2.4, y + 2.4, width - 4.8, height - 4.8, "none", edgecolor=PAPER, linewidth=0.8)
    ink = colour.ink if colour is not None else FAINT
    if grid.width >= 40.0:
        _texts(axes, heat, chip, (x, y, width, height), ink)
    elif chip in heat.thin or chip in heat.doubled:
        mark = "!" if chip in heat.thin else "2"
        figure.label(axes, x + width / 2, y + height / 2, mark, ha="center", color=ink, weight="bold")


def _texts(axes: Axes, heat: Heat, chip: int, box: tuple[float, float, float, float], ink: str) -> None:
    x, y, width, height = box
    roomy = height > 34.0
    value = "no row" if chip in heat.missing else heat.text(chip)
    size = 10.0 if roomy else figure.TEXT if len(value) < 6 else figure.SMALL
    figure.label(axes, x + width / 2, y + height * 0.62, value, ha="center", color=ink, size=size)
    figure.label(axes, x + 5.0, y + height * 0.24, str(chip), color=ink, size=6.5)
    mark = "×2" if chip in heat.doubled else "!" if chip in heat.thin else ""
    if mark:
        figure.label(axes, x + width - 5.0, y + height * 0.24, mark, ha="right", color=ink, size=7.5, weight="bold")


def _scale(axes: Axes, heat: Heat, grid: _Grid) -> None:
    """The scale from its light end to its dark one, with both ends in GiB."""
    low, high = heat.scale
    steps = 50
    for step in range(steps):
        share = (step + 0.5) / steps
        if heat.worse == "either":
            share = 2 * share - 1 if heat.relief == "down" else 1 - 2 * share
        colour = heat.at(share).hex
        # A hair wider than its share, or viewers show seams.
        figure.rectangle(axes, EDGE + _BAR * step / steps, grid.legend, _BAR / steps + 0.4, 9.0, colour)
    figure.rectangle(axes, EDGE, grid.legend, _BAR + 0.4, 9.0, "none", edgecolor=LINE, linewidth=0.5)
    first, last = (high, low) if heat.worse == "lower" else (low, high)
    y = grid.legend + 17.0
    figure.label(axes, EDGE, y, f"{heat.amount(first)} GiB", size=figure.SMALL)
    figure.label(axes, EDGE + _BAR, y, f"{heat.amount(last)} GiB", ha="right", size=figure.SMALL)
    if heat.worse == "either":
        figure.label(axes, EDGE + _BAR / 2, y, "0", ha="center", size=figure.SMALL)
    figure.label(axes, EDGE + _BAR + 14.0, grid.legend + 4.5, heat.layout.says, size=figure.SMALL, color=FAINT)


_Sample = Callable[["Axes", float, float], None]


def _marks(heat: Heat) -> list[tuple[_Sample, str]]:
    """A sample and the words of each mark that the map has."""
    worst = {"higher": "leads", "lower": "has the least", "either": "changed the most"}[heat.worse]
    found: list[tuple[_Sample, str]] = []
    if heat.leaders:
        found.append((_outlined, worst))
    if heat.thin:
        found.append((partial(_written, "!"), "less headroom than the lane keeps"))
    if heat.doubled:
        found.append((partial(_written, "×2"), "two rows; the larger figure is shown"))
    if heat.missing:
        found.append((partial(_filled, "////"), "no row"))
    if any(chip not in heat.values and chip not in heat.missing for chip in heat.layout.places):
        found.append((partial(_filled, None), "~ not stated"))
    return found


def _outlined(axes: Axes, x: float, y: float) -> None:
    figure.rectangle(axes, x + 1.0, y - 4.0, 12.0, 8.0, "none", edgecolor=INK, linewidth=2.0)


def _written(text: str, axes: Axes, x: float, y: float) -> None:
    figure.label(axes, x + 7.0, y, text, ha="center", weight="bold", size=figure.SMALL)


def _filled(hatch: str | None, axes: Axes, x: float, y: float) -> None:
    figure.rectangle(axes, x + 1.0, y - 4.0, 12.0, 8.0, MISSING, hatch=hatch, edgecolor=LINE, linewidth=0.5)
