"""Memory geometry as a stacked bar: every surface against the budget, in a terminal and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.base.units import amount
from receipts.publish.pictures.colours import FAINT, INK, LINE, category, of
from receipts.publish.pictures.figure import SMALL, TITLE, canvas, label, rectangle, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Signs of a terminal without colour: neighbours differ in ink, and each stands beside its surface in the legend.
SIGNS = "█▓▒░▚▞▤▥▦▧▨▩◆◇◈"
_WIDTH, _ROW, _LEFT, _RIGHT = 720.0, 16.0, 20.0, 20.0
_BAR, _TOP, _GAP = 34.0, 64.0, 30.0
_SMALLEST_SHARE = 0.08  # of the bar: narrower parts have their name in the legend only


@dataclass(frozen=True, slots=True)
class Part:
    """One surface of a bar, in bytes. ``colour`` is its place among categories, the same in every bar."""

    name: str
    bytes: float
    colour: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One estimate. ``budget`` and ``measured`` are marks in bytes, or None."""

    title: str
    parts: tuple[Part, ...]
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
    found, start, sum_ = [], 0, 0.0
    for part in bar.parts:
        sum_ += part.bytes
        end = round(sum_ * scale)
        if end > start:
            found.append((SIGNS[part.colour % len(SIGNS)], end - start))
        start = max(start, end)
    return found


def text_bar(bar: Bar, width: int, reach: float | None = None) -> list[str]:
    """The bar in signs, and under it a line with the places of budget (``│``) and measured peak (``▲``)."""
    scale = width / (reach or bar.reach or 1.0)
    lines = ["".join(sign * count for sign, count in cells(bar, width, reach))]
    marks = [" "] * (width + 1)
    for value, sign in ((bar.budget, "│"), (bar.measured, "▲")):
        if value:
            marks[min(width, round(value * scale))] = sign
    if any(sign != " " for sign in marks):
        lines.append("".join(marks).rstrip())
    return lines


def geometry(bars: Sequence[Bar], *, title: str, says: str) -> str:
    """SVG of one or more bars on one scale, with a legend that gives every surface its bytes."""
    names = list({part.name: part for bar in bars for part in bar.parts if part.bytes > 0}.values())
    bar_height = _BAR + _GAP + 22
    legend = _TOP + bar_height * len(bars) + 8
    height = legend + _ROW * (len(names) + 1) + 16

    def paint(figure: Figure) -> None:
        axes = canvas(figure, _WIDTH, height)
        label(axes, _LEFT, 22, title, size=TITLE, color=INK, weight="bold")
        reach = max(bar.reach for bar in bars) or 1.0
        for index, bar in enumerate(bars):
            _bar(axes, bar, _TOP + bar_height * index, reach)
        _legend(axes, bars, names, legend)

    return svg(paint, width=_WIDTH, height=height, title=title, says=says)


def _bar(axes: Axes, bar: Bar, top: float, reach: float) -> None:
    scale = (_WIDTH - _LEFT - _RIGHT) / reach
    label(axes, _LEFT, top - 10, f"{bar.title}: {amount(bar.total)}", color=INK)
    x = _LEFT
    for part in bar.parts:
        length = part.bytes * scale
        if length <= 0:
            continue
        colour = category(part.colour)
        rectangle(axes, x, top, length, _BAR, colour, edgecolor="#ffffff", linewidth=0.5)
        if part.bytes >= _SMALLEST_SHARE * reach:
            label(
                axes,
                x + length / 2,
                top + _BAR / 2,
                amount(part.bytes, like=reach).partition(" ")[0],
                ha="center",
                color=of(colour).ink,
            )
        x += length
    for value, name, shift in ((bar.budget, "budget", 12.0), (bar.measured, "measured", 24.0)):
        if value:
            at = _LEFT + value * scale
            rectangle(axes, at - 0.75, top - 4, 1.5, _BAR + 8, INK)
            end = "right" if at > _WIDTH * 0.8 else "left"
            label(axes, at, top + _BAR + shift, f"{name} {amount(value)}", size=SMALL, color=FAINT, ha=end)


def _legend(axes: Axes, bars: Sequence[Bar], names: Sequence[Part], top: float) -> None:
    rectangle(axes, _LEFT, top - 6, _WIDTH - _LEFT - _RIGHT, 0.8, LINE)
    for row, part in enumerate(names):
        y = top + _ROW * (row + 0.6)
        rectangle(axes, _LEFT, y - 4.5, 9, 9, category(part.colour))
        label(axes, _LEFT + 16, y, part.name, color=INK)
        for column, bar in enumerate(bars):
            held = sum(other.bytes for other in bar.parts if other.name == part.name)
            label(axes, _LEFT + 330 + 110 * column, y, amount(held, like=bar.total), ha="right", color=INK)
