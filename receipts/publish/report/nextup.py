"""What a report asks for: the few steps that would settle what it leaves open, each with what it stands on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from receipts.publish.report.lane import place
from receipts.publish.report.page import Cell, Code, Link, joined, link, rule
from receipts.publish.report.text import plain

if TYPE_CHECKING:
    from receipts.publish.report.data import Incident, LaneWeek, WeekData

MOST: Final = 6
EACH: Final = 2
NAMED: Final = 3


def steps(data: WeekData) -> Iterator[Cell]:
    """Steps in the order in which they matter: what is wrong first, then what is unproven, then what is untried."""
    found = (*_broken(data), *_stale(data), *_alone(data), *_open(data), *_untried(data), *_known(data))
    yield from islice(found, MOST)


def _broken(data: WeekData) -> Iterator[Cell]:
    """What stops launches from standing as evidence, those that hit most of them first."""
    count: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Incident] = {}
    for item in data.incidents:
        if item.level == "E":
            count[item.code, item.do] += len(item.receipts) + item.receipts_more
            first.setdefault((item.code, item.do), item)
    for key, _ in sorted(count.items(), key=lambda one: (-one[1], one[0]))[:EACH]:
        item = first[key]
        yield (rule(item.code, item.name), f": {plain(item.do)} (", *link(item.receipts[0]), ").")


def _stale(data: WeekData) -> Iterator[Cell]:
    names = dict.fromkeys(name for item in data.sections.claims.stale for name in item.documents)
    if names:
        shown = joined((Code(plain(name)),) for name in list(names)[:NAMED])
        left = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield ("Mend ", *shown, f"{left}: quoting a ", Link("stale claim", "claims-stale"), ".")


def _alone(data: WeekData) -> Iterator[Cell]:
    """What newly stands on the frontier by one launch."""
    for lane in data.lanes:
        launches = {item.receipt: item.launches for item in data.drawn.lanes[lane.name].repeated}
        alone = [
            item.receipt
            for item in lane.frontier
            if item.in_week and launches.get(item.receipt.id, 1) < 2  # of an earlier week: it was told then
        ]
        if alone:
            left = f" and {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            yield ("Repeat ", *joined(map(link, alone[:NAMED])), f"{left}: on the ", _frontier(lane), " by one launch.")


def _frontier(lane: LaneWeek) -> Link:
    return Link(f"frontier of {plain(lane.name)}", place(lane.name, "frontier"))


def _open(data: WeekData) -> Iterator[Cell]:
    """What would settle most open comparisons of a lane."""
    for lane in data.lanes:
        asked = Counter((item.code, item.do) for pair in lane.inconclusive for item in set(pair.reasons))
        for (code, do), many in sorted(asked.items(), key=lambda one: (-one[1], _effort(one[0][1]), one[0]))[:1]:
            total = len(lane.inconclusive)
            at = Link(f"{many} of {total} open comparisons", place(lane.name, "inconclusive"))
            yield (f"{plain(lane.name)}: {plain(do)} (", rule(code), ", ", at, ").")


def _effort(do: str) -> int:
    """How often something is to be done, where it says so."""
    found = re.search(r"\d+", do)
    return int(found[0]) if found else 0


def _untried(data: WeekData) -> Iterator[Cell]:
    for item in data.sections.survival.waiting[:EACH]:
        moved = joined(((Code(one.path), f" {one.a} → {one.b}") for one in item.moved[:2]), " and ")
        how = "Try" if item.there is None else "Settle"
        yield (f"{how} ", *moved, f" at {plain(item.target)}: a ", Link("gain elsewhere", "survival-waiting"), ".")


def _known(data: WeekData) -> Iterator[Cell]:
    if data.sections.repeats.found:
        yield (
            "Ask ",
            Code("receipts preflight PLAN"),
            " before a launch: ",
            Link("known failures", "repeats"),
            " came back.",
        )
