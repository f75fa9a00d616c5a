"""The page of a bisection: what explains the change, the steps that showed it, and what to launch next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from receipts.publish.page import Page, Section, points_of, sections_of, table_of
from receipts.publish.readings import NONE, ends, signed
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.questions.bisect.bisect import Bisected
    from receipts.stats.equivalence import Effect

say = words("bisect")


def page(seen: Bisected) -> Page:
    """The whole page."""
    lead = [say("inseparable", axes=", ".join(item)) for item in seen.inseparable]
    if seen.sets == (("code",),) and seen.commits is not None and seen.plan is None:
        lead.append(say("git", good=seen.commits[0], bad=seen.commits[1]))
    rows = ((", ".join(item.moved), item.name, *_effect(item.effect), item.outcome) for item in seen.steps)
    table = table_of("", "moved… | launch… ^2 | #change | 95 % interval ^1 | outcome", rows)
    sections = sections_of(
        Section("steps", say("steps"), tables=(table,)),
        Section("avoided", say("avoided"), points=points_of(seen.avoided)),
    )
    return Page(say("title", n=len(seen.axes)), headline=(headline(seen),), lead=tuple(lead), sections=sections)


def headline(seen: Bisected) -> str:
    """The answer in one line."""
    if not seen.changed:
        if seen.plan is not None:
            return say("ends", kind=seen.direct.kind, launches=seen.launches)
        return say("nothing", kind=seen.direct.kind)
    if seen.plan is not None:
        moved = seen.steps[-1].moved if seen.steps else seen.axes
        return say("waiting", axes=", ".join(moved), launches=seen.launches)
    causes = [say("together", axes=", ".join(item)) if len(item) > 1 else item[0] for item in seen.sets]
    if len(causes) == 1:
        return say("explained", change=signed(seen.direct.ratio), axes=causes[0])
    return say("several", change=signed(seen.direct.ratio), n=len(causes), axes="; ".join(causes))


def _effect(effect: Effect | None) -> tuple[str, str]:
    return (signed(effect.ratio), ends(effect.low, effect.high)) if effect is not None else (NONE, NONE)
