"""What undecided comparisons wait for, why others are refused, and which changes are the largest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.judging.rule import Topic
from receipts.publish.page import Cell
from receipts.publish.report.page import FEWEST_ROWS, joined, rule
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.data import AwaitedRule, JudgedPair, LaneWeek, RefusedPairs, WeekData

FEW_REASONS = 4


def settling(
    shown: Sequence[JudgedPair], rules: RuleSet
) -> tuple[list[Cell], list[Cell], list[tuple[JudgedPair, list[Cell]]]]:
    """What all of some undecided comparisons wait for, what several do, and each with what it waits for beside that.

    A notebook's rows lack the same facts one and all.
    """
    of_unknown = rules.about(Topic.UNKNOWN)
    settle = [_settles(item, of_unknown) for item in shown]
    counts = Counter(cell for own in settle for cell in own)
    common = [cell for cell, count in counts.items() if count == len(settle) > 1]
    often = [cell for cell, count in counts.items() if FEWEST_ROWS <= count < len(settle) and len(cell) > 1]
    # Of what several wait for, the rule alone.
    own = [[cell[:1] if cell in often else cell for cell in cells if cell not in common] for cells in settle]
    return common, often, list(zip(shown, own, strict=True))


def _settles(item: JudgedPair, of_unknown: Sequence[str]) -> list[Cell]:
    """What an undecided comparison waits for, each in a phrase; the rules on unknown axes share one."""
    parts: list[Cell] = []
    if item.unknown:
        shown = ", ".join(plain(name) for name in item.unknown[:4])
        left = len(item.unknown) - 4
        parts.append((*map(rule, of_unknown[:1]), f": state {shown}{f' and {left} more' if left > 0 else ''}"))
    reasons = (reason for reason in item.reasons[:FEW_REASONS] if reason.code not in of_unknown)
    parts += [(rule(reason.code), f": {reason.do}") for reason in reasons]
    if item.why and (not parts or item.path == "witnessed"):
        parts.append((item.why,))
    return list(dict.fromkeys(parts)) or [("~",)]


def why(item: JudgedPair, rules: RuleSet) -> Cell:
    """Why a comparison is refused."""
    of_axes = rules.about(Topic.AXES)
    parts: list[Cell] = []
    if len(item.counted) > 1:
        axes = ", ".join(map(plain, item.counted))
        parts.append((*map(rule, of_axes[:1]), f" {len(item.counted)} axes moved: {axes}"))
    for reason in item.reasons[:FEW_REASONS]:
        if reason.code in of_axes and parts:
            continue
        side = f" on {reason.side}" if reason.side else ""
        parts.append((rule(reason.code, reason.name), f"{side}: {reason.found}"))
    return joined(parts, "; ") or (item.why or "~",)


def is_gain(metric: str, effect: str, ratio: float | None) -> bool:
    """Whether an effect is a gain: proven faster, or indicated in that direction."""
    if effect == "indicated" and ratio is not None:
        return ratio > 1.0 if metrics.get(metric).better == "higher" else ratio < 1.0
    return effect == "faster"


def bridgeable(data: WeekData) -> list[tuple[LaneWeek, RefusedPairs]]:
    """Refused comparisons whose settings can be changed one by one."""
    return [(lane, item) for lane in data.lanes for item in lane.refusals if item.axes]


def busiest(data: WeekData) -> LaneWeek:
    """The lane with most undecided comparisons."""
    return max(data.lanes, key=lambda lane: lane.inconclusive.total)


def undecided_gains(lane: LaneWeek) -> list[JudgedPair]:
    """Undecided changes of one axis that would be gains if they held, the largest first."""
    return [
        item
        for item in lane.inconclusive
        if item.comparable == "yes" and item.moved and is_gain(item.metric, "indicated", item.ratio)
    ]


def largest(data: WeekData) -> list[tuple[LaneWeek, JudgedPair]]:
    """Three of them of each lane."""
    return [(lane, item) for lane in data.lanes for item in undecided_gains(lane)[:3]]


def missing(data: WeekData) -> list[AwaitedRule]:
    """What undecided comparisons of all lanes wait for, what most of them wait for first."""
    lacks: dict[str, AwaitedRule] = {}
    for lane in data.lanes:
        for item in lane.waiting:
            held = lacks.get(item.code)
            # The remedy of the lane where it would settle most.
            kept = item if held is None or item.pairs > held.pairs else held
            lacks[item.code] = replace(kept, pairs=item.pairs + (held.pairs if held is not None else 0))
    return sorted(lacks.values(), key=lambda item: (-item.pairs, effort(item.do)))


def effort(do: str) -> int:
    """How often something is to be done, where it says so."""
    count = re.search(r"\d+", do)
    return int(count[0]) if count else 0
