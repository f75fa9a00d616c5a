"""Memory by chip over the physical topology, in the page's colours: for reports and for ``receipts chips --svg``.

The darker a cell, the more of its limit a chip used; of a change, the larger it is. Red is a chip that keeps less than
its lane wants (with a ``!``), or one whose pressure grew; blue is relief. The chips with the worst value are outlined.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import DOTTED, SMALL, Canvas, cut
from receipts.publish.pictures.colours import FAINT, INK, LINE
from receipts.publish.pictures.heat import WORST, Heat
from receipts.publish.pictures.legend import WIDTH
from receipts.publish.pictures.marks import MARKS

FEWEST: Final = 2  # a lone chip is a number
_LINE: Final = 14.0
_HEAD: Final = 24.0  # a title, and half a line below the head
_GAP: Final = 14.0
_EDGE: Final = 4.0
_NAMES: Final = 52.0  # names of rows
_TALLEST: Final = 30.0  # a row
_MOST: Final = 260.0  # pixels of a launch, before its rows become flatter
_FLAT: Final = 8.0
_TEXT: Final = 34.0  # pixels of a cell that holds its value
_PALE, _DARK = 0.08, 0.5  # how full a cell's color is: words on it stay readable on light and on dark ground
_USED, _RELIEF, _BAD = MARKS[1].light, MARKS[0].light, MARKS[7].light


def file_map(heat: Heat) -> str:
    """The SVG element of one launch, or of a change, for a file: with a legend and the sentences of ``says``."""
    return _svg([heat], name="chips", title=heat.title, width=2 * WIDTH, beside=_sentences(heat))


def picture(maps: Sequence[Heat], *, name: str, title: str) -> str | None:
    """The SVG element, or None where no launch has two chips with a value."""
    kept = [item for item in maps if len(item.values) >= FEWEST]
    return _svg(kept, name=name, title=title, width=WIDTH) if kept else None


def _svg(maps: Sequence[Heat], *, name: str, title: str, width: float, beside: Sequence[str] = ()) -> str:
    texts = [part for text in beside for part in textwrap.wrap(text, int(width / 6))]
    height = sum(_height(item) + _GAP for item in maps) + _LINE * len(texts)
    alt = "; ".join((*map(_alt_of, maps), *beside))
    return inline.svg(partial(_paint, maps, texts), name=name, width=width, height=height, title=title, alt=alt)


def _alt_of(item: Heat) -> str:
    values = ", ".join(f"chip {chip} {item.text(chip)}" for chip in item.layout.places if chip in item.values)
    return f"{item.title}: {values}"


def _sentences(heat: Heat) -> tuple[str, ...]:
    marks = (
        (heat.leaders, f"outlined: {WORST[heat.worse]}"),
        (heat.thin, "!: less headroom than the lane keeps"),
        (heat.doubled, "×2: two rows, the larger figure is shown"),
        (heat.missing, "dotted: no row"),
        (any(chip not in heat.values for chip in set(heat.layout.places) - heat.missing), "~: not stated"),
    )
    return (*filter(None, ["; ".join(words for holds, words in marks if holds)]), *heat.note)


def _row(item: Heat) -> float:
    """Pixels of a row."""
    return min(_TALLEST, max(_FLAT, _MOST / (item.layout.rows * item.layout.planes)))


def _head(item: Heat) -> float:
    """Pixels of a title, what the map is of, and how its chips stand."""
    return _HEAD + _LINE * (2 if item.about else 1)


def _height(item: Heat) -> float:
    return _head(item) + item.layout.planes * (item.layout.rows * _row(item) + 6.0)


def _paint(maps: Sequence[Heat], texts: Sequence[str], canvas: Canvas) -> None:
    top, room = 0.0, canvas.width - 2 * _EDGE
    for item in maps:
        canvas.label(_EDGE, top + 10.0, cut(item.title, room), bold=True)
        for at, text in enumerate(filter(None, (item.about, item.layout.note))):
            canvas.label(_EDGE, top + 25.0 + at * _LINE, cut(text, room, SMALL), size=SMALL, colour=FAINT)
        for plane in range(item.layout.planes):
            _plane(canvas, item, plane, top + _head(item) + plane * (item.layout.rows * _row(item) + 6.0))
        top += _height(item) + _GAP
    for at, text in enumerate(texts):
        canvas.label(_EDGE, top + at * _LINE, text, size=SMALL)


def _plane(canvas: Canvas, item: Heat, plane: int, top: float) -> None:
    layout, tall = item.layout, _row(item)
    wide = (canvas.width - _NAMES - _EDGE) / layout.columns
    for row in range(layout.rows):
        y = top + row * tall
        # Of flat rows every so many have a name.
        every = max(1, round(12.0 / tall))
        if row % every == 0:
            where = f"z {plane} " if layout.planes > 1 else ""
            name = f"{where}{layout.row_word} {row}"
            canvas.label(_NAMES - 6.0, y + tall / 2, name, ha="right", size=SMALL, colour=FAINT)
        for chip in layout.chips(plane, row):
            x = _NAMES + layout.places[chip].column * wide
            _cell(canvas, item, chip, (x + 1.0, y + 1.0, wide - 2.0, tall - 2.0))


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
        text = "".join(_texts(item, chip)) if wide >= _TEXT else "!" if chip in item.thin else ""
        canvas.label(x + wide / 2, y + tall / 2, text, ha="center", size=SMALL)


def _texts(item: Heat, chip: int) -> Iterator[str]:
    yield "" if chip in item.missing else item.text(chip)
    yield "!" if chip in item.thin else ""
    yield " ×2" if chip in item.doubled else ""
