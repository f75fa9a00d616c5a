"""The effects of a lane's comparisons with their intervals, against what its lane calls no difference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.publish.page import Figure
from receipts.publish.pictures import forest
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.publish.report.data import JudgedPair

NAME = 60


def figure(anchor: str, lane: str, compared: Iterable[JudgedPair]) -> Figure | None:
    """The picture; None where fewer than two comparisons have an interval. Its numbers stand in the tables."""
    shown = [effect for item in compared if (effect := _effect(item)) is not None]
    if len(shown) < forest.FEWEST:
        return None
    title = f"{plain(lane)}: effects with their 95 % intervals"

    hollow = " Hollow: not settled." if any(not item.settled for item in shown[: forest.MOST]) else ""
    left = len(shown) - forest.MOST
    more = f" {left} more are in the table." if left > 0 else ""
    caption = (
        f"{title}, B against A. Within the gray band of ±δ a difference is none that matters to the lane.{hollow}{more}"
    )
    return Figure(anchor, (caption,), lambda name: forest.picture(shown, name=name, title=title))


def _effect(item: JudgedPair) -> forest.ForestRow | None:
    if item.ratio is None or item.low is None or item.high is None or item.delta is None:
        return None
    change = ", ".join(f"{one.path.rpartition('.')[2]} {one.a} → {one.b}" for one in item.moved[:2])
    name = f"{change or item.b[0].name}, {metrics.get(item.metric).title}"
    settled = item.status == "accepted"
    return forest.ForestRow(plain(name, NAME), item.ratio, item.low, item.high, item.delta, settled)
