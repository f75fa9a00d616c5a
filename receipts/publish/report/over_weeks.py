"""The frontier of a lane over weeks: which receipt took it when, shape by shape.

The picture is the best result so far of each shape, with a number where another receipt took it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count, pairwise, zip_longest
from typing import Final

from receipts.base.text import plain
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import chart, svg
from receipts.publish.pictures.chart import BELOW, LEFT, RIGHT, WIDTH, Panel, Scale, below, frame, tick_label, upward
from receipts.publish.pictures.svg import SMALL, Canvas, SeriesStyle, extent
from receipts.publish.report.page import joined, link, numbered
from receipts.publish.text import number, percent
from receipts.questions.week.interval import Week
from receipts.questions.week.series import FrontierRecord, ShapeCourse

MIN_WEEKS: Final = 3  # weeks: of fewer there is no course to see
_WHO: Final = 16  # signs of a name
_HEIGHTS: Final = {"rate": 150.0, "mfu": 110.0}
_TITLES: Final = {"rate": "tokens/s/chip", "mfu": "MFU, %"}
_TOP: Final = 30.0


@dataclass(frozen=True, slots=True)
class FrontierChange:
    """A receipt that took the frontier in the week at this place of the axis.

    ``number`` is how a caption calls it; None where another of its week took the frontier after it. ``who`` is the
    receipt's name.
    """

    number: int | None
    week: int
    rate: float
    mfu: float | None
    who: str = ""

    def read(self, kind: str) -> float | None:
        """The rate in tokens a second a chip, or the MFU in percent."""
        if kind == "rate":
            return self.rate
        return None if self.mfu is None else self.mfu * 100


@dataclass(frozen=True, slots=True)
class FrontierCourse:
    """The frontier of one shape: its changes in the order of time, and the best rate of each week that has one."""

    series: str
    changes: tuple[FrontierChange, ...]
    best: tuple[tuple[int, float], ...] = ()


def picture(courses: Sequence[FrontierCourse], weeks: Sequence[str], *, name: str, title: str) -> str | None:
    """The SVG element over these weeks (``2026-W47``), or None where fewer than three of them have a result."""
    kept = [item for item in courses if item.changes][: chart.MAX_SERIES]
    held = {change.week for item in kept for change in item.changes} | {week for item in kept for week, _ in item.best}
    if len(held) < MIN_WEEKS:
        return None
    kinds = ["rate", *(["mfu"] if any(change.mfu is not None for item in kept for change in item.changes) else [])]
    names = [item.series for item in kept]
    height = sum(_TOP + _HEIGHTS[kind] for kind in kinds) + BELOW + chart.legend_height(names)
    paint = partial(_paint, kept, weeks, kinds)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=_alt_of(kept, weeks))


def _alt_of(courses: Sequence[FrontierCourse], weeks: Sequence[str]) -> str:
    parts = []
    for item in courses:
        words = [
            f"{weeks[change.week]} {change.rate:,.0f} tokens/s/chip ({change.number})"
            for change in item.changes
            if change.number is not None
        ]
        parts.append(f"{item.series}: {', '.join(words[-8:])}")
    return "; ".join(parts)


def _paint(courses: Sequence[FrontierCourse], weeks: Sequence[str], kinds: Sequence[str], canvas: Canvas) -> None:
    x, top = Scale(-0.5, len(weeks) - 0.5), 0.0
    for kind in kinds:
        values = [value for item in courses for change in item.changes if (value := change.read(kind)) is not None]
        values += [value for item in courses for _, value in item.best if kind == "rate"]
        marks = upward(values, cut=True)
        panel = Panel(LEFT, top + _TOP, WIDTH - LEFT - RIGHT, _HEIGHTS[kind], x, Scale(marks[0], marks[-1]))
        begins = f" (axis from {tick_label(marks[0])})" if marks[0] else ""
        frame(canvas, panel, title=f"{_TITLES[kind]}{begins}", ticks=marks)
        for index, item in enumerate(courses):
            _line(canvas, panel, item, chart.mark_of(index), kind)
        # Once is enough, and the first panel has most room.
        if kind == "rate":
            _numbers(canvas, panel, courses)
        top = panel.bottom
    below(canvas, panel, list(_labels(weeks)), "week of the run, ISO, UTC")
    chart.draw_legend(canvas, [item.series for item in courses], panel.bottom + BELOW, dashes=True)


def _labels(weeks: Sequence[str]) -> list[tuple[float, str]]:
    """Weeks without their year but where it begins."""
    labels = []
    for index, week in enumerate(weeks):
        year, _, number = week.partition("-")
        labels.append((float(index), week if index == 0 or not weeks[index - 1].startswith(year) else number))
    return labels


def _line(canvas: Canvas, panel: Panel, item: FrontierCourse, mark: SeriesStyle, kind: str) -> None:
    steps: list[tuple[float, float]] = []
    if kind == "rate":
        canvas.marks([panel.at(week, rate) for week, rate in item.best], mark, hollow=True, size=4.0)
    for change in item.changes:
        value = change.read(kind)
        if value is None:
            continue
        x, y = panel.at(change.week, value)
        if steps:
            steps.append((x, steps[-1][1]))
        steps.append((x, y))
    if not steps:
        return
    canvas.line([*steps, (panel.right, steps[-1][1])], colour=mark.light, dash=mark.dash)
    places = [panel.at(change.week, value) for change in item.changes if (value := change.read(kind))]
    canvas.marks(places, mark)


def _risers(panel: Panel, item: FrontierCourse) -> Iterator[tuple[float, float]]:
    """Places along the upright parts of a course, so close that no number fits between two."""
    for earlier, later in pairwise(item.changes):
        x, top = panel.at(later.week, max(earlier.rate, later.rate))
        bottom = panel.at(later.week, min(earlier.rate, later.rate))[1]
        yield from ((x, top + step * 8.0) for step in range(1, int((bottom - top) / 8.0) + 1))


def _numbers(canvas: Canvas, panel: Panel, courses: Sequence[FrontierCourse]) -> None:
    """Who took the frontier, over the mark, else left of it, else below; where all are taken the table alone says."""
    changes = [change for item in courses for change in item.changes]
    taken = [(*panel.at(change.week, change.rate), 6.0) for change in changes]
    taken += [(x, y, 1.0) for item in courses for x, y in _risers(panel, item)]
    for change in changes:
        if change.number is None:
            continue
        x, y = panel.at(change.week, change.rate)
        short = change.who if len(change.who) <= _WHO else f"{change.who[: _WHO - 1].rstrip()}…"
        # Who took it where there is room for a name, else the number alone.
        for text in dict.fromkeys((f"{change.number} {short}".rstrip(), str(change.number))):
            if _placed(canvas, text, (x, y), taken, panel):
                break


def _placed(
    canvas: Canvas, text: str, at: tuple[float, float], taken: list[tuple[float, float, float]], panel: Panel
) -> bool:
    """Write a text beside a mark where nothing else is; whether there was room."""
    x, y = at
    half = extent(text, SMALL) / 2
    others = [place for place in taken if place[:2] != at]
    # A name stays within the panel; a number may stand left of its first mark.
    middle = x if text.isdigit() else min(max(x, panel.left + half), panel.right - half)
    for over, up in ((middle, y - 12.0), (x - half - 8.0, y), (middle, y + 12.0)):
        inside = over - half >= (2.0 if text.isdigit() else panel.left) and panel.top - 8.0 <= up <= panel.bottom - 5.0
        if inside and all(abs(over - left) >= half + wide or abs(up - height) >= 10.0 for left, height, wide in others):
            canvas.label(over, up, text, ha="center", size=SMALL, bold=True)
            taken.append((over, up, half))
            return True
    return False


NAMED: Final = 12  # changes that a caption leads to; the table has them all


def figure(anchor: str, lane: str, lines: Sequence[ShapeCourse], last: str) -> Figure | None:
    """The picture of a lane up to a week; None where fewer than three weeks have a result."""
    if not lines:
        return None
    shown = _weeks(lines, last)
    title = f"{plain(lane)}: frontier over weeks"
    numbered_ones = _numbered(lines)

    def draw(name: str) -> str | None:
        places = {week: index for index, week in enumerate(shown)}
        series = [
            FrontierCourse(
                line.name,
                tuple(
                    FrontierChange(
                        index,
                        0 if taken.before else places[taken.week],
                        taken.rate,
                        taken.mfu,
                        plain(taken.receipt.name),
                    )
                    for index, of, taken in numbered_ones
                    if of is line
                ),
                tuple((places[week], rate) for week, rate in line.best),
            )
            for line in lines
        ]
        return picture(series, shown, name=name, title=title)

    held = {week for line in lines for week, _ in line.best} | {taken.week for _, _, taken in numbered_ones}
    if len(held) < MIN_WEEKS:
        return None
    return Figure(anchor, _caption(title, numbered_ones), draw, _table(title, numbered_ones))


def _weeks(lines: Sequence[ShapeCourse], last: str) -> list[str]:
    """Every week from the first that has a result to the last of the report."""
    held = [week for line in lines for week, _ in line.best]
    first, end = Week.parse(min([*held, last])), Week.parse(last)
    length = (end.since - first.since).days // 7 + 1
    return [str(Week.of(first.since + timedelta(weeks=index))) for index in range(length)]


def _numbered(lines: Sequence[ShapeCourse]) -> list[tuple[int | None, ShapeCourse, FrontierRecord]]:
    """What took the frontier, shape by shape; a number for what had it when its week was over."""
    rows: list[tuple[int | None, ShapeCourse, FrontierRecord]] = []
    numbers = count(1)
    for line in lines:
        for taken, later in zip_longest(line.taken, line.taken[1:]):
            again = later is not None and (later.week, later.before) == (taken.week, taken.before)
            rows.append((None if again else next(numbers), line, taken))
    return rows


def _caption(title: str, every: Sequence[tuple[int | None, ShapeCourse, FrontierRecord]]) -> Cell:
    caption = (
        f"{title}: what led each shape when the week was over, the geometric mean of its launches by then. A number "
        "names the newest receipt of it. A small hollow mark is the best mean of a week's launches by themselves. "
    )
    numbered = [(index, taken) for index, _, taken in every if index is not None]
    named = joined((f"{index} ", *link(taken.receipt)[:1]) for index, taken in numbered[:NAMED])
    left = len(numbered) - NAMED
    return (caption, *named, f" and {left} more in the table." if left > 0 else ".")


def _table(title: str, every: Sequence[tuple[int | None, ShapeCourse, FrontierRecord]]) -> Table:
    rows = (
        (
            "" if index is None else str(index),
            f"{taken.week}{' (held when the weeks shown began)' if taken.before else ''}",
            line.name,
            numbered(number(taken.rate), taken.receipt),
            numbered(percent(taken.mfu), taken.receipt),
            link(taken.receipt),
        )
        for index, line, taken in every
    )
    return table_of(title, "#no. | week | shape | rate [tokens/s/chip] | MFU [%] | receipt", rows)
