"""The pages of a line's history, of the lines of a lane, of watch, and of incidents; and the picture of a line.

The picture shows each launch with its interval, and the levels between changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.base.units import signed_percent
from receipts.publish.page import Figure, Page, Section, Table, sections_of, table_of
from receipts.publish.pictures import svg
from receipts.publish.pictures.chart import BELOW, LEFT, RIGHT, Panel, Scale, below, frame, nice
from receipts.publish.pictures.svg import FAINT, INK, MARKS, SMALL, Canvas
from receipts.publish.readings import ends, named, number, signed
from receipts.publish.report.regressions import incidents
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.plugins.track.line import History, LineChange
    from receipts.plugins.track.watch import Watched
    from receipts.store.decisions import IncidentEvent


WIDTH: Final = 640.0
MIN_DRAWN: Final = 2
_TOP: Final = 34.0
_HEIGHT: Final = 190.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A launch: its value and interval in the unit of the picture, and the day under it."""

    value: float
    low: float | None
    high: float | None
    day: str


@dataclass(frozen=True, slots=True)
class LevelSegment:
    """The level from launch ``start`` to before ``stop``, from ``first`` to ``last`` where it drifts.

    ``name`` is over its first launch; ``matters`` tells an incident from the rest.
    """

    start: int
    stop: int
    first: float
    last: float
    name: str = ""
    matters: bool = False


def draw_levels(
    dots: Sequence[Dot], levels: Sequence[LevelSegment], *, name: str, title: str, measure: str
) -> str | None:
    """The SVG element, or None for fewer than two launches. ``measure`` names the values, with their unit."""
    if len(dots) < MIN_DRAWN:
        return None
    paint = partial(_paint, dots, levels, measure)
    alt = "; ".join(f"{item.name or 'level'}: launches {item.start + 1} to {item.stop}" for item in levels)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=_TOP + _HEIGHT + BELOW, title=title, alt=alt)


def _paint(dots: Sequence[Dot], levels: Sequence[LevelSegment], measure: str, canvas: Canvas) -> None:
    ends = [value for item in dots for value in (item.low, item.value, item.high) if value is not None]
    ticks = [value for value in nice(min(ends), max(ends), 5) if value >= 0.0]
    scale = Scale(min(ticks), max(ticks))
    panel = Panel(LEFT, _TOP, WIDTH - LEFT - RIGHT, _HEIGHT, Scale(-0.5, len(dots) - 0.5), scale)
    frame(canvas, panel, title=measure, ticks=ticks)
    for index, item in enumerate(dots):
        x, y = panel.at(index, item.value)
        if item.low is not None and item.high is not None:
            canvas.uprights([(x, panel.at(index, item.low)[1], panel.at(index, item.high)[1])], colour=FAINT)
        canvas.marks([(x, y)], MARKS[0], size=5.0)
    for level in levels:
        ends_at = [panel.at(level.start - 0.4, level.first), panel.at(level.stop - 0.6, level.last)]
        canvas.line(ends_at, colour=MARKS[1].light, width=2.0)
        if level.name:
            x = panel.at(level.start - 0.5, level.first)[0]
            canvas.uprights([(x, panel.top, panel.bottom)], colour=INK if level.matters else FAINT)
            canvas.label(x + 3.0, panel.top - 2.0, level.name, size=SMALL, bold=level.matters)
    below(canvas, panel, [(float(index), item.day) for index, item in enumerate(dots)], "day of the launch, UTC")


say = words("history")


def history_page(history: History, name: str, axis: Sequence[str] = (), axis_name: str = "") -> Page:
    """The history of one line; ``axis`` holds the value of one axis at each launch."""
    after = [say("interval", delta=history.delta)]
    if history.left_out:
        after.append(say("left_out", n=history.left_out))
    if history.hosts:
        effects = ", ".join(
            say("host", host=host, effect=signed(ratio)) for host, ratio in sorted(history.hosts.items())
        )
        after.append(say("hosts_apart", hosts=effects))
    figure = Figure(
        "history",
        (say("picture", title=named(metrics.get(history.metric))),),
        lambda ids: history_picture(history, name, ids),
        without=say("too_few"),
    )
    table = _launches(history, axis, axis_name, tuple(after))
    sections = sections_of(
        Section("changes", say("changes"), tables=(_changes(history),)),
        Section("launches", say("launches"), tables=(table,), figures=(figure,)),
    )
    return Page(say("title", name=name), headline=(history_headline(history),), sections=sections)


def history_headline(history: History) -> str:
    """How many launches, how many changes, and what the last one was."""
    count = len(history.points)
    if not count:
        return say("none", metric=history.metric)
    if not history.changes:
        return say("steady", n=count)
    last = history.changes[-1]
    size = signed(last.change.ratio)
    text = "incident" if last.is_incident else "listed"
    latest = say(text, size=size, name=last.first.name, why=why(last))
    return say("changed", count=say("change", n=len(history.changes)), n=count, last=latest)


def why(item: LineChange) -> str:
    """Why a change is, or is not, an incident, in a word."""
    key: str = "incident" if item.is_incident else item.kind
    if key == "step" and not item.worse and item.matters:
        key = "better"
    return say.named("why")[key]


def history_picture(history: History, name: str, ids: str = "history") -> str | None:
    """The SVG element of a line; None for fewer than two launches."""
    metric = metrics.get(history.metric)
    scale = metric.scale
    dots = [
        Dot(
            point.value * scale,
            point.low * scale if point.low is not None else None,
            point.high * scale if point.high is not None else None,
            f"{point.started:%m-%d}",
        )
        for point in history.points
    ]
    return draw_levels(dots, _levels(history, scale), name=ids, title=say("title", name=name), measure=named(metric))


def _levels(history: History, scale: float) -> list[LevelSegment]:
    """Levels between steps, and drifts as slopes, in the unit of the picture."""
    drifts = [item for item in history.changes if item.kind == "drift"]
    bounds = {0, len(history.points), *(item.change.at for item in history.changes)}
    bounds |= {item.change.stop for item in drifts}
    ordered = sorted(bounds)
    names = {item.change.at: item for item in history.changes}
    levels = []
    for start, stop in itertools.pairwise(ordered):
        logs = [math.log(point.value) for point in history.points[start:stop]]
        mean, half = math.fsum(logs) / len(logs), 0.0
        item = names.get(start)
        if item is not None and item.kind == "drift":
            half = item.change.log / 2.0
        name = signed_percent(item.change.ratio - 1.0) if item is not None else ""
        matters = item is not None and item.is_incident
        levels.append(
            LevelSegment(start, stop, math.exp(mean - half) * scale, math.exp(mean + half) * scale, name, matters)
        )
    return levels


def _changes(history: History) -> Table:
    header = "from launch | started ^4 | #change | 99 % interval ^2 | what | moved… ^1 | not stated… ^5"
    rows = (
        (
            item.first.name,
            f"{item.first.started:%Y-%m-%d}",
            signed(item.change.ratio),
            ends(item.change.low, item.change.high),
            why(item),
            ", ".join((*item.regime, *item.moved)) or say("nothing"),
            ", ".join(item.unknown),
        )
        for item in history.changes
    )
    return table_of("", header, rows)


def _launches(history: History, axis: Sequence[str], axis_name: str, after: tuple[str, ...]) -> Table:
    metric = metrics.get(history.metric)
    header = f"launch… | started | host… ^4 | #{named(metric)} | 95 % interval ^2"
    header += f" | {axis_name}… ^1" if axis else ""
    rows = (
        (
            point.name,
            f"{point.started:%Y-%m-%d %H:%M}",
            point.host or "~",
            number(metric, point.value),
            f"{number(metric, point.low)} … {number(metric, point.high)}" if point.low and point.high else "~",
            *((axis[index],) if axis else ()),
        )
        for index, point in enumerate(history.points)
    )
    return table_of("", header, rows, after, empty=say("none", metric=history.metric))


def lines(lane: str, histories: Sequence[History]) -> Page:
    """The lines of a lane, the longest first."""
    sampled = [item for item in histories if item.points]
    empty = len(histories) - len(sampled)
    rows = ((item.points[-1].name, str(len(item.points)), history_headline(item)) for item in sampled)
    after = (say("no_sample", n=empty, metric=histories[0].metric),) if empty else ()
    # A table without a row prints its `empty` alone.
    table = table_of("", "newest launch… | #launches | history", rows, after, empty=after[0] if after else "")
    section = Section("lines", say("lines", lane=lane), tables=(table,))
    return Page(say("lines", lane=lane), headline=(say("lines_headline", n=len(histories)),), sections=(section,))


def watched(seen: Watched) -> Page:
    """What a run of watch saw."""
    rows = (
        (item.first.name, signed(item.change.ratio), why(item), ", ".join(item.moved) or "~") for _, item in seen.listed
    )
    tables = {
        "opened": _events(seen.opened),
        "closed": _events(seen.closed),
        "still_open": incidents(seen.still_open, empty=""),
        "other": table_of("", "from launch | #change | what | moved…", rows),
    }
    sections = sections_of(*(Section(name, say(name), tables=(table,)) for name, table in tables.items()))
    answer = say(
        "watch_headline",
        lines=say("watched", n=seen.lines),
        opened=len(seen.opened),
        closed=len(seen.closed),
        open=len(seen.still_open),
    )
    return Page(say("watch"), headline=(answer,), sections=sections)


def _events(events: Sequence[IncidentEvent]) -> Table:
    return table_of("", "incident | what happened…", ((item.incident, item.reason) for item in events))
