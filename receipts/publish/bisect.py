"""The page of a bisection: what explains the change, the steps that showed it, and what to launch next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from receipts.publish.page import Column, Page, Section, Table, row
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.questions.bisect.bisect import Bisected
    from receipts.stats.equivalence import Effect


def page(seen: Bisected) -> Page:
    """The whole page."""
    say = words("bisect")
    lead = [say("inseparable", axes=", ".join(item)) for item in seen.inseparable]
    if seen.sets == (("code",),) and seen.commits is not None and seen.plan is None:
        lead.append(say("git", good=seen.commits[0], bad=seen.commits[1]))
    columns = (
        Column("moved", cut=True),
        Column("launch", rank=2, cut=True),
        Column("change", numeric=True),
        Column("95 % interval", rank=1),
        Column("outcome"),
    )
    rows = tuple(
        row(", ".join(item.moved), item.name, _change(item.effect), _interval(item.effect), item.outcome)
        for item in seen.steps
    )
    sections = [Section("steps", say("steps"), tables=(Table("", columns, rows),))] if rows else []
    if seen.avoided:
        points = tuple((name, ((why,),)) for name, why in seen.avoided)
        sections.append(Section("avoided", say("avoided"), points=points))
    title = say("title", n=len(seen.axes))
    return Page(title, headline=(headline(seen),), lead=tuple(lead), sections=tuple(sections))


def headline(seen: Bisected) -> str:
    """The answer in one line."""
    say = words("bisect")
    if not seen.changed:
        if seen.plan is not None:
            return say("ends", kind=seen.direct.kind, launches=seen.launches)
        return say("nothing", kind=seen.direct.kind)
    if seen.plan is not None:
        moved = seen.steps[-1].moved if seen.steps else seen.axes
        return say("waiting", axes=", ".join(moved), launches=seen.launches)
    causes = [say("together", axes=", ".join(item)) if len(item) > 1 else item[0] for item in seen.sets]
    if len(causes) == 1:
        return say("explained", change=_change(seen.direct), axes=causes[0])
    return say("several", change=_change(seen.direct), n=len(causes), axes="; ".join(causes))


def _change(effect: Effect | None) -> str:
    return f"{effect.ratio - 1.0:+.2%}" if effect is not None and effect.ratio is not None else "~"


def _interval(effect: Effect | None) -> str:
    if effect is None or effect.low is None or effect.high is None:
        return "~"
    return f"{effect.low - 1.0:+.2%} … {effect.high - 1.0:+.2%}"
