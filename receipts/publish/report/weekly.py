"""The weekly report in words: its sections from its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from receipts.publish.page import Cell, Code, Page, Section
from receipts.publish.report import appendix, first
from receipts.publish.report.lane import lane_section
from receipts.publish.report.page import folded
from receipts.publish.report.pictures import over_weeks
from receipts.publish.report.sections import (
    checks,
    claims,
    decisions,
    failures,
    incidents,
    intake,
    memory,
    regressions,
    repeats,
    survival,
)
from receipts.publish.report.sections import rules as cited_rules

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.page import Figure
    from receipts.publish.report.data import WeekData
    from receipts.publish.words import Words


def page(data: WeekData, rules: RuleSet, words: Words) -> Page:
    """The whole report; ``rules`` are those that it was judged by."""
    parts = data.sections
    frontier, where = _frontier(data)
    every: list[Section | str] = [
        lane_section(
            *(lane, parts.ceilings[lane.name], data.drawn.lanes[lane.name], rules, words), weeks=lane.name != where
        )
        for lane in data.lanes
    ]
    every += [survival.section(parts.survival, rules), decisions.section(parts.decisions), claims.section(parts.claims)]
    every += regressions.section(parts.regressions)
    every += [failures.section(parts.failures), incidents.section(parts.incidents)]
    every += [
        repeats.section(parts.repeats, rules),
        memory.section(data.headroom, data.headroom_more, data.drawn.chips),
    ]
    every += [checks.section(data.lanes), intake.section(parts.intake, data.lanes)]
    sections, nothing = folded(every)
    shown = first_screen(data, words, nothing)
    sections = [replace(shown.sections[0], figures=frontier), *sections]
    cited = cited_rules.section(rules, sections)
    sections += [_method(data, words), *cited]
    sections += [appendix.section(data.receipts)] if data.receipts else []
    foot = (
        ("as of", (f"{data.as_of:%Y-%m-%d %H:%M:%S} UTC",)),
        ("store", (Code(data.store),)),
        ("rules", (Code(data.rules[:12]), f" judge {data.judge}")),
    )
    return replace(shown, sections=tuple(sections), foot=foot)


def first_screen(data: WeekData, words: Words, nothing: Sequence[str] = ()) -> Page:
    """The page down to its first section: what a lead forwards. ``nothing`` is what there is none of."""
    points = first.points(data, words)
    if nothing:
        points = (*points, ("none of", ((f"{', '.join(nothing)}.",),)))
    lanes: tuple[tuple[str, Cell], ...] = (("lanes", (", ".join(data.only_lanes),)),) if data.only_lanes else ()
    return Page(
        title=f"Frontier report {data.week}",
        facts=(("from", (interval(data),)), *lanes),
        lead=() if data.counts.submitted else (_empty(data, words),),
        sections=(Section("summary", "In short", points=points),),
        badges=first.badges(data, words),
    )


def _empty(data: WeekData, words: Words) -> str:
    """That nothing ran in the interval, and when something did."""
    if data.last_week is None:
        return words("empty_ever", interval=data.week)
    return words("empty", interval=data.week, last=data.last_week)


def interval(data: WeekData) -> str:
    """The days of the report, in UTC."""
    if "/" not in data.week:
        return f"Monday {data.since:%Y-%m-%d} to Sunday {data.until - timedelta(days=1):%Y-%m-%d}, UTC"
    return f"{data.since:%Y-%m-%d %H:%M} to {data.until:%Y-%m-%d %H:%M}, UTC"


def _frontier(data: WeekData) -> tuple[tuple[Figure, ...], str | None]:
    """The frontier over the weeks of the first lane that has one to draw, and that lane; the others have theirs."""
    for name, lane in data.drawn.lanes.items():
        figure = over_weeks.figure("frontier-weeks", name, lane.courses, lane.week)
        if figure is not None:
            return (figure,), name
    return (), None


def _method(data: WeekData, words: Words) -> Section:
    """How the report came about: below what it says, since nobody reads it twice."""
    left = sum(lane.uncompared for lane in data.lanes)
    of = sum(lane.configurations for lane in data.lanes)
    sentences = [words("judged"), words("frontier")]
    if data.counts.submitted:
        chosen = [words("pairs", compared=data.compared, adjusted=data.adjusted)]
        chosen += [words("pairs_adjusted")] if data.adjusted else []
        chosen += [words("pairs_left", left=left, n=of)] if left else []
        sentences.append(" ".join(chosen))
    return Section("method", "How it was judged", sentences=tuple(sentences))
