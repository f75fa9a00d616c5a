"""Rate and MFU over sequence length: what is proven filled, what is reported hollow, ceilings under a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from receipts.publish.pictures import inline, legend
from receipts.publish.pictures.canvas import Canvas
from receipts.publish.pictures.legend import LEFT, RIGHT, WIDTH
from receipts.publish.pictures.panel import BELOW, Panel, Scale, below, frame, upward

Grade = Literal["validated", "repeated", "peak"]
FEWEST: Final = 3  # two points are two numbers, and no picture
LENGTHS: Final = 2  # at one length there is no course
_HEIGHTS: Final = {"rate": 150.0, "mfu": 110.0}
_TITLES: Final = {"rate": "tokens/s/chip", "mfu": "MFU, %"}
_TOP: Final = 30.0
_BARS: Final = {"validated": 2, "repeated": 1}  # over a mark
_APART: Final = 7.0  # pixels between series at one length


@dataclass(frozen=True, slots=True)
class SequencePoint:
    """One result. ``rate`` is in tokens a second a chip, ``mfu`` a fraction; None is not known.

    ``low`` to ``high`` is the interval of the rate over launches of the same configuration, None where they are few.
    ``grade`` says how often the shape was sustained; None where nobody counted.
    """

    series: str
    length: int
    rate: float | None
    mfu: float | None
    accepted: bool
    low: float | None = None
    high: float | None = None
    grade: Grade | None = None

    def read(self, kind: str) -> float | None:
        """The rate, or the MFU in percent."""
        if kind == "rate":
            return self.rate
        return None if self.mfu is None else self.mfu * 100

    def interval(self, kind: str) -> tuple[float, float] | None:
        """The interval of either. An MFU is the rate over what does not vary, so both have the same shape."""
        value = self.read(kind)
        if self.low is None or self.high is None or not self.rate or value is None:
            return None
        return self.low / self.rate * value, self.high / self.rate * value


def shown(points: Sequence[SequencePoint]) -> tuple[list[SequencePoint], list[str]]:
    """The points that are drawn, and their series: those with most points, accepted first; a mark for each."""
    drawn = [item for item in points if item.length > 0 and (item.rate is not None or item.mfu is not None)]
    names = list(dict.fromkeys(item.series for item in drawn))
    count = {name: sum(1 + item.accepted for item in drawn if item.series == name) for name in names}
    kept = sorted(sorted(names, key=lambda name: -count[name])[: legend.MOST], key=names.index)
    return [item for item in drawn if item.series in kept], kept


def picture(points: Sequence[SequencePoint], *, name: str, title: str) -> str | None:
    """The SVG element, or None where there are fewer than three points, or one length. ``name`` starts its ids."""
    drawn, names = shown(points)
    kinds = [kind for kind in _HEIGHTS if any(item.read(kind) is not None for item in drawn)]
    if len(drawn) < FEWEST or len({item.length for item in drawn}) < LENGTHS:
        return None
    height = sum(_TOP + _HEIGHTS[kind] for kind in kinds) + BELOW + legend.height(names)
    paint = partial(_paint, drawn, names, kinds)
    return inline.svg(paint, name=name, width=WIDTH, height=height, title=title, alt=_alt_of(drawn))


def _alt_of(points: Sequence[SequencePoint]) -> str:
    parts = []
    for item in points:
        numbers = [f"{item.rate:,.0f} tokens/s/chip"] if item.rate is not None else []
        numbers += [f"MFU {item.mfu * 100:.1f} %"] if item.mfu is not None else []
        how = "proven" if item.accepted else "reported"
        parts.append(f"{item.series} at {item.length:,} tokens: {', '.join(numbers)}, {how}")
    return "; ".join(parts[:24])


def _paint(points: Sequence[SequencePoint], names: Sequence[str], kinds: Sequence[str], canvas: Canvas) -> None:
    lengths = sorted({item.length for item in points})
    low, high = lengths[0], lengths[-1]
    # Half an octave on both sides, so that no mark is on an edge.
    x = Scale(low / 2**0.5, high * 2**0.5, log=True)
    width, top = WIDTH - LEFT - RIGHT, 0.0
    for kind in kinds:
        values = [value for item in points for value in _values(item, kind)]
        marks = upward(values)
        panel = Panel(LEFT, top + _TOP, width, _HEIGHTS[kind], x, Scale(marks[0], marks[-1]))
        frame(canvas, panel, title=_TITLES[kind], ticks=marks)
        _series(canvas, panel, points, names, kind)
        top = panel.bottom
    below(canvas, panel, [(length, _tokens(length)) for length in lengths], "sequence length, tokens (log scale)")
    legend.draw(canvas, names, panel.bottom + BELOW)


def _values(item: SequencePoint, kind: str) -> list[float]:
    value, interval = item.read(kind), item.interval(kind)
    return [part for part in (value, *(interval or ())) if part is not None]


def _series(canvas: Canvas, panel: Panel, points: Sequence[SequencePoint], names: Sequence[str], kind: str) -> None:
    for index, name in enumerate(names):
        mark = legend.mark_of(index)
        aside = (index - (len(names) - 1) / 2) * min(_APART, 40.0 / len(names))
        drawn = [(item, value) for item in points if item.series == name and (value := item.read(kind)) is not None]
        places = {id(item): panel.at(item.length, value) for item, value in drawn}
        for accepted in (True, False):
            wanted = [places[id(item)] for item, _ in drawn if item.accepted is accepted]
            canvas.marks([(x + aside, y) for x, y in wanted], mark, hollow=not accepted)
        for item, _ in drawn:
            x, y = places[id(item)]
            interval = item.interval(kind)
            if interval is not None:
                low, high = (panel.at(item.length, end)[1] for end in interval)
                canvas.whisker(x + aside, low, high, mark.light)
            heights = [y - 8.0 - 3.0 * bar for bar in range(_BARS.get(item.grade or "", 0))]
            canvas.segments([((x + aside - 6.0, up), (x + aside + 6.0, up)) for up in heights], colour=mark.light)


def _tokens(length: int) -> str:
    for size, letter in ((2**20, "M"), (2**10, "K")):
        if length % size == 0:
            return f"{length // size}{letter}"
    return f"{length:,}"
