"""The cheapest runs that would complete a chain: the fewest new configurations, and what of the stored ones is open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.plugins.study.chain import BridgePoint, Judge
from receipts.plugins.study.lattice import Lattice
from receipts.questions.plan import write_plan
from receipts.questions.sides import MAX_JOINED
from receipts.receipt import Parsed
from receipts.stats import distributions
from receipts.stats.equivalence import CONFIDENCE, MIN_LAUNCHES, SMALLEST_EFFECT, Effect
from receipts.stats.log_ratio import Sigma

if TYPE_CHECKING:
    from receipts.plugins.study.bridge import BridgeBuilder

MAX_AXES: Final = 12
_MAX_ROUNDS: Final = 100


@dataclass(frozen=True)
class MissingRun:
    """A configuration to launch. ``moved`` are the axes that are as B has them; ``stored`` is None for a new one.

    ``why`` says what a stored one lacks, and ``afresh`` that the launches that it has cannot be counted. ``failing``
    is what is known of a plan that is known or predicted to fail. ``chip_seconds`` is about what a step takes, on all
    chips.
    """

    plan: bytes
    label: str
    moved: tuple[str, ...]
    launches: int
    afresh: bool
    stored: BridgePoint | None
    why: str
    failing: str
    chip_seconds: float | None


class Leg(NamedTuple):
    """One hop of a route: its axis, its ends in words, and whether it is accepted, open, or not run."""

    axis: str
    a: str
    b: str
    state: str


@dataclass(frozen=True)
class Route:
    """The cheapest way to a bridge: what to launch, in the order of the chain, and the chain that it completes.

    ``avoided`` are configurations that were passed by, each with the reason: known to fail, or impossible.
    """

    runs: tuple[MissingRun, ...]
    legs: tuple[Leg, ...]
    avoided: tuple[tuple[str, str], ...]

    @property
    def new(self) -> tuple[MissingRun, ...]:
        """Configurations that have not been launched yet."""
        return tuple(item for item in self.runs if item.stored is None)


Cost = tuple[int, int, int, float]  # known to fail, new, to be launched again, effort


class Ground:
    """What the planner knows: which configurations are stored, how their hops were judged, what is known to fail."""

    def __init__(
        self, lattice: Lattice, stored: Mapping[int, BridgePoint], failing: Mapping[int, str], tools: BridgeBuilder
    ) -> None:
        self.lattice = lattice
        self.stored = stored
        self.failing = dict(failing)
        self.impossible: dict[int, str] = {}
        self.blocked: set[tuple[int, int]] = set()
        self.tools = tools
        self._asked: set[int] = set()

    def __repr__(self) -> str:
        return f"Ground({self.lattice!r})"

    def step(self, here: int, there: int) -> Cost | None:
        """What it costs to go on to a configuration; None if no hop leads there."""
        if (here, there) in self.blocked or there in self.impossible:
            return None
        if there not in self.stored:
            return int(there in self.failing), 1, 0, self.lattice.effort(there)
        hop = self.tools.known(here, there)
        if hop is None or hop.accepted:
            return 0, 0, 0, 0.0
        return None if hop.verdict.status == "rejected" else (0, 0, 1, 0.0)

    def route(self) -> list[int] | None:
        """The cheapest way from A to B, as far as is known."""
        best: dict[int, Cost] = {0: (0, 0, 0, 0.0)}
        before: dict[int, int] = {}
        for here in range(self.lattice.full):
            if here not in best:
                continue
            for at in range(len(self.lattice.axes)):
                there = here | 1 << at
                cost = self.step(here, there) if there != here else None
                if cost is not None:
                    fails, new, again, effort = (one + other for one, other in zip(best[here], cost, strict=True))
                    total = (int(fails), int(new), int(again), effort)
                    if there not in best or total < best[there]:
                        best[there], before[there] = total, here
        if self.lattice.full not in best:
            return None
        way = [self.lattice.full]
        while way[-1]:
            way.append(before[way[-1]])
        return way[::-1]

    def learn(self, way: Sequence[int]) -> bool:
        """Find out what is not known of a way yet; whether anything speaks against it that was not known."""
        learned = False
        for number in way:
            if number in self.stored or number in self._asked or number in self.failing:
                continue
            self._asked.add(number)
            if why := self.lattice.failure(number):
                reasons = self.impossible if isinstance(self.lattice.plan(number), str) else self.failing
                reasons[number], learned = why, True
        for here, there in pairwise(way):
            learned |= self._learnt_between(here, there)
        return learned

    def _learnt_between(self, here: int, there: int) -> bool:
        if here in self.stored and there in self.stored:
            known = self.tools.known(here, there)
            hop = known or self.tools.judge(here, there)
            return known is None and hop is not None and not hop.accepted
        if (here, there) in self.blocked or here in self.impossible or there in self.impossible:
            return False
        if self.lattice.one_apart(here, there):
            return False
        self.blocked.add((here, there))
        return True


def cheapest(ground: Ground, judge: Judge) -> Route | None:
    """The cheapest runs; None if no run completes a chain, since a hop is refused or impossible on every way."""
    way = ground.route()
    for _ in range(_MAX_ROUNDS):
        if way is None or not ground.learn(way):
            break
        way = ground.route()
    if way is None:
        return None
    lattice, needed = ground.lattice, launches_needed(judge.sigma(judge.a), judge.smallest_effect)
    again = _again(way, ground, judge.sigma(judge.a) is not None)
    runs: list[MissingRun] = []
    for number in way:
        moved, cost = lattice.moved(number), lattice.chip_seconds(number)
        point, plan, wanted = ground.stored.get(number), lattice.plan(number), again.get(number)
        if point is None and isinstance(plan, Parsed):
            why = ground.failing.get(number, "")
            runs.append(MissingRun(plan.raw, lattice.label(number), moved, needed, True, None, "", why, cost))
        elif point is not None and wanted is not None:
            raw = write_plan(point.parsed, {"run.label": point.parsed.receipt.run.label})
            named = MissingRun(raw, point.name, moved, wanted.launches, wanted.afresh, point, wanted.why, "", cost)
            runs.append(named)
    names = {at: ground.stored[at].name if at in ground.stored else lattice.label(at) for at in way}
    legs: list[Leg] = []
    for here, there in pairwise(way):
        hop = ground.tools.known(here, there)
        state = "not run" if hop is None else hop.verdict.status
        legs.append(Leg(lattice.axes[(here ^ there).bit_length() - 1], names[here], names[there], state))
    failing = [(lattice.label(number), why) for number, why in ground.failing.items() if number not in way]
    failing += [(lattice.label(number), why) for number, why in ground.impossible.items()]
    return Route(tuple(runs), tuple(legs), tuple(failing))


def launches_needed(sigma: Sigma | None, delta: float | None) -> int:
    """Launches a side with which an interval is no wider than δ each way, three at least, where σ is known.

    No more than a comparison reads.
    """
    if sigma is None:
        return MIN_LAUNCHES
    margin = math.log1p(SMALLEST_EFFECT if delta is None else delta)
    for count in range(MIN_LAUNCHES, MAX_JOINED):
        if (
            distributions.student_quantile(0.5 + CONFIDENCE / 2, 2.0 * count - 2) * sigma.value * math.sqrt(2 / count)
            <= margin
        ):
            return count
    return MAX_JOINED


def launches_to_settle(effect: Effect | None) -> tuple[int, str]:
    """Launches a side that would settle a hop, and what to say where a comparison does not read that many."""
    needed = effect.needed if effect is not None else None
    if needed is None and (effect is None or effect.kind != "ambiguous"):
        return MIN_LAUNCHES, ""
    if needed is None or needed > MAX_JOINED:
        return MAX_JOINED, f"; a comparison reads at most {MAX_JOINED} launches per side, which may leave it open"
    return needed, ""


class _Again(NamedTuple):
    """What a stored configuration needs."""

    launches: int
    afresh: bool
    why: str


def _again(way: Sequence[int], ground: Ground, floor: bool) -> dict[int, _Again]:
    """Stored configurations that need launches, how many, and why."""
    repeats: dict[int, _Again] = {}

    def wants(number: int, total: int, why: str, *, least: int, usable: bool) -> None:
        point = ground.stored[number]
        samples = len(point.launches) if usable and point.values.measured else 0
        more = max(least, total - samples)
        if more > (repeats[number].launches if number in repeats else 0):
            repeats[number] = _Again(more, samples == 0, why)

    for here, there in pairwise(way):
        ends = [number for number in (here, there) if number in ground.stored]
        hop = ground.tools.known(here, there)
        if hop is not None and not hop.accepted:
            headline = hop.verdict.headline
            total, beyond = launches_to_settle(headline.effect if headline is not None else None)
            usable = hop.verdict.comparable == "yes" and hop.verdict.path == "witnessed"
            lacking = any(len(ground.stored[number].launches) < total for number in ends)
            for number in ends:
                wants(number, total, f"{hop.reason}{beyond}", least=0 if lacking else 1, usable=usable)
        elif hop is None and not floor:
            for number in ends:
                why = "too few launches to show their spread, and no noise floor"
                wants(number, MIN_LAUNCHES, why, least=0, usable=True)
    return repeats
