"""Comparisons on the first screen: what was accepted, what was refused and why, and what is undecided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.publish.page import Cell, Link
from receipts.publish.report import comparisons
from receipts.publish.report.lane import place
from receipts.publish.report.next_steps import undecided_gains
from receipts.publish.report.page import joined, rule
from receipts.publish.report.phrases import at, changed, interval
from receipts.publish.text import NOTE, change, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import AwaitedRule, JudgedPair, LaneWeek, RefusedPairs, WeekData
    from receipts.publish.words import Words

MOST: Final = 3  # of what lanes share under one topic
BRIEF: Final = 60  # signs of what a rule found
_CODE_NAME: Final = re.compile(r"\b[A-Z]\d{3} \w+")


def totals(data: WeekData) -> tuple[int, int, int]:
    """Comparisons that were accepted, refused and left undecided."""
    return (
        sum(len(lane.accepted) + lane.accepted_more for lane in data.lanes),
        sum(len(lane.refused) + lane.refused_more for lane in data.lanes),
        sum(len(lane.inconclusive) + lane.inconclusive_more for lane in data.lanes),
    )


def accepted(data: WeekData, words: Words, most: int) -> Iterator[Cell]:
    """What was accepted, `most` sentences of a lane."""
    for lane in data.lanes:
        # A change at several shapes is named once, and what changes nothing last.
        once: dict[tuple[object, ...], JudgedPair] = {}
        for item in lane.accepted:
            once.setdefault((item.effect, *((one.path, one.a, one.b) for one in item.moved)), item)
        shown = sorted(once.values(), key=lambda item: item.effect == "equivalent")[:most]
        for item in shown:
            values = {"changed": changed(item.moved, words), "metric": _metric(item), "interval": interval(item, words)}
            lane_link, launches = at(lane, "accepted"), {"a": len(item.a), "b": len(item.b)}
            yield words.cell("accepted", lane=lane_link, item=item, **launches, **values)
        left = len(lane.accepted) - len(shown) + lane.accepted_more
        if left:
            yield words.cell("more_accepted", lane=at(lane, "accepted"), n=left)
    if data.compared and not totals(data)[0]:
        yield words.cell("none_accepted", n=data.compared)


def _metric(item: JudgedPair) -> str:
    return metrics.get(item.metric).title


def refused(data: WeekData, words: Words) -> Iterator[Cell]:
    """What was refused, by the rules that refuse most."""
    for lane in data.lanes:
        if lane.refused:
            total = len(lane.refused) + lane.refused_more
            causes = joined(_refusal(item, words) for item in lane.refusals)
            sentence = "refused" if len(lane.refusals) == 1 else "refused_of"
            yield words.cell(sentence, lane=at(lane, "refused"), n=total, causes=causes)


def _refusal(item: RefusedPairs, words: Words) -> Cell:
    sentence = "refused_axes" if item.axes else "refused_rule" if item.code else "refused_other"
    values = {"axes": " + ".join(item.axes[:MOST]), "name": item.name.replace("_", " "), "rule": rule(item.code)}
    return words.cell(sentence, item=item, reason=_brief(item.found), **values)


def _brief(text: str) -> str:
    """What a rule found, without what it adds in brackets or after a colon where that is long."""
    text = _CODE_NAME.sub(lambda match: match[0].replace("_", " "), plain(text, NOTE))
    if len(text) <= BRIEF:
        return text
    ends = [text.rfind(mark, 0, BRIEF) for mark in (" (", ": ", "; ")]
    return text[: max(ends)] if max(ends) > 0 else plain(text, BRIEF)


def undecided(data: WeekData, words: Words) -> Iterator[Cell]:
    """What was left open, what it waits for, and the largest changes among it."""
    total = totals(data)[2]
    if total:
        yield _waits(comparisons.missing(data)[: MOST + 1], total, words)
    largest = [(lane, item) for lane in data.lanes for item in undecided_gains(lane)[:MOST]]
    if largest:
        yield words.cell("largest", changes=joined(_large(lane, item, words) for lane, item in largest[: 2 * MOST]))


def _large(lane: LaneWeek, item: JudgedPair, words: Words) -> Cell:
    ratio = Link(f"{change(item.ratio)} %", place(lane.name, "inconclusive"))
    return words.cell("largest_change", changed=changed(item.moved, words), change=ratio, metric=_metric(item))


def _waits(waiting: Sequence[AwaitedRule], total: int, words: Words) -> Cell:
    if not waiting:
        return words.cell("undecided", n=total)
    first, *others = waiting
    rules = joined((rule(item.code), f" ({item.pairs:,})") for item in others)
    pairs = "all" if first.pairs == total else f"{first.pairs:,}"
    also = words.cell("undecided_also", rules=rules) if others else ""
    return words.cell("undecided_for", n=total, first=first, rule=rule(first.code), pairs=pairs, also=also)
