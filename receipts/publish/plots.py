"""What launches did, as plots: their steps and numbers in time, and effects with their intervals.

Steps of one launch, or of two over each other, stand on the scale of what is steady, outliers at its edge. Effects have
a row each, against the band of ±δ within which a difference does not matter: a comparison has one of its metrics, the
report one of each lane's comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts import metrics
from receipts.base.units import signed
from receipts.base.untrusted_text import plain
from receipts.publish import svg
from receipts.publish.page import Figure
from receipts.publish.svg import (
    BELOW,
    FAINT,
    INK,
    LINE,
    MARKS,
    SMALL,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    cut,
    draw_legend,
    frame,
    legend_height,
    nice,
    tick_label,
)

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison
    from receipts.metrics import Launch
    from receipts.questions.week.data import JudgedPair


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


MIN_EFFECTS: Final = 2  # a lone effect is a line of the table
MAX_EFFECTS: Final = 16
_FOREST_LEFT: Final = 12.0
_RIGHT: Final = 24.0
_FOREST_TOP: Final = 8.0
_ROW: Final = 32.0
_NAME: Final = 9.0  # from the top of a row to the middle of its name
_LINE: Final = 23.0
_AMOUNT: Final = 150.0


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A change of B against A as a ratio, with its 95 % interval and the δ of its lane.

    ``settled`` says that the verdict is proven; otherwise the mark is hollow.
    """

    name: str
    ratio: float
    low: float
    high: float
    delta: float
    settled: bool


def effects_picture(effects: Sequence[ForestRow], *, name: str, title: str, fewest: int = MIN_EFFECTS) -> str | None:
    """The SVG element of the first `MAX_EFFECTS` effects, or None where there are fewer than ``fewest``."""
    shown = effects[:MAX_EFFECTS]
    if len(shown) < fewest:
        return None
    height = _FOREST_TOP + _ROW * len(shown) + BELOW
    alt = "; ".join(f"{item.name}: {_amount(item)}" for item in shown)

    def paint(canvas: Canvas) -> None:
        ends = [_percent(value) for item in shown for value in (item.low, item.high)]
        ends += [_percent(1.0 + sign * item.delta) for item in shown for sign in (-1, 1)]
        ticks = nice(min(0.0, *ends), max(0.0, *ends), 6)
        x = Scale(ticks[0], ticks[-1])
        plot = Panel(_FOREST_LEFT, _FOREST_TOP, WIDTH - _FOREST_LEFT - _RIGHT, _ROW * len(shown), x, Scale(0.0, 1.0))
        tops = [_FOREST_TOP + index * _ROW for index in range(len(shown))]
        # Beside the intervals alone: a line would run through the names between them.
        lines = [(plot.at(tick, 0.0)[0], top + _LINE - 6.0, top + _LINE + 6.0) for tick in ticks for top in tops]
        canvas.uprights(lines, colour=LINE, width=0.8)
        for top, item in zip(tops, shown, strict=True):
            y = top + _LINE
            mark = MARKS[0] if item.settled else MARKS[5]
            low, middle, high = (plot.at(_percent(value), 0.0)[0] for value in (item.low, item.ratio, item.high))
            band = [plot.at(_percent(1.0 + sign * item.delta), 0.0)[0] for sign in (-1, 1)]
            canvas.boxes([(band[0], y - 6.0, band[1] - band[0], 12.0)], fill=LINE, alpha=0.45)
            canvas.label(4.0, top + _NAME, cut(item.name, WIDTH - _AMOUNT - 8.0, SMALL), size=SMALL, bold=True)
            canvas.label(WIDTH - 4.0, top + _NAME, _amount(item), ha="right", size=SMALL, colour=INK)
            feet = [((x, y - 4.0), (x, y + 4.0)) for x in (low, high)]
            canvas.segments([((low, y), (high, y)), *feet], colour=mark.light, width=1.6)
            canvas.marks([(middle, y)], mark, hollow=not item.settled, size=7.0)
        zero = plot.at(0.0, 0.0)[0]
        canvas.uprights([(zero, top + _LINE - 7.0, top + _LINE + 7.0) for top in tops], colour=FAINT, width=1.4)
        canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
        below(
            canvas,
            plot,
            [(tick, tick_label(tick)) for tick in ticks],
            "change of B against A, %; the band is no change that matters",
        )

    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=alt)


def _percent(ratio: float) -> float:
    return (ratio - 1.0) * 100.0


def _amount(item: ForestRow) -> str:
    low, middle, high = (signed(_percent(value), "+.2f") for value in (item.low, item.ratio, item.high))
    return f"{middle} % ({low} to {high})"


NAME = 60


def effects_figure(anchor: str, lane: str, compared: Iterable[JudgedPair]) -> Figure | None:
    """The effects of a lane, whose numbers its tables have; None where fewer than two have an interval."""
    shown = []
    for item in compared:
        if item.ratio is None or item.low is None or item.high is None or item.delta is None:
            continue
        change = ", ".join(f"{one.path.rpartition('.')[2]} {one.a} → {one.b}" for one in item.moved[:2])
        label = plain(f"{change or item.b[0].name}, {metrics.get(item.metric).title}", NAME)
        shown.append(ForestRow(label, item.ratio, item.low, item.high, item.delta, item.status == "accepted"))
    if len(shown) < MIN_EFFECTS:
        return None
    title = f"{plain(lane)}: effects with their 95 % intervals"

    hollow = " Hollow: not settled." if any(not item.settled for item in shown[:MAX_EFFECTS]) else ""
    left = len(shown) - MAX_EFFECTS
    more = f" {left} more are in the table." if left > 0 else ""
    caption = f"{title}, B against A. A change within the gray band is none that matters.{hollow}{more}"
    return Figure(anchor, (caption,), lambda name: effects_picture(shown, name=name, title=title))


def comparison_figure(verdict: Comparison) -> Figure | None:
    """The effects of one comparison; None where it has none, or is rejected: a picture would be believed."""
    settled = verdict.status == "accepted"
    effects = [
        ForestRow(metrics.get(item.metric).title, item.ratio, low, high, item.effect.delta, settled)
        for item in verdict.results
        if item.ratio and (low := item.effect.low) and (high := item.effect.high)
    ]
    if not effects or verdict.status == "rejected":
        return None
    hollow = "" if settled else ". Hollow: not settled"
    caption = f"B over A with 95 % intervals; what lies in the shaded band is no change that matters{hollow}"
    return Figure("effects", (caption,), lambda name: effects_picture(effects, name=name, title="Effects", fewest=1))
