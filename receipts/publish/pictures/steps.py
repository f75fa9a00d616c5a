"""What launches did in time: steps of one, or of two over each other, and the numbers of all of a comparison in turns.

Steps stand on the scale of what is steady, outliers at its edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.publish.pictures import svg
from receipts.publish.pictures.svg import (
    BELOW,
    FAINT,
    MARKS,
    SMALL,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    draw_legend,
    frame,
    legend_height,
    nice,
)

if TYPE_CHECKING:
    from receipts.metrics import Launch

HEIGHT: Final = 180.0
MAX_POINTS: Final = 400  # of more steps the slowest of each stretch is drawn
_LEFT: Final = 60.0
_TOP: Final = 44.0
_NOTE: Final = 30.0  # above the plot and its title: what is beyond its edge
_UNITS: Final = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
_ROOM: Final = 0.5  # of the spread of what is steady, above and below it


class Trace(NamedTuple):
    """Seconds of each step of a launch, and the numbers of those that are steady."""

    name: str
    seconds: Sequence[float]
    steady: Sequence[int]

    @classmethod
    def of(cls, launch: Launch, name: str = "") -> Trace:
        """The steps of a launch, those steady that its steady segment keeps."""
        segment, seconds = launch.segment, launch.durations
        steady = segment.of(range(len(seconds))) if segment is not None and segment.status == "steady" else []
        return cls(name, seconds, steady)

    @property
    def slowest(self) -> list[int]:
        """The slowest step of each stretch of steps."""
        stretch = -(-len(self.seconds) // MAX_POINTS)
        starts = range(0, len(self.seconds), stretch)
        ends = ((at, min(at + stretch, len(self.seconds))) for at in starts)
        return [max(range(*end), key=self.seconds.__getitem__) for end in ends]


def steps_picture(traces: Sequence[Trace], *, name: str, title: str) -> str | None:
    """Milliseconds by step, those of a lone launch that are steady shaded; None for fewer than two steps."""
    if any(len(item.seconds) < 2 or max(item.seconds) <= 0 for item in traces):
        return None
    alt = "; ".join(
        f"{len(item.seconds)} steps, the slowest {max(item.seconds) * 1e3:.4g} ms"
        + (f"; {len(item.steady)} of them are steady" if item.steady else "")
        for item in traces
    )
    names = [item.name for item in traces] if len(traces) > 1 else []

    def paint(canvas: Canvas) -> None:
        _paint(canvas, traces)
        draw_legend(canvas, names, HEIGHT)

    height = HEIGHT + legend_height(names)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=alt)


class Ran(NamedTuple):
    """A launch of a side: seconds from the first start to its own, and its number."""

    side: int
    at: float
    value: float


def launches_picture(launches: Sequence[Ran], names: Sequence[str], axis: str, *, name: str) -> str | None:
    """The numbers of both sides' launches, in the order in which they ran; None for fewer than two."""
    if len(launches) < 2:
        return None
    last = max(item.at for item in launches)
    unit, seconds = next(((word, size) for word, size in _UNITS if last >= 2 * size), _UNITS[-1])
    ticks = nice(min(item.value for item in launches), max(item.value for item in launches), 4)
    places = nice(0.0, max(last / seconds, 1.0), 6)
    size = (WIDTH - _LEFT - 12.0, HEIGHT - _TOP - BELOW)
    plot = Panel(_LEFT, _TOP, *size, Scale(places[0], places[-1]), Scale(ticks[0], ticks[-1]))

    def paint(canvas: Canvas) -> None:
        frame(canvas, plot, title=axis, ticks=ticks)
        for side, mark in enumerate(MARKS[: len(names)]):
            canvas.marks([plot.at(one.at / seconds, one.value) for one in launches if one.side == side], mark)
        below(canvas, plot, [(at, f"{at:g}") for at in places], f"{unit} from the first start")
        draw_legend(canvas, names, HEIGHT)

    alt = "; ".join(f"{names[item.side]}: {item.value:,.4g}" for item in launches)
    height = HEIGHT + legend_height(names)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title="Launches in turns", alt=alt)


def _paint(canvas: Canvas, traces: Sequence[Trace]) -> None:
    ticks = _ticks(traces)
    size = (WIDTH - _LEFT - 12.0, HEIGHT - _TOP - BELOW)
    last = max(len(item.seconds) for item in traces) - 1.0
    plot = Panel(_LEFT, _TOP, *size, Scale(0.0, last), Scale(ticks[0], ticks[-1]))
    if len(traces) == 1:
        ends = [(plot.at(start, 0.0)[0], plot.at(stop, 0.0)[0]) for start, stop in _stretches(traces[0].steady)]
        shades = [(left, plot.top, max(1.0, right - left), plot.height) for left, right in ends]
        canvas.boxes(shades, fill=MARKS[0].light, alpha=0.15)
    begins = f" (axis from {ticks[0]:g})" if ticks[0] else ""
    frame(canvas, plot, title=f"step time, ms{begins}", ticks=ticks)
    beyond: list[float] = []
    for item, mark in zip(traces, MARKS, strict=False):
        values = [(at, item.seconds[at] * 1e3) for at in item.slowest]
        inside = [(at, min(max(value, ticks[0]), ticks[-1])) for at, value in values]
        canvas.line([plot.at(at, value) for at, value in inside], colour=mark.light, width=1.2)
        outside = [(at, value) for at, value in values if value > ticks[-1]]
        canvas.marks([plot.at(at, ticks[-1]) for at, _ in outside], MARKS[7], size=5.0)
        beyond += [value for _, value in outside]
    if beyond:
        steps = "1 slower step" if len(beyond) == 1 else f"{len(beyond)} slower steps"
        text = f"{steps} at the edge, up to {max(beyond):,.4g} ms"
        canvas.label(plot.right, plot.top - _NOTE, text, ha="right", size=SMALL, colour=FAINT)
    places = [at for at in nice(0.0, last, 6) if at <= last and at == int(at)]
    below(canvas, plot, [(at, f"{at:,.0f}") for at in places], "step")


def _ticks(traces: Sequence[Trace]) -> list[float]:
    """The scale of what is steady, with room on both sides; of everything where nothing is."""
    steady = sorted(item.seconds[at] * 1e3 for item in traces for at in item.steady)
    every = [value * 1e3 for item in traces for value in item.seconds]
    if not steady:
        return [value for value in nice(0.0, max(every), 4) if value >= 0.0]
    low, high = steady[len(steady) // 100], steady[-1 - len(steady) // 100]
    room = max((high - low) * _ROOM, high * 0.02)
    lowest, highest = max(min(every), low - room), min(max(every), high + room)
    return [value for value in nice(min(lowest, low), max(highest, high), 4) if value >= 0.0]


def _stretches(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of steps that follow each other, each with its first and last."""
    start = 0
    for at in range(1, len(steps) + 1):
        if at == len(steps) or steps[at] != steps[at - 1] + 1:
            yield steps[start], steps[at - 1]
            start = at
