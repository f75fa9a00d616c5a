"""Rate and MFU of a lane over sequence length, with the spread of repeated launches.

What is proven is filled, what is reported is hollow, and ceilings are marked under a bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from receipts.base.text import plain
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import chart, svg
from receipts.publish.pictures.chart import BELOW, LEFT, RIGHT, WIDTH, Panel, Scale, below, frame, upward
from receipts.publish.pictures.svg import MARKS, Canvas
from receipts.publish.report.page import link
from receipts.publish.text import number

if TYPE_CHECKING:
    from receipts.questions.ceiling import Ceilings
    from receipts.questions.week.data import BestResult, LaneWeek


Grade = Literal["validated", "repeated", "peak"]
MIN_POINTS: Final = 3  # two points are two numbers, and no picture
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


def shown_points(points: Sequence[SequencePoint]) -> tuple[list[SequencePoint], list[str]]:
    """The points that are drawn, and their series: those with most points, accepted first; a mark for each."""
    drawn = [item for item in points if item.length > 0 and (item.rate is not None or item.mfu is not None)]
    names = list(dict.fromkeys(item.series for item in drawn))
    count = {name: sum(1 + item.accepted for item in drawn if item.series == name) for name in names}
    kept = sorted(sorted(names, key=lambda name: -count[name])[: chart.MAX_SERIES], key=names.index)
    return [item for item in drawn if item.series in kept], kept


def picture(points: Sequence[SequencePoint], *, name: str, title: str) -> str | None:
    """The SVG element, or None where there are fewer than three points, or one length. ``name`` starts its ids."""
    drawn, names = shown_points(points)
    kinds = [kind for kind in _HEIGHTS if any(item.read(kind) is not None for item in drawn)]
    if len(drawn) < MIN_POINTS or len({item.length for item in drawn}) < LENGTHS:
        return None
    height = sum(_TOP + _HEIGHTS[kind] for kind in kinds) + BELOW + chart.legend_height(names)
    paint = partial(_paint, drawn, names, kinds)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=_alt_of(drawn))


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
    chart.draw_legend(canvas, names, panel.bottom + BELOW)


def _values(item: SequencePoint, kind: str) -> list[float]:
    value, interval = item.read(kind), item.interval(kind)
    return [part for part in (value, *(interval or ())) if part is not None]


def _series(canvas: Canvas, panel: Panel, points: Sequence[SequencePoint], names: Sequence[str], kind: str) -> None:
    for index, (name, mark) in enumerate(zip(names, MARKS, strict=False)):
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


def figure(anchor: str, lane: LaneWeek, reached: Ceilings) -> Figure | None:
    """The picture of a lane; None where there is too little to draw: what is in its tables says it all."""
    # Ceilings by their whole shape, the best grade of each.
    order: tuple[Grade, ...] = ("peak", "repeated", "validated")
    grades: dict[tuple[object, ...], Grade] = {
        (str(group.key), group.chips, *item.size): grade
        for grade in order
        for group in reached.reached.frontiers
        for item in group.ceilings
        if item.grade == grade
    }
    every = (*lane.frontier, *lane.stated)
    points = [_point(item, item.series(every), grades) for item in every]
    drawn = [item for item in points if item is not None]
    shown, kept = shown_points(drawn)
    if len(shown) < MIN_POINTS or len({item.length for item in shown}) < LENGTHS:
        return None
    left = len({item.series for item in drawn}) - len(kept)
    title = f"{plain(lane.name)}: rate and MFU over sequence length"
    caption, table = _caption(title, left, shown), _table(title, lane)
    return Figure(anchor, caption, lambda name: picture(drawn, name=name, title=title), table)


def _caption(title: str, left: int, shown: Sequence[SequencePoint]) -> Cell:
    """How the picture is read, of what it shows alone."""
    grades = {item.grade for item in shown}
    parts = (
        (any(item.accepted for item in shown), "Filled: proven."),
        (
            any(not item.accepted for item in shown),
            "Hollow: one launch, not settled (beyond ±5 %), or reported.",
        ),
        (
            any(item.low is not None for item in shown),
            "A mark with an interval is the geometric mean of the launches of one configuration (95 %).",
        ),
        ("repeated" in grades, "A bar over a mark: a ceiling, repeated by two launches."),
        ("validated" in grades, "Two bars: a ceiling validated by three launches on two days or hosts."),
        (
            any(item.mfu is not None for item in shown),
            "MFU of different bases are not comparable; the table names them.",
        ),
        (left > 0, f"{left} more series are in the table."),
    )
    return (" ".join([f"{title}.", *(text for holds, text in parts if holds)]),)


_Shape = tuple[object, ...]


def _point(item: BestResult, name: str, grades: Mapping[_Shape, Grade]) -> SequencePoint | None:
    if item.sequence_length is None:
        return None
    shape = (item.shape, item.chips, item.sequence_length, item.micro_batch, item.depth)
    return SequencePoint(
        series=name,
        length=item.sequence_length,
        rate=item.tokens_per_second_per_chip,
        mfu=item.mfu,
        accepted=item.standing == "proven",
        low=item.low if item.standing == "proven" else None,
        high=item.high if item.standing == "proven" else None,
        grade=grades.get(shape) if item.standing != "reported" else None,
    )


def _table(title: str, lane: LaneWeek) -> Table | None:
    """Intervals of the frontier; everything else is in the tables that the section has."""
    header = (
        "receipt | sequence [tokens] | geometric mean [tokens/s/chip] | 95 % interval [tokens/s/chip] | #launches | "
        "#sessions"
    )
    rows = [
        (
            *(link(item.receipt), number(item.sequence_length), number(item.tokens_per_second_per_chip)),
            *(f"{number(item.low)} to {number(item.high)}", number(item.launches), number(item.sessions)),
        )
        for item in lane.frontier
        if item.low is not None
    ]
    return table_of(title, header, rows) if rows else None
