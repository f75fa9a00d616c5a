"""The frontier of every lane over the weeks in one picture: each launch of its leading shape, and who took it when.

What is proven is a line with its interval; what is not is dashed and has none. Each lane has a scale of its own, since
rates of lanes are not compared. Weeks in which no launch ran are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from receipts.base.text import plain
from receipts.base.units import counted
from receipts.publish.page import Figure, table_of
from receipts.publish.pictures import svg
from receipts.publish.pictures.chart import Panel, Scale, below
from receipts.publish.pictures.svg import FAINT, LINE, MARKS, SMALL, YES, Canvas, SeriesStyle, cut
from receipts.publish.report.page import link
from receipts.publish.text import number
from receipts.questions.week.data import BestResult
from receipts.questions.week.interval import Week
from receipts.questions.week.series import LaneCourse, LaunchMark

MAX_LANES: Final = 6
MAX_WEEKS: Final = 12  # of those in which launches ran, the newest
_WIDTH: Final = 460.0
_RIGHT: Final = 58.0  # of the panels, for the rate
_HEAD: Final = 20.0
_HEIGHT: Final = 330.0  # of all panels, so that a few of them fill the first screen beside its words
_PANELS: Final = (36.0, 110.0)  # the least and the most of one
_OPEN, _INVALID = MARKS[4], MARKS[7]
# Launches by status: a filled circle, a ring, a cross.
_MARKS: Final = {
    "valid": SeriesStyle(YES, YES, "circle", ()),
    "open": SeriesStyle(_OPEN.light, _OPEN.dark, "circle", ()),
    "invalid": SeriesStyle(_INVALID.light, _INVALID.dark, "cross", ()),
}
_STANDINGS: Final = {
    "unsettled": "launches that do not agree yet",
    "peak": "one launch",
    "reported": "reported, not proven",
}


def figure(anchor: str, lanes: Sequence[LaneCourse]) -> Figure | None:
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
        anchor, (caption,), lambda name: picture(drawn, name=name, title=title), table if table.rows else None
    )


def picture(lanes: Sequence[LaneCourse], *, name: str, title: str) -> str:
    """The SVG element."""
    weeks = _weeks(lanes)
    row = _HEAD + min(max(_HEIGHT / len(lanes) - _HEAD, _PANELS[0]), _PANELS[1])
    height = len(lanes) * row + 40.0
    leaders = ((item, number(item.leader.tokens_per_second_per_chip)) for item in lanes)
    texts = (f"{item.lane}, {item.shape}: {rate} tokens/s/chip, {_leads(item.leader)}" for item, rate in leaders)
    alt = "; ".join(texts)
    paint = partial(_paint, lanes, weeks, row)
    return svg.inline_svg(paint, name=name, width=_WIDTH, height=height, title=title, alt=alt)


def _leads(item: BestResult) -> str:
    """What leads, in words: who, and by how many launches, or why it is not proven."""
    how = counted(item.launches or 0, "launch", "launches") if item.standing == "proven" else _STANDINGS[item.standing]
    return f"{plain(item.receipt.name, 60)}, {how}"


def _weeks(lanes: Sequence[LaneCourse]) -> list[Week]:
    """The weeks in which launches ran, in order."""
    moments = [one.ran for item in lanes for one in item.marks]
    return sorted({Week.of(at) for at in moments}, key=lambda week: week.since)[-MAX_WEEKS:]


def _places(item: LaneCourse, weeks: Sequence[Week]) -> list[float | None]:
    """Where the launches of a lane are: those of a week follow each other in it; None before the weeks shown."""
    numbers = {week: at for at, week in enumerate(weeks)}
    of, seen = [Week.of(one.ran) for one in item.marks], Counter[Week]()
    sizes, places = Counter(of), list[float | None]()
    for week in of:
        places.append(numbers[week] + (seen[week] + 0.5) / sizes[week] if week in numbers else None)
        seen[week] += 1
    return places


def _paint(lanes: Sequence[LaneCourse], weeks: Sequence[Week], row: float, canvas: Canvas) -> None:
    x, panel = Scale(0.0, float(len(weeks))), None
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
        values = [one.rate for one in item.marks] + [one.rate for one in item.taken]
        values += [end for one in item.taken for end in (one.low, one.high) if end is not None]
        values += [item.leader.tokens_per_second_per_chip or max(values)]
        low, high = min(values), max(values)
        edge = (high - low) * 0.12 or high * 0.05
        panel = Panel(6.0, top, _WIDTH - 6.0 - _RIGHT, row - _HEAD - 8.0, x, Scale(low - edge, high + edge))
        starts = [(panel.at(at, 0.0)[0], panel.top, panel.bottom) for at in range(len(weeks) + 1)]
        canvas.uprights(starts, colour=LINE, width=0.6)
        places = _places(item, weeks)
        _frontier(canvas, panel, item, places)
        launches = [(at, one) for at, one in zip(places, item.marks, strict=True) if at is not None]
        for status, mark in _MARKS.items():
            shown = [panel.at(at, one.rate) for at, one in launches if one.status == status]
            canvas.marks(shown, mark, hollow=status == "open", size=4.5 if status == "invalid" else 5.0)
    assert panel is not None  # there is a lane
    below(canvas, panel, [(at + 0.5, str(week)[5:]) for at, week in enumerate(weeks)], f"week of {weeks[-1].year}")


def _since(moment: datetime, mark: LaunchMark) -> bool:
    return mark.ran >= moment


def _frontier(canvas: Canvas, panel: Panel, item: LaneCourse, places: Sequence[float | None]) -> None:
    rate, right = item.leader.tokens_per_second_per_chip or 0.0, panel.right

    def place(reached: Callable[[LaunchMark], bool]) -> float:
        """Where the first launch is that reached something; at the left where none shown did."""
        at = next((at for at, one in zip(places, item.marks, strict=True) if reached(one)), None)
        return panel.left if at is None else panel.at(at, 0.0)[0]

    if item.taken:
        ends = [place(partial(_since, one.ran)) for one in item.taken]
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
        left = place(lambda mark: mark.rate >= rate * 0.999)
        canvas.line([(left, y), (right, y)], colour=_OPEN.light, width=1.4, dash=(3, 2))
        colour = _OPEN.light
    canvas.label(right + 6.0, y, number(rate), size=SMALL, bold=True, colour=colour)
