"""A chain of hops, what each axis gave on it, and what two axes gave together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from receipts.axes import Member
from receipts.judging.verdict import Comparison
from receipts.questions.bridge.gain import HopGain
from receipts.questions.bridge.point import BridgePoint, Judge


@dataclass(frozen=True)
class Hop:
    """One step of a chain: the axis in which two points differ, the verdict on them, and the gain by their launches."""

    a: BridgePoint
    b: BridgePoint
    axis: str
    verdict: Comparison
    gain: HopGain | None
    reason: str  # what refuses it, or what would settle it; empty where it is accepted

    @property
    def accepted(self) -> bool:
        """Whether it may be part of a bridge."""
        return self.verdict.status == "accepted"

    @property
    def members(self) -> tuple[Member, ...]:
        """The axis' leaves that moved, with both values."""
        changed = self.verdict.difference.changed
        own = [item.members for item in changed if item.axis == self.axis]
        # What an input moved counts under its leaf, which alone changed.
        return own[0] if own else changed[0].members if len(changed) == 1 else ()


Chain = tuple[Hop, ...]


class Range(NamedTuple):
    """The least and the most that an axis gave, over the chains: logs of the ratio."""

    low: float
    high: float


def by_axis(chain: Sequence[Hop]) -> dict[str, float] | None:
    """What each axis gave on a chain, as logs, in the order of its hops; None where a hop has no number."""
    steps: dict[str, float] = {}
    for hop in chain:
        if hop.gain is None:
            return None
        steps[hop.axis] = steps.get(hop.axis, 0.0) + hop.gain.log
    return steps


def ranges(chains: Sequence[Chain]) -> Mapping[str, Range]:
    """What each axis gave over the orders of these chains, where there are several."""
    totals = [item for chain in chains if (item := by_axis(chain)) is not None]
    if len(totals) < 2:
        return {}
    axes = dict.fromkeys(axis for item in totals for axis in item)
    given = {axis: [item[axis] for item in totals if axis in item] for axis in axes}
    return {axis: Range(min(values), max(values)) for axis, values in given.items()}


@dataclass(frozen=True)
class Interaction:
    """A 2×2 of configurations: what each of two axes gave where the other had not moved, and where it had.

    ``together`` is what both gave over the product of what each gave alone. ``corners`` are neither moved, the first,
    the second, both. ``status`` is accepted where all four pairs are comparable and ran where they say.
    """

    axes: tuple[str, str]
    corners: tuple[BridgePoint, BridgePoint, BridgePoint, BridgePoint]
    first: tuple[HopGain, HopGain]
    second: tuple[HopGain, HopGain]
    together: HopGain
    status: str

    @property
    def shown(self) -> bool:
        """Whether the interval shows that there is one."""
        interval = self.together.interval
        return self.status == "accepted" and interval is not None and not interval[0] <= 1.0 <= interval[1]


def interactions(judge: Judge, hops: Sequence[Hop]) -> list[Interaction]:
    """Every 2×2 among hops that were judged and not refused, the strongest first."""
    onward: dict[int, dict[str, Hop]] = {}
    for hop in hops:
        if hop.verdict.status != "rejected":
            onward.setdefault(id(hop.a), {})[hop.axis] = hop
    together = [item for square in _squares(onward) if (item := _interaction(judge, square)) is not None]
    return sorted(together, key=lambda item: (-abs(item.together.log), item.axes))


Square = tuple[Hop, Hop, Hop, Hop]


def _squares(onward: Mapping[int, Mapping[str, Hop]]) -> Iterator[Square]:
    """x and y from one point, then y after x and x after y, where both lead to one point."""
    for steps in onward.values():
        for x, first in steps.items():
            for y, second in steps.items():
                after = onward.get(id(first.b), {}).get(y), onward.get(id(second.b), {}).get(x)
                if x < y and after[0] is not None and after[1] is not None and after[0].b is after[1].b:
                    yield first, second, after[0], after[1]


def _interaction(judge: Judge, square: Square) -> Interaction | None:
    x, y, y_after, x_after = square
    corners = (x.a, x.b, y.b, y_after.b)
    joint = judge.together(*corners)
    gains = [hop.gain for hop in (x, x_after, y, y_after) if hop.gain is not None]
    if joint is None or len(gains) < len(square):
        return None
    all_usable = all(hop.verdict.comparable == "yes" and hop.verdict.path == "witnessed" for hop in square)
    return Interaction(
        axes=(x.axis, y.axis),
        corners=corners,
        first=(gains[0], gains[1]),
        second=(gains[2], gains[3]),
        together=joint,
        status="accepted" if all_usable else "inconclusive",
    )
