"""Parts of the first screen's sentences: a lane that leads to its part, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.publish.page import Cell, Link
from receipts.publish.page import text as read
from receipts.publish.report.lane import place
from receipts.publish.report.page import joined
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.publish.report.data import FrontierMove, JudgedPair, LaneWeek, Moved
    from receipts.publish.words import Words

MOST_MOVED = 2


def at(lane: LaneWeek, part: str) -> Link:
    """A lane's name, which leads to a part of it."""
    return Link(plain(lane.name), place(lane.name, part))


def changed(items: Sequence[Moved], words: Words) -> Cell:
    """What moved, the first two by name."""
    if not items:
        return words.cell("changed_nothing")
    shown = [words.cell("changed", one=one) for one in items[:MOST_MOVED]]
    left = len(items) - MOST_MOVED
    return joined(shown, " and ") + (words.cell("changed_more", n=left) if left > 0 else ())


def interval(item: FrontierMove | JudgedPair, words: Words) -> str:
    """The interval of a change in brackets; nothing where there is none."""
    return "" if item.low is None or item.high is None else read(words.cell("interval", item=item))
