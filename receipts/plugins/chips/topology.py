"""Memory by chip over the physical topology: where chips stand, a value for each, and the picture of a page.

A torus is drawn by its coordinates. The runtime numbers chips with the first coordinate fastest: libtpu 0.0.52
(`jax.experimental.topologies`) gives chip ``x + X·(y + Y·z)`` for v6e slices from 2x4 to 16x16 and for v5p slices up to
4x4x4, whatever chips a host has. Elsewhere, and where the shape is not known, a row is a host, whose chips have
consecutive ordinals.

The picture is for reports and for ``receipts chips --svg``. The darker a cell, the more of its limit a chip used; of a
change, the larger it is. Red is a chip that keeps less than its lane wants (with a ``!``), or one whose pressure grew;
blue is relief. The chips with the worst value are outlined.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Final, Literal, NamedTuple

from receipts.base.units import GIB
from receipts.metrics.chips import MAX_NAMED
from receipts.publish import svg
from receipts.publish.svg import DOTTED, FAINT, INK, LINE, MARKS, SMALL, WIDTH, Canvas, cut
from receipts.receipt.accelerators import find_accelerator

_SHAPE: Final = re.compile(r"\d{1,6}(?:\s*[x×*]\s*\d{1,6}){0,2}", re.IGNORECASE)
_ROW: Final = 8  # chips in a row where nothing says how they stand; 16 beyond 64 of them


class ChipPlace(NamedTuple):
    """A plane, a row of it, and a column, each from 0."""

    plane: int
    row: int
    column: int


class ChipLayout(NamedTuple):
    """Places of chips by ordinal, on ``planes`` of ``rows`` by ``columns``; some places may be empty.

    ``row_word`` names a row (``y 0``, ``host 0``), ``says`` is what the picture tells of the arrangement.
    """

    planes: int
    rows: int
    columns: int
    places: Mapping[int, ChipPlace]
    row_word: str
    note: str

    def chips(self, plane: int, row: int) -> list[int]:
        """Ordinals of one row, in the order of columns."""
        row_chips = [(place.column, chip) for chip, place in self.places.items() if place[:2] == (plane, row)]
        return [chip for _, chip in sorted(row_chips)]


def layout(
    chips: Sequence[int],
    *,
    count: int | None = None,
    hosts: int | None = None,
    physical: str | None = None,
    accelerator: str | None = None,
) -> ChipLayout:
    """Places for the ordinals given, of which ``count`` took part; ``physical`` is a shape such as ``4x4x4``.

    A shape that does not hold ``count`` chips, or ordinals that have gaps, are drawn in the order of ordinals.
    """
    named = range(min(count or 0, MAX_NAMED)) if all(chip < (count or 0) for chip in chips) else ()
    ordered = sorted({*chips, *named})
    text = (physical or "").strip()
    shape = tuple(int(part) for part in re.findall(r"\d+", text)) if _SHAPE.fullmatch(text) else ()
    if len(ordered) == 1:
        return _rows(ordered, 1, "row", "one chip")
    whole = ordered == list(range(len(ordered)))
    if whole and len(shape) > 1 and prod(shape) == len(ordered):
        named_shape, known = "x".join(map(str, shape)), find_accelerator(accelerator)
        if known is not None and "torus" in known.fabric:
            x, y, z = (*shape, 1)[:3]
            places = {chip: ChipPlace(chip // (x * y), chip // x % y, chip % x) for chip in ordered}
            planes = ", a plane for each z" if z > 1 else ""
            return ChipLayout(z, y, x, places, "y", f"{named_shape} torus: x to the right, y down{planes}")
        rows = len(ordered) // shape[-1]
        if rows == hosts:
            return _rows(ordered, shape[-1], "host", f"a row a host: {rows} × {shape[-1]} chips")
        return _rows(ordered, shape[-1], "row", f"{named_shape}, row by row")
    if hosts and len(ordered) % hosts == 0:
        note = f"a row a host: {hosts} × {len(ordered) // hosts} chips" if hosts > 1 else "one host"
        return _rows(ordered, len(ordered) // hosts, "host", note)
    note = "how chips stand is not stated: rows in the order of their ordinals"
    if len(shape) > 1:
        note = f"the shape {physical} does not hold these {len(ordered)} chips: rows in the order of their ordinals"
    return _rows(ordered, min(len(ordered), _ROW if len(ordered) <= 64 else 2 * _ROW), "row", note)


def _rows(ordered: Sequence[int], columns: int, word: str, note: str) -> ChipLayout:
    # A host of very many chips is folded, or no page would hold it.
    if columns > 2 * _ROW:
        columns, word = 2 * _ROW, "row"
    columns = max(1, columns)
    places = {chip: ChipPlace(0, index // columns, index % columns) for index, chip in enumerate(ordered)}
    return ChipLayout(1, -(-len(ordered) // columns), columns, places, word, note)


ALIKE: Final = 0.05  # of the largest value: chips that lie closer together than this share one part of the scale
UNCHANGED: Final = 0.01
WORST: Final = {"higher": "leads", "lower": "has the least", "either": "changed the most"}
Worse = Literal["higher", "lower", "either"]


@dataclass(frozen=True)
class Heat:
    """Chips with their values in bytes. A chip of the layout without a value has a row that does not state it.

    ``worse`` says which end is dark: ``lower`` for headroom, ``either`` for a change, where 0 is in the middle and red
    is growth, or what is lost where ``relief`` is ``up``.
    ``limits`` are the chips' limits in bytes. ``leaders`` have the worst value, ``missing`` no row, ``doubled`` two,
    and ``thin`` less headroom than the lane keeps. ``title``, ``about`` and ``note`` are text for people.
    """

    layout: ChipLayout
    values: Mapping[int, float]
    title: str
    about: str
    note: tuple[str, ...] = ()
    worse: Worse = "higher"
    relief: Literal["down", "up"] = "down"
    limits: Mapping[int, float] | None = None
    leaders: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    thin: frozenset[int] = frozenset()

    @property
    def unstated(self) -> frozenset[int]:
        """Chips of the layout whose row does not state the figure."""
        return frozenset(self.layout.places) - self.values.keys() - self.missing

    @property
    def scale(self) -> tuple[float, float]:
        """The ends of the scale in bytes: those of the values, yet so far apart that chips alike look alike."""
        low, high = min(self.values.values(), default=0.0), max(self.values.values(), default=0.0)
        if self.worse == "either":
            base = max((self.limits or {}).values(), default=0.0)
            reach = max(abs(low), abs(high), UNCHANGED * base, 1.0)
            return -reach, reach
        base = max(abs(high), abs(low), *(self.limits or {}).values()) if self.worse == "lower" else abs(high)
        short = max(ALIKE * base, 1.0) - (high - low)
        return (low - short / 2, high + short / 2) if short > 0 else (low, high)

    def share(self, chip: int) -> float | None:
        """Where a chip's value is on the scale: 0 to 1, the worst at 1; a change from -1 to 1."""
        value = self.values.get(chip)
        if value is None:
            return None
        low, high = self.scale
        if self.worse == "either":
            return value / high if self.relief == "down" else -value / high
        place = (value - low) / (high - low)
        return 1.0 - place if self.worse == "lower" else place

    def fullness(self, chip: int) -> float | None:
        """How dark a picture draws a chip, from 0 to 1: how much of its limit is used; of a change how large it is."""
        value = self.values.get(chip)
        if value is None or self.worse == "either":
            share = self.share(chip)
            return None if share is None else abs(share)
        part = value / ((self.limits or {}).get(chip) or max(self.values.values()) or 1.0)
        return 1.0 - part if self.worse == "lower" else part

    def text(self, chip: int) -> str:
        """A chip's value in GiB, with as many digits as tell chips apart; ``~`` where it states none."""
        value = self.values.get(chip)
        return "~" if value is None else self.amount(value)

    def amount(self, value: float) -> str:
        """Bytes in GiB: to a tenth, or to a hundredth where all are below ten; a change has its sign."""
        sign = "+" if self.worse == "either" else ""
        digits = 2 if max((abs(item) for item in self.values.values()), default=0.0) < 10 * GIB else 1
        return f"{value / GIB:{sign}.{digits}f}"


_LINE: Final = 14.0
_HEAD: Final = 52.0  # a title, what the map is of, and how its chips stand
_BETWEEN: Final = 6.0  # planes
_GAP: Final = 14.0
_EDGE: Final = 4.0
_NAMES: Final = 52.0  # names of rows
_TALLEST: Final = 30.0  # a row
_MAX_HEIGHT: Final = 260.0  # pixels of a launch, before its rows become flatter
_FLAT: Final = 8.0
_TEXT: Final = 34.0  # pixels of a cell that holds its value
_PALE, _DARK = 0.08, 0.5  # how full a cell's color is: words on it stay readable on light and on dark ground
_USED, _RELIEF, _BAD = MARKS[1].light, MARKS[0].light, MARKS[7].light


def chip_picture(heat: Heat, name: str) -> str:
    """The SVG element of one launch, or of a change, with a legend and its notes."""
    marks = (
        (heat.leaders, f"outlined: {WORST[heat.worse]}"),
        (heat.thin, "!: less headroom than the lane keeps"),
        (heat.doubled, "×2: two rows, the larger figure is shown"),
        (heat.missing, "dotted: no row"),
        (heat.unstated, "~: not stated"),
    )
    legend = "; ".join(words for chips, words in marks if chips)
    beside, width = (*([legend] if legend else []), *heat.note), 2 * WIDTH
    texts = [part for text in beside for part in textwrap.wrap(text, int(width / 6))]
    planes = heat.layout.planes * (heat.layout.rows * _row(heat) + _BETWEEN)
    height = _HEAD + planes + _GAP + _LINE * len(texts)
    values = ", ".join(f"chip {chip} {heat.text(chip)}" for chip in heat.layout.places if chip in heat.values)
    alt = "; ".join((f"{heat.title}: {values}", *beside))
    paint = partial(_paint, heat, texts)
    return svg.inline_svg(paint, name=name, width=width, height=height, title=heat.title, alt=alt)


def _row(item: Heat) -> float:
    """Pixels of a row."""
    return min(_TALLEST, max(_FLAT, _MAX_HEIGHT / (item.layout.rows * item.layout.planes)))


def _paint(item: Heat, texts: Sequence[str], canvas: Canvas) -> None:
    layout, tall, room = item.layout, _row(item), canvas.width - 2 * _EDGE
    every = max(1, round(12.0 / tall))  # of flat rows every so many have a name
    wide = (canvas.width - _NAMES - _EDGE) / layout.columns
    canvas.label(_EDGE, 10.0, cut(item.title, room), bold=True)
    for at, text in enumerate((item.about, layout.note)):
        canvas.label(_EDGE, 25.0 + at * _LINE, cut(text, room, SMALL), size=SMALL, colour=FAINT)
    for plane, row in product(range(layout.planes), range(layout.rows)):
        y = _HEAD + plane * (layout.rows * tall + _BETWEEN) + row * tall
        if row % every == 0:
            where = f"z {plane} " if layout.planes > 1 else ""
            name = f"{where}{layout.row_word} {row}"
            canvas.label(_NAMES - 6.0, y + tall / 2, name, ha="right", size=SMALL, colour=FAINT)
        for chip in layout.chips(plane, row):
            x = _NAMES + layout.places[chip].column * wide
            _cell(canvas, item, chip, (x + 1.0, y + 1.0, wide - 2.0, tall - 2.0))
    below = _HEAD + layout.planes * (layout.rows * tall + _BETWEEN) + _GAP
    for at, text in enumerate(texts):
        canvas.label(_EDGE, below + at * _LINE, text, size=SMALL)


def _cell(canvas: Canvas, item: Heat, chip: int, box: tuple[float, float, float, float]) -> None:
    x, y, wide, tall = box
    full = item.fullness(chip)
    if full is None:
        canvas.boxes([box], edge=LINE, dash=DOTTED)
    else:
        grew = item.worse == "either" and (item.share(chip) or 0.0) > 0.0
        fill = _BAD if chip in item.thin or grew else _RELIEF if item.worse == "either" else _USED
        depth = min(1.0, max(0.0, full)) ** (1 if item.worse == "either" else 3)
        canvas.boxes([box], fill=fill, alpha=_PALE + (_DARK - _PALE) * depth)
    if chip in item.leaders:
        canvas.boxes([(x + 0.5, y + 0.5, wide - 1.0, tall - 1.0)], edge=INK)
    if tall >= _LINE:
        thin = "!" if chip in item.thin else ""
        amount, twice = "" if chip in item.missing else item.text(chip), " ×2" if chip in item.doubled else ""
        text = f"{amount}{thin}{twice}" if wide >= _TEXT else thin
        canvas.label(x + wide / 2, y + tall / 2, text, ha="center", size=SMALL)
