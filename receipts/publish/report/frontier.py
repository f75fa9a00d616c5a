"""The frontier of lanes in pictures: of each over the weeks, and of one over sequence length.

Over the weeks stands each launch of a lane's leading shape, and who took it. Over sequence length stand rate and MFU
with the spread of repeated launches; what is proven is filled, what is reported is hollow, ceilings are under a bar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from receipts.base.units import counted
from receipts.base.untrusted_text import plain
from receipts.publish import svg
from receipts.publish.page import Cell, Figure, table_of
from receipts.publish.report.page import link
from receipts.publish.svg import (
    BELOW,
    FAINT,
    LEFT,
    LINE,
    MARKS,
    RIGHT,
    SMALL,
    WIDTH,
    YES,
    Canvas,
    Panel,
    Scale,
    SeriesStyle,
    below,
    cut,
    frame,
    upward,
)
from receipts.publish.text import number
from receipts.questions.week.data import BestResult
from receipts.questions.week.frontier import LaneCourse
from receipts.questions.week.interval import Week

if TYPE_CHECKING:
    from receipts.questions.ceiling import Ceilings
    from receipts.questions.week.data import LaneWeek

MAX_LANES: Final = 6
MAX_WEEKS: Final = 12  # of those in which launches ran, the newest
_WIDTH: Final = 460.0
_RIGHT: Final = 58.0  # of the panels, for the rate
_HEAD: Final = 20.0
_HEIGHT: Final = 330.0  # of all panels, so that a few of them fill the first screen beside its words
_PANELS: Final = (36.0, 200.0)  # the least and the most of one
_OPEN, _INVALID = MARKS[4], MARKS[7]
# Launches by status: a filled circle, a ring, a cross.
_MARKS: Final = {
    "valid": SeriesStyle(YES, YES, "circle", ()),
    "open": SeriesStyle(_OPEN.light, _OPEN.dark, "circle", ()),
    "invalid": SeriesStyle(_INVALID.light, _INVALID.dark, "cross", ()),
}
STANDINGS: Final = {
    "unsettled": "launches that do not agree yet",
    "peak": "one launch",
    "reported": "reported, not proven",
}


def over_lanes(anchor: str, lanes: Sequence[LaneCourse]) -> Figure | None:
    """The picture of some lanes; None where nothing leads any of them."""
    drawn = [item for item in lanes if item.marks][:MAX_LANES]
    if not drawn:
        return None
    left = f" {counted(len(lanes) - len(drawn), 'more lane')} below." if len(lanes) > len(drawn) else ""
    caption = (
        "Tokens/s/chip of each launch, those of a week in their order, each lane on its own scale: ● valid, ○ open, "
        f"✕ invalid. A line is proven, with its 95 % interval; a dashed one is not.{left}"
    )
    title = "Frontier over the weeks"
    rows = (
        (
            plain(item.lane),
            taken.week,
            number(taken.rate),
            f"{number(taken.low)} to {number(taken.high)}" if taken.low is not None else "~",
            link(taken.receipt),
        )
        for item in drawn
        for taken in item.taken
    )
    table = table_of("Who took the frontier", "lane | week | rate [tokens/s/chip] | #95 % interval | receipt", rows)
    return Figure(
        anchor, (caption,), lambda name: lanes_picture(drawn, name=name, title=title), table if table.rows else None
    )


def lanes_picture(lanes: Sequence[LaneCourse], *, name: str, title: str) -> str:
    """The SVG element."""
    weeks = _weeks(lanes)
    row = _HEAD + min(max(_HEIGHT / len(lanes) - _HEAD, _PANELS[0]), _PANELS[1])
    height = len(lanes) * row + 40.0
    leaders = ((item, number(item.leader.tokens_per_second_per_chip)) for item in lanes)
    texts = (f"{item.lane}, {item.shape}: {rate} tokens/s/chip, {_leads(item.leader)}" for item, rate in leaders)
    alt = "; ".join(texts)

    def paint(canvas: Canvas) -> None:
        panel = None
        for index, item in enumerate(lanes):
            top = index * row + _HEAD
            # The lane, what is drawn of it, and who leads it.
            y = top - 8.0
            lane = cut(plain(item.lane), 150.0)
            canvas.label(6.0, y, lane, bold=True)
            left = 14.0 + svg.extent(lane) * 1.1
            proven = item.leader.standing == "proven"
            text = cut(f"{'✓' if proven else '?'} {_leads(item.leader)}", 250.0, SMALL)
            canvas.label(_WIDTH - 4.0, y, text, ha="right", size=SMALL, colour=YES if proven else _OPEN.light)
            room = _WIDTH - 14.0 - svg.extent(text, SMALL) - left
            if room > 40.0:
                canvas.label(left, y, cut(plain(item.shape), room, SMALL), size=SMALL, colour=FAINT)
            panel = _panel(item, weeks, top, _WIDTH, row - _HEAD - 8.0, canvas)
        assert panel is not None  # there is a lane
        _name_weeks(canvas, panel, weeks)

    return svg.inline_svg(paint, name=name, width=_WIDTH, height=height, title=title, alt=alt)


def _leads(item: BestResult) -> str:
    """What leads, in words: who, and by how many launches, or why it is not proven."""
    how = counted(item.launches or 0, "launch", "launches") if item.standing == "proven" else STANDINGS[item.standing]
    return f"{plain(item.receipt.name, 60)}, {how}"


def _weeks(lanes: Sequence[LaneCourse]) -> list[Week]:
    """The weeks in which launches ran, in order."""
    moments = [one.ran for item in lanes for one in item.marks]
    return sorted({Week.of(at) for at in moments}, key=lambda week: week.since)[-MAX_WEEKS:]


def lane_figure(item: LaneCourse, anchor: str, width: float) -> Figure:
    """The panel of one lane by itself, for a page that says above it what it shows."""
    weeks, height = _weeks([item]), 100.0
    alt = f"{item.shape}: {number(item.leader.tokens_per_second_per_chip)} tokens/s/chip, {_leads(item.leader)}"

    def paint(canvas: Canvas) -> None:
        _name_weeks(canvas, _panel(item, weeks, 10.0, width, height, canvas), weeks)

    sizes = {"width": width, "height": height + 50.0}
    return Figure(
        anchor, (), lambda name: svg.inline_svg(paint, name=name, title=f"Launches of {item.lane}", alt=alt, **sizes)
    )


def _panel(item: LaneCourse, weeks: Sequence[Week], top: float, width: float, height: float, canvas: Canvas) -> Panel:
    """The launches of a lane and its frontier."""
    values = [one.rate for one in item.marks] + [one.rate for one in item.taken]
    values += [end for one in item.taken for end in (one.low, one.high) if end is not None]
    values += [item.leader.tokens_per_second_per_chip or max(values)]
    low, high = min(values), max(values)
    edge = (high - low) * 0.12 or high * 0.05
    x = Scale(0.0, float(len(weeks)))
    panel = Panel(6.0, top, width - 6.0 - _RIGHT, height, x, Scale(low - edge, high + edge))
    starts = [(panel.at(at, 0.0)[0], panel.top, panel.bottom) for at in range(len(weeks) + 1)]
    canvas.uprights(starts, colour=LINE, width=0.6)
    # The launches of a week follow each other in it; those before the weeks shown have no place.
    numbers = {week: at for at, week in enumerate(weeks)}
    of, seen = [Week.of(one.ran) for one in item.marks], Counter[Week]()
    sizes, places = Counter(of), list[float | None]()
    for week in of:
        places.append(numbers[week] + (seen[week] + 0.5) / sizes[week] if week in numbers else None)
        seen[week] += 1
    _frontier(canvas, panel, item, places)
    launches = [(at, one) for at, one in zip(places, item.marks, strict=True) if at is not None]
    for status, mark in _MARKS.items():
        shown = [panel.at(at, one.rate) for at, one in launches if one.status == status]
        canvas.marks(shown, mark, hollow=status == "open", size=4.5 if status == "invalid" else 5.0)
    return panel


def _name_weeks(canvas: Canvas, panel: Panel, weeks: Sequence[Week]) -> None:
    below(canvas, panel, [(at + 0.5, str(week)[5:]) for at, week in enumerate(weeks)], f"week of {weeks[-1].year}")


def _frontier(canvas: Canvas, panel: Panel, item: LaneCourse, places: Sequence[float | None]) -> None:
    rate, right = item.leader.tokens_per_second_per_chip or 0.0, panel.right

    def place(reached: Iterable[bool]) -> float:
        """Where the first launch is that reached something; at the left where none shown did."""
        at = next((at for at, did in zip(places, reached, strict=True) if did), None)
        return panel.left if at is None else panel.at(at, 0.0)[0]

    if item.taken:
        ends = [place(mark.ran >= one.ran for mark in item.marks) for one in item.taken]
        for one, left, end in zip(item.taken, ends, [*ends[1:], right], strict=True):
            if one.low is not None and one.high is not None:
                bottom, top = panel.at(0.0, one.low)[1], panel.at(0.0, one.high)[1]
                canvas.boxes([(left, top, max(end - left, 1.0), bottom - top)], fill=YES, alpha=0.18)
        steps: list[tuple[float, float]] = []
        for one, left in zip(item.taken, ends, strict=True):
            y = panel.at(0.0, one.rate)[1]
            steps += [(left, steps[-1][1]), (left, y)] if steps else [(left, y)]
        canvas.line([*steps, (right, steps[-1][1])], colour=YES, width=1.8)
        colour, y = YES, steps[-1][1]
    else:
        y = panel.at(0.0, rate)[1]
        left = place(mark.rate >= rate * 0.999 for mark in item.marks)
        canvas.line([(left, y), (right, y)], colour=_OPEN.light, width=1.4, dash=(3, 2))
        colour = _OPEN.light
    canvas.label(right + 6.0, y, number(rate), size=SMALL, bold=True, colour=colour)


Grade = Literal["validated", "repeated", "peak"]
MIN_POINTS: Final = 3  # two points are two numbers, and no sequence_picture
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
    kept = sorted(sorted(names, key=lambda name: -count[name])[: svg.MAX_SERIES], key=names.index)
    return [item for item in drawn if item.series in kept], kept


def sequence_picture(points: Sequence[SequencePoint], *, name: str, title: str) -> str | None:
    """The SVG element, or None where there are fewer than three points, or one length. ``name`` starts its ids."""
    drawn, names = shown_points(points)
    kinds = [kind for kind in _HEIGHTS if any(item.read(kind) is not None for item in drawn)]
    if len(drawn) < MIN_POINTS or len({item.length for item in drawn}) < LENGTHS:
        return None
    height = sum(_TOP + _HEIGHTS[kind] for kind in kinds) + BELOW + svg.legend_height(names)

    def paint(canvas: Canvas) -> None:
        lengths = sorted({item.length for item in drawn})
        low, high = lengths[0], lengths[-1]
        # Half an octave on both sides, so that no mark is on an edge.
        x = Scale(low / 2**0.5, high * 2**0.5, log=True)
        width, top = WIDTH - LEFT - RIGHT, 0.0
        for kind in kinds:
            values = ((item.read(kind), *(item.interval(kind) or ())) for item in drawn)
            marks = upward([value for several in values for value in several if value is not None])
            panel = Panel(LEFT, top + _TOP, width, _HEIGHTS[kind], x, Scale(marks[0], marks[-1]))
            frame(canvas, panel, title=_TITLES[kind], ticks=marks)
            _series(canvas, panel, drawn, names, kind)
            top = panel.bottom
        below(canvas, panel, [(length, _tokens(length)) for length in lengths], "sequence length, tokens (log scale)")
        svg.draw_legend(canvas, names, panel.bottom + BELOW)

    parts = []
    for item in drawn[:24]:
        numbers = [f"{item.rate:,.0f} tokens/s/chip"] if item.rate is not None else []
        numbers += [f"MFU {item.mfu * 100:.1f} %"] if item.mfu is not None else []
        how = "proven" if item.accepted else "reported"
        parts.append(f"{item.series} at {item.length:,} tokens: {', '.join(numbers)}, {how}")
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt="; ".join(parts))


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


def over_sequence(anchor: str, lane: LaneWeek, reached: Ceilings) -> Figure | None:
    """The sequence_picture of a lane; None where there is too little to draw: what is in its tables says it all."""
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
    drawn = []
    for item in every:
        if item.sequence_length is None:
            continue
        proven = item.standing == "proven"
        shape = (item.shape, item.chips, item.sequence_length, item.micro_batch, item.depth)
        drawn.append(
            SequencePoint(
                series=item.series(every),
                length=item.sequence_length,
                rate=item.tokens_per_second_per_chip,
                mfu=item.mfu,
                accepted=proven,
                low=item.low if proven else None,
                high=item.high if proven else None,
                grade=grades.get(shape) if item.standing != "reported" else None,
            )
        )
    shown, kept = shown_points(drawn)
    if len(shown) < MIN_POINTS or len({item.length for item in shown}) < LENGTHS:
        return None
    left = len({item.series for item in drawn}) - len(kept)
    title = f"{plain(lane.name)}: rate and MFU over sequence length"
    # Intervals of the frontier; everything else is in the tables that the section has.
    header = (
        "receipt | sequence [tokens] | geometric mean [tokens/s/chip] | 95 % interval [tokens/s/chip] | #launches | "
        "#sessions"
    )
    rows = [
        (
            *(link(best.receipt), number(best.sequence_length), number(best.tokens_per_second_per_chip)),
            *(f"{number(best.low)} to {number(best.high)}", number(best.launches), number(best.sessions)),
        )
        for best in lane.frontier
        if best.low is not None
    ]
    return Figure(
        anchor,
        _caption(title, left, shown),
        lambda name: sequence_picture(drawn, name=name, title=title),
        table_of(title, header, rows) if rows else None,
    )


def _caption(title: str, left: int, shown: Sequence[SequencePoint]) -> Cell:
    """How the sequence_picture is read, of what it shows alone."""
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
