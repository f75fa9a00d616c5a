"""What to do next, in the order in which it matters: what is wrong, what is unproven, what is untried."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from receipts.publish.page import Cell, Code
from receipts.publish.report import comparisons
from receipts.publish.report.lane import place
from receipts.publish.report.page import joined, links, rule
from receipts.publish.report.phrases import changed
from receipts.publish.report.sections.retest import is_gain
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.publish.report.data import JudgedPair, LaneWeek, WeekData
    from receipts.publish.words import Words

STEPS: Final = 6
MOST: Final = 3  # names in a sentence


def next_steps(data: WeekData, words: Words) -> Iterator[Cell]:
    """The first steps, each with a command to copy."""
    return islice(_steps(data, words), STEPS)


def undecided_gains(lane: LaneWeek) -> list[JudgedPair]:
    """Undecided changes of one axis that would be gains if they held, the largest first."""
    return [
        item
        for item in lane.inconclusive
        if item.comparable == "yes" and item.moved and is_gain(item.metric, "indicated", item.ratio)
    ]


def _steps(data: WeekData, words: Words) -> Iterator[Cell]:
    for item in [item for item in data.sections.incidents.found if item.level == "E"][:2]:
        yield words.cell("mend", item=item, rule=rule(item.code, item.name), run=f"receipts rules {item.code}")
    yield from _documents(data, words)
    for lane in data.lanes:
        yield from _alone(lane, words)
    yield from _settle(data, words)
    for gain in data.sections.survival.waiting[:2]:
        sentence, name = "try_again" if gain.there else "try", words.link("try_gain", "survival-waiting")
        yield words.cell(sentence, item=gain, changed=changed(gain.moved, words), gain=name)
    if data.sections.repeats.found:
        failures = words.link("preflight_failures", "repeats")
        yield words.cell("preflight", failures=failures, run="receipts preflight PLAN")


def _documents(data: WeekData, words: Words) -> Iterator[Cell]:
    """Documents that quote a stale claim."""
    stale = data.sections.claims.stale
    names = list(dict.fromkeys(name for item in stale for name in item.documents))
    if names:
        shown = joined((Code(plain(name)),) for name in names[:MOST])
        left = len(names) - MOST
        documents = shown + (words.cell("and_more", n=left) if left > 0 else ())
        name = words.link("mend_stale", "claims-stale")
        yield words.cell("mend_documents", documents=documents, stale=name, run=f"receipts claim show {stale[0].id}")


def _alone(lane: LaneWeek, words: Words) -> Iterator[Cell]:
    """Results of one launch; what is of an earlier week was named then."""
    alone = [item.receipt for item in (*lane.frontier, *lane.peaks) if item.in_week and item.is_peak]
    if alone:
        frontier = words.link("repeat_frontier", place(lane.name, "frontier"), lane=plain(lane.name))
        yield words.cell("repeat", receipts=links(alone), frontier=frontier, run=f"receipts repro {alone[0].short}")


def _settle(data: WeekData, words: Words) -> Iterator[Cell]:
    """What would settle most undecided comparisons; then the largest of them, and what was refused."""
    for item in comparisons.missing(data)[:1]:
        undecided = {lane.name: len(lane.inconclusive) + lane.inconclusive_more for lane in data.lanes}
        most, total = max(undecided, key=lambda name: undecided[name]), sum(undecided.values())
        pairs = words.link("settle_pairs", place(most, "inconclusive"), n=item.pairs, of=total)
        do = f"{item.do[:1].upper()}{item.do[1:]}"
        yield words.cell("settle", do=do, rule=rule(item.code), pairs=pairs, run=f"receipts rules {item.code}")
    for lane, first in [(one, gain) for one in data.lanes for gain in undecided_gains(one)[:1]][:1]:
        run = first.next or f"receipts compare {first.a[0].short} {first.b[0].short}"
        yield words.cell("look", change=words.link("look_change", place(lane.name, "inconclusive")), run=run)
    for lane, refusal in [(one, item) for one in data.lanes for item in one.refusals if item.axes][:1]:
        pair = words.link("bridge_pair", place(lane.name, "refused"))
        yield words.cell("bridge", pair=pair, run=f"receipts bridge {refusal.a.short} {refusal.b.short}")
