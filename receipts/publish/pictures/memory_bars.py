"""Memory geometry as a stacked bar: every surface against the budget, in a terminal and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from receipts.base.units import amount
from receipts.publish.pictures import svg
from receipts.publish.pictures.svg import FAINT, INK, LINE, PAPER, SMALL, Canvas, category, ink_on

# Signs of a terminal without colour: neighbours differ in ink, and each is beside its surface in the legend.
SIGNS = "█▓▒░▚▞▤▥▦▧▨▩◆◇◈"
_WIDTH, _ROW, _EDGE = 720.0, 16.0, 20.0
_BAR, _TOP, _BETWEEN = 34.0, 64.0, 86.0  # a bar, where the first one is, and from one to the next
_SMALLEST_SHARE = 0.08  # of the bar: narrower parts have their name in the legend only


@dataclass(frozen=True, slots=True)
class BarPart:
    """One surface of a bar, in bytes. ``colour`` is its place among categories, the same in every bar."""

    name: str
    bytes: float
    colour: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One estimate. ``budget`` and ``measured`` are marks in bytes, or None."""

    title: str
    parts: tuple[BarPart, ...]
    budget: float | None = None
    measured: float | None = None

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def reach(self) -> float:
        """The largest of the bar and its marks."""
        return max(self.total, self.budget or 0.0, self.measured or 0.0)


def cells(bar: Bar, width: int, reach: float | None = None) -> list[tuple[str, int]]:
    """Signs with their number of cells, left to right: each part's share of ``width`` at a scale of ``reach`` bytes.

    Ends are rounded and not lengths, so that the parts together are as long as their sum.
    """
    scale = width / (reach or bar.reach or 1.0)
    spans, start, sum_ = [], 0, 0.0
    for part in bar.parts:
        sum_ += part.bytes
        end = round(sum_ * scale)
        if end > start:
            spans.append((SIGNS[part.colour % len(SIGNS)], end - start))
        start = max(start, end)
    return spans


def text_bar(bar: Bar, width: int, reach: float | None = None) -> list[str]:
    """The bar in signs, and under it the places of budget (``│``) and measured peak (``▲``), a line each."""
    scale = width / (reach or bar.reach or 1.0)
    lines = ["".join(sign * count for sign, count in cells(bar, width, reach))]
    for value, name, sign in ((bar.budget, "budget", "│"), (bar.measured, "measured", "▲")):
        if value:
            at = min(width, round(value * scale))
            lines.append(f"{name} {sign}".rjust(at + 1) if at > len(name) else f"{sign.rjust(at + 1)} {name}")
    return lines


def geometry(bars: Sequence[Bar], *, name: str, title: str, alt: str) -> str:
    """SVG of one or more bars on one scale, with a legend that gives every surface its bytes."""
    names = list({part.name: part for bar in bars for part in bar.parts if part.bytes > 0}.values())
    height = _TOP + _BETWEEN * len(bars) + 8 + _ROW * (len(names) + 1) + 16
    paint = partial(_paint, bars, names, title)
    return svg.inline_svg(paint, name=name, width=_WIDTH, height=height, title=title, alt=alt)


def _paint(bars: Sequence[Bar], names: Sequence[BarPart], title: str, canvas: Canvas) -> None:
    canvas.label(_EDGE, 22.0, title, bold=True)
    reach = max(bar.reach for bar in bars) or 1.0
    for index, bar in enumerate(bars):
        _bar(canvas, bar, _TOP + _BETWEEN * index, reach)
    top = _TOP + _BETWEEN * len(bars) + 8
    canvas.line([(_EDGE, top - 6), (_WIDTH - _EDGE, top - 6)], colour=LINE, width=0.8)
    for row, part in enumerate(names):
        y = top + _ROW * (row + 0.6)
        canvas.boxes([(_EDGE, y - 4.5, 9, 9)], fill=category(part.colour))
        canvas.label(_EDGE + 16, y, part.name)
        for column, bar in enumerate(bars):
            held = sum(other.bytes for other in bar.parts if other.name == part.name)
            canvas.label(_EDGE + 330 + 110 * column, y, amount(held, like=bar.total), ha="right")


def _bar(canvas: Canvas, bar: Bar, top: float, reach: float) -> None:
    scale = (_WIDTH - 2 * _EDGE) / reach
    canvas.label(_EDGE, top - 10, f"{bar.title}: {amount(bar.total)}")
    x = _EDGE
    for part in bar.parts:
        length = part.bytes * scale
        if length <= 0:
            continue
        colour = category(part.colour)
        canvas.boxes([(x, top, length, _BAR)], fill=colour, edge=PAPER)
        if part.bytes >= _SMALLEST_SHARE * reach:
            text = amount(part.bytes, like=reach).partition(" ")[0]
            canvas.label(x + length / 2, top + _BAR / 2, text, ha="center", colour=ink_on(colour))
        x += length
    for value, name, shift in ((bar.budget, "budget", 12.0), (bar.measured, "measured", 24.0)):
        if value:
            at = _EDGE + value * scale
            canvas.boxes([(at - 0.75, top - 4, 1.5, _BAR + 8)], fill=INK)
            end = "right" if at > _WIDTH * 0.8 else "left"
            canvas.label(at, top + _BAR + shift, f"{name} {amount(value)}", size=SMALL, colour=FAINT, ha=end)
