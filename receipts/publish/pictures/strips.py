"""Memory by chip in a strip for each launch: what was in use, the live peak and the pool against the chip's limit.

A row is a chip, the tightest first. Lengths are shares of each chip's own limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from receipts.base.units import GIB
from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import SMALL, Canvas, cut
from receipts.publish.pictures.colours import FAINT, INK, LINE
from receipts.publish.pictures.legend import WIDTH
from receipts.publish.pictures.marks import MARKS
from receipts.publish.pictures.panel import BELOW, Panel, Scale, below

_LEFT: Final = 60.0
_RIGHT: Final = 22.0
_HEAD: Final = 20.0  # over the rows of a launch: its name, and the tightest chip's amounts
_AMOUNTS: Final = 150.0
_ROW: Final = 13.0
_MOST: Final = 130.0  # pixels of a launch: rows of more than ten chips are thinner
_NAMED: Final = 9.0  # pixels: thinner rows have no name of their own
_SEEN: Final = 3.0  # pixels: a lone chip among hundreds is to be seen
_GAP: Final = 12.0
_KEY: Final = 44.0
FIGURES: Final = ("used", "peak", "pool")
_USED: Final = MARKS[5].light
_LOOKS: Final[Mapping[str, Any]] = {
    "peak": {"colour": MARKS[0].light, "width": 4.0},
    "pool": {"colour": MARKS[1].light, "width": 1.8, "dash": (0, (2.0, 1.5))},
    "limit": {"colour": INK, "width": 1.8},
    "wanted": {"colour": FAINT, "width": 1.0},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One chip, in bytes; None is not stated. Without a limit a chip has no place on the scale."""

    chip: int
    used: int | None
    peak: int | None
    pool: int | None
    limit: int | None

    def share(self, what: str) -> float | None:
        """A figure over the limit."""
        value: int | None = getattr(self, what)
        return value / self.limit if value is not None and self.limit else None

    @property
    def tight(self) -> float:
        """What orders rows: the live peak, else the pool, else what was in use, over the limit."""
        found = [self.share(what) for what in ("peak", "pool", "used")]
        return next((value for value in found if value is not None), 0.0)


@dataclass(frozen=True, slots=True)
class Strip:
    """One launch in one phase. ``wanted`` is the share of its limit that the lane wants a chip to keep."""

    title: str
    chips: tuple[Row, ...]
    wanted: float

    @property
    def ordered(self) -> list[Row]:
        """Chips that have a place on the scale, the tightest first."""
        return sorted((item for item in self.chips if item.limit), key=lambda item: (-item.tight, item.chip))


def picture(strips: Sequence[Strip], *, name: str, title: str) -> str | None:
    """The SVG element, or None where no chip states its limit."""
    kept = [item for item in strips if item.ordered]
    if not kept:
        return None
    height = _KEY + sum(_HEAD + _tall(item) + _GAP for item in kept) + BELOW
    says = "; ".join(_says(item) for item in kept)
    return inline.svg(partial(_paint, kept), name=name, width=WIDTH, height=height, title=title, says=says)


def _tall(item: Strip) -> float:
    return min(_MOST, _ROW * len(item.ordered))


def _says(item: Strip) -> str:
    return f"{item.title}: tightest chip {item.ordered[0].chip}, {_amounts(item.ordered[0])}"


def _amounts(row: Row) -> str:
    named = (("live peak", row.peak), ("pool peak", row.pool), ("in use", row.used))
    word, value = next(((word, value) for word, value in named if value is not None), ("", 0))
    return f"{word} {value / GIB:.2f} of {(row.limit or 0) / GIB:.2f} GiB"


def _paint(strips: Sequence[Strip], canvas: Canvas) -> None:
    _key(canvas)
    reach = max(1.0, *(row.share(what) or 0.0 for item in strips for row in item.ordered for what in FIGURES))
    x = Scale(0.0, reach)
    top = _KEY
    for item in strips:
        plot = Panel(_LEFT, top + _HEAD, WIDTH - _LEFT - _RIGHT, _tall(item), x, Scale(0.0, 1.0))
        _strip(canvas, plot, item)
        top = plot.bottom + _GAP
    plot = Panel(_LEFT, _KEY, WIDTH - _LEFT - _RIGHT, top - _KEY, x, Scale(0.0, 1.0))
    marks = [(value / 100, f"{value}") for value in (0, 25, 50, 75, 100)]
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, marks, "% of the chip's limit")


def _key(canvas: Canvas) -> None:
    upper, lower = 9.0, 27.0
    canvas.boxes([(4.0, upper - 5.0, 14.0, 10.0)], fill=_USED, alpha=0.4)
    for x, y, look, text in (
        (91.0, upper, _LOOKS["peak"], "live peak"),
        (181.0, upper, _LOOKS["pool"], "pool peak"),
        (11.0, lower, _LOOKS["limit"], "limit"),
        (91.0, lower, _LOOKS["wanted"], "beyond this line a chip keeps less than its lane wants"),
    ):
        canvas.uprights([(x, y - 6.0, y + 6.0)], **look)
        canvas.label(x + 11.0, y, text, size=SMALL)
    canvas.label(24.0, upper, "in use", size=SMALL)


def _strip(canvas: Canvas, plot: Panel, item: Strip) -> None:
    rows = item.ordered
    tall = plot.height / len(rows)
    gap = 1.0 if tall >= _NAMED else 0.0
    canvas.label(4.0, plot.top - 9.0, cut(item.title, WIDTH - _AMOUNTS - 40.0, SMALL), size=SMALL, bold=True)
    canvas.label(WIDTH - 4.0, plot.top - 9.0, _amounts(rows[0]), ha="right", size=SMALL, colour=FAINT)
    canvas.boxes([(plot.left, plot.top, plot.at(1.0, 0.0)[0] - plot.left, plot.height - gap)], fill=LINE, alpha=0.35)
    spans: dict[str, list[tuple[float, float, float]]] = {what: [] for what in FIGURES}
    for index, row in enumerate(rows):
        top = plot.top + index * tall
        for what, found in spans.items():
            share = row.share(what)
            if share is not None:
                found.append((plot.at(share, 0.0)[0], top, top + max(_SEEN, tall - gap)))
    canvas.boxes([(plot.left, top, x - plot.left, end - top) for x, top, end in spans["used"]], fill=_USED, alpha=0.4)
    canvas.uprights(spans["pool"], **_LOOKS["pool"])
    canvas.uprights(spans["peak"], **_LOOKS["peak"])
    for share, look in ((1.0, _LOOKS["limit"]), (1.0 - item.wanted, _LOOKS["wanted"])):
        canvas.uprights([(plot.at(share, 0.0)[0], plot.top, plot.bottom - gap)], **look)
    _names(canvas, plot, rows, tall)


def _names(canvas: Canvas, plot: Panel, rows: Sequence[Row], tall: float) -> None:
    """Ordinals beside their rows; of rows too thin for one, those of the tightest and of the last."""
    ends = {0: plot.top + 5.0, len(rows) - 1: plot.bottom - 6.0}
    places = {index: plot.top + (index + 0.5) * tall for index in range(len(rows))} if tall >= _NAMED else ends
    for index, y in places.items():
        canvas.label(plot.left - 6.0, y, f"chip {rows[index].chip}", ha="right", size=SMALL, colour=FAINT)
