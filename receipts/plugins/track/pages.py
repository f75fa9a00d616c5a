"""The pages of a line's history, of the lines of a lane, of watch, and of incidents; and the picture of a line.

The picture shows each launch with its interval, and the levels between changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.base.units import signed_percent
from receipts.publish import svg
from receipts.publish.page import Figure, Page, Section, Table, sections_of, table_of
from receipts.publish.readings import ends, named, number, signed
from receipts.publish.svg import (
    BELOW,
    FAINT,
    INK,
    LEFT,
    MARKS,
    RIGHT,
    SMALL,
    Canvas,
    Panel,
    Scale,
    below,
    frame,
    nice,
)
from receipts.publish.tables import incidents
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.plugins.track.line import History, LineChange
    from receipts.plugins.track.watch import Watched
    from receipts.store.decisions import IncidentEvent


WIDTH: Final = 460.0
MIN_DRAWN: Final = 2
_TOP: Final = 34.0
_HEIGHT: Final = 190.0
# From launch *start* to before *stop*: the level at both ends, and the change that it begins with.
LevelSegment = tuple[int, int, float, float, "LineChange | None"]

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
    metric = metrics.get(history.metric)
    header = f"launch… | started | host… ^4 | #{named(metric)} | 95 % interval ^2"
    header += f" | {axis_name}… ^1" if axis else ""
    launches = (
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
    table = table_of("", header, launches, tuple(after), empty=say("none", metric=history.metric))
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
    sections = sections_of(
        Section("changes", say("changes"), tables=(table_of("", header, rows),)),
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
    if len(history.points) < MIN_DRAWN:
        return None
    # Levels between steps, and drifts as slopes.
    drifts = [item.change.stop for item in history.changes if item.kind == "drift"]
    bounds = sorted({0, len(history.points), *(item.change.at for item in history.changes), *drifts})
    begun = {item.change.at: item for item in history.changes}
    levels: list[LevelSegment] = []
    for start, stop in itertools.pairwise(bounds):
        item = begun.get(start)
        mean = math.fsum(math.log(point.value) for point in history.points[start:stop]) / (stop - start)
        half = item.change.log / 2.0 if item is not None and item.kind == "drift" else 0.0
        levels.append((start, stop, math.exp(mean - half), math.exp(mean + half), item))
    alt = "; ".join(
        f"{_change_of(item) or 'level'}: launches {start + 1} to {stop}" for start, stop, _, _, item in levels
    )
    paint, height, title = partial(_paint, history, levels), _TOP + _HEIGHT + BELOW, say("title", name=name)
    return svg.inline_svg(paint, name=ids, width=WIDTH, height=height, title=title, alt=alt)


def _change_of(item: LineChange | None) -> str:
    return signed_percent(item.change.ratio - 1.0) if item is not None else ""


def _paint(history: History, levels: Sequence[LevelSegment], canvas: Canvas) -> None:
    metric = metrics.get(history.metric)
    own, points = metric.scale, history.points
    reach = [value * own for item in points for value in (item.low, item.value, item.high) if value is not None]
    ticks = [value for value in nice(min(reach), max(reach), 5) if value >= 0.0]
    across, up = Scale(-0.5, len(points) - 0.5), Scale(min(ticks), max(ticks))
    panel = Panel(LEFT, _TOP, WIDTH - LEFT - RIGHT, _HEIGHT, across, up)
    frame(canvas, panel, title=named(metric), ticks=ticks)
    for index, item in enumerate(points):
        x, y = panel.at(index, item.value * own)
        if item.low is not None and item.high is not None:
            low, high = (panel.at(index, end * own)[1] for end in (item.low, item.high))
            canvas.uprights([(x, low, high)], colour=FAINT)
        canvas.marks([(x, y)], MARKS[0], size=5.0)
    for start, stop, first, last, change in levels:
        canvas.line(
            [panel.at(start - 0.4, first * own), panel.at(stop - 0.6, last * own)], colour=MARKS[1].light, width=2.0
        )
        if change is not None:
            x = panel.at(start - 0.5, first * own)[0]
            canvas.uprights([(x, panel.top, panel.bottom)], colour=INK if change.is_incident else FAINT)
            canvas.label(x + 3.0, panel.top - 2.0, _change_of(change), size=SMALL, bold=change.is_incident)
    below(
        canvas,
        panel,
        [(float(at), f"{item.started:%m-%d}") for at, item in enumerate(points)],
        "day of the launch, UTC",
    )


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
