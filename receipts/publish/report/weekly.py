"""The weekly report as a page: what its template (``reports/weekly/page.j2``) is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.judging.rule import Topic
from receipts.publish.page import Figure, Page
from receipts.publish.report import appendix
from receipts.publish.report.page import place
from receipts.publish.report.pictures import chips, effects, over_sequence, over_weeks, step_times
from receipts.publish.report.sections import regressions
from receipts.publish.report.sections import rules as cited_rules
from receipts.publish.report.template import page as written

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.data import WeekData


def page(data: WeekData, rules: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole report; ``rules`` are those that it was judged by."""
    watched = regressions.section(data.sections.regressions)
    shown = written("weekly/page.j2", _values(data, rules), folders, figures=_figures(data), sections=watched)
    sections = [*shown.sections, *cited_rules.section(rules, shown.sections)]
    sections += [appendix.section(data.receipts)] if data.receipts else []
    return replace(shown, sections=tuple(sections))


def first_screen(data: WeekData, rules: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The page down to its first section, without pictures: what a lead forwards."""
    return written("weekly/first.j2", _values(data, rules), folders)


def _values(data: WeekData, rules: RuleSet) -> dict[str, Any]:
    return {
        "data": data,
        "rules": rules,
        "target": rules.about(Topic.TARGET)[:1],
        "failure": rules.about(Topic.FAILURE),
    }


def _figures(data: WeekData) -> dict[str, tuple[Figure, ...]]:
    """The pictures of each section, by its anchor; those over weeks of the first lane that has them come first."""
    drawn = {"memory": chips.figures("memory-chips", data.drawn.chips), "summary": ()}
    for lane in data.lanes:
        of = data.drawn.lanes[lane.name]
        first = not drawn["summary"]
        weeks = over_weeks.figure(
            "frontier-weeks" if first else place(lane.name, "weeks"), lane.name, of.courses, of.week
        )
        sequence = over_sequence.figure(place(lane.name, "sequence"), lane, data.sections.ceilings[lane.name])
        if first and weeks is not None:
            drawn["summary"], weeks = (weeks,), None
        drawn[place(lane.name, "frontier")] = _known(sequence, weeks)
        plot = effects.figure(place(lane.name, "effects"), lane.name, (*lane.accepted, *lane.inconclusive))
        plotted = "accepted" if lane.accepted else "inconclusive"
        every = list(zip(step_times.figures(place(lane.name, "steps"), of.compared), of.compared, strict=True))
        for part, shown in (("accepted", lane.accepted), ("inconclusive", lane.inconclusive)):
            ends = {(item.a[0].id, item.b[0].id) for item in shown}
            steps = (figure for figure, item in every if (item.a.id, item.b.id) in ends)
            drawn[place(lane.name, part)] = _known(plot if part == plotted else None, *steps)
    return drawn


def _known(*figures: Figure | None) -> tuple[Figure, ...]:
    return tuple(item for item in figures if item is not None)
