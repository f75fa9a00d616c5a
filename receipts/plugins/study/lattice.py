"""Configurations between A and B: those with some counted axes as B and the others as A, and the graph of stored ones.

One of a lattice is the bits of a number, stored or not. In the graph, configurations are joined where they are one axis
apart. The shortest chains come first; each hop is judged when a way needs it, until one holds from end to end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice, pairwise, product
from typing import Any, Final

from receipts import metrics
from receipts.axes.configuration import Configuration
from receipts.axes.effective import OPEN_MAPS, axis_of
from receipts.base.errors import InputError
from receipts.judging.comparison import Request, compare
from receipts.judging.rulebook import Rulebook
from receipts.metrics import Launch
from receipts.plugins.study.chain import Judge, JudgedHop
from receipts.questions.plan import before_run, parse_plan, write_plan
from receipts.questions.preflight import preflight
from receipts.receipt import Document, Parsed, Role
from receipts.receipt.leaves import find_leaf

Changes = dict[str, Any]


class Lattice:
    """The configurations between two receipts as plans: bit n is set where axis n is as B has it.

    What follows an axis, or does not count beside it, moves with it.
    """

    def __init__(self, judge: Judge, rulebook: Rulebook, counted: Sequence[str]) -> None:
        self.axes = tuple(counted)
        self.full = (1 << len(self.axes)) - 1
        self._a, self._b = judge.a, judge.b
        self._lane = judge.lane
        self._store = judge.store
        self._rulebook = rulebook
        self._plans: dict[int, Parsed | str] = {}
        self._efforts: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"Lattice({', '.join(self.axes)})"

    def place(self, item: Configuration) -> int | None:
        """The number of a configuration; None if it has an axis as neither side has it."""
        number = 0
        for at, axis in enumerate(self.axes):
            part = item.parts.get(axis)
            if part == self._b.configuration.parts.get(axis):
                number |= 1 << at
            elif part != self._a.configuration.parts.get(axis):
                return None
        return number

    def moved(self, number: int) -> tuple[str, ...]:
        """The axes that are as B has them."""
        return tuple(axis for at, axis in enumerate(self.axes) if number >> at & 1)

    def whole(self, number: int) -> bytes:
        """What `Configuration.whole` is there, with all that moves along."""
        moved = {item for axis in self.moved(number) for item in (axis, *self._along[axis])}
        return self._a.configuration.mixed(self._b.configuration, moved).whole

    @cached_property
    def _along(self) -> Mapping[str, frozenset[str]]:
        """What moves with each counted axis: each axis that does not count, with the first one that it follows."""
        along: dict[str, set[str]] = {axis: set() for axis in self.axes}
        configuration = self._a.configuration
        for other in sorted(configuration.apart(self._b.configuration) - set(self.axes)):
            heads = [axis for axis in self.axes if other in configuration.followers(axis)]
            along[(heads or list(self.axes))[0]].add(other)
        return {axis: frozenset(items) for axis, items in along.items()}

    @cached_property
    def changes(self) -> Mapping[str, Changes]:
        """Leaves by counted axis, with the values that B typed where A typed others; None takes a leaf out."""
        left, right = dict(_typed(self._a.parsed)), dict(_typed(self._b.parsed))
        changes: dict[str, Changes] = {axis: {} for axis in self.axes}
        heads = {item: axis for axis in self.axes for item in (axis, *self._along[axis])}
        for path in sorted({*left, *right}):
            head = heads.get(axis_of(path.replace("path.intended.", "path.", 1)))
            if head is not None and left.get(path) != right.get(path):
                changes[head][path] = right.get(path)
        return changes

    def plan(self, number: int) -> Parsed | str:
        """The plan of a configuration, typed as A with B's changes; or why there can be none."""
        if number not in self._plans:
            self._plans[number] = self._plan_of(number)
        return self._plans[number]

    def _plan_of(self, number: int) -> Parsed | str:
        changes: Changes = {}
        for axis in self.moved(number):
            if not self.changes[axis]:
                return f"both sides ask for the same {axis}, so that no plan can choose between what they ran"
            changes |= self.changes[axis]
        try:
            raw = write_plan(self._a.parsed, {**changes, "run.label": self.label(number)})
        except InputError as error:
            return "; ".join(f"{problem.at}: {problem.what}" for problem in error.problems)
        return parse_plan(Document(raw, self.label(number)))

    def failure(self, number: int) -> str:
        """Why nothing can be launched there, or is known or predicted to fail; empty if nothing says so."""
        plan = self.plan(number)
        if isinstance(plan, str):
            return plan
        answer = preflight(plan, self._lane, self._store)
        return answer.why if answer.status in ("failed", "predicted") else ""

    def label(self, number: int) -> str:
        """What moved, in short: the last word of each leaf with its value."""
        leaves = [item for axis in self.moved(number) for item in self.changes[axis].items()]
        return ", ".join(f"{path.rpartition('.')[2]} {_short(value)}" for path, value in leaves) or "as A"

    def one_apart(self, one: int, other: int) -> bool:
        """Whether a comparison would count one axis between two plans; True if one of them cannot be written."""
        left, right = self.plan(one), self.plan(other)
        if isinstance(left, str) or isinstance(right, str):
            return True
        verdict = compare([left], [right], self._rulebook, Request())
        return len(verdict.counted) == 1 and not verdict.difference.unknown

    def chip_seconds(self, number: int) -> float | None:
        """About how many chip-seconds a step takes there: the ends' own, by the tokens of a step; None if unknown."""
        return self._tokens(number) * self._per_token if self._per_token is not None else None

    def effort(self, number: int) -> float:
        """What one is cheaper than another by: chip-seconds, else tokens a step."""
        if number not in self._efforts:
            self._efforts[number] = self.chip_seconds(number) or self._tokens(number)
        return self._efforts[number]

    def _tokens(self, number: int) -> float:
        moved = self.moved(number)
        sides = {path: (self._b if path in moved else self._a).parsed for path in _STEP}
        return math.prod((parsed.stated.get(path) or 1 for path, parsed in sides.items()), start=1.0)

    @cached_property
    def _per_token(self) -> float | None:
        """Chip-seconds a token, the mean of the ends that tell it."""
        rates = []
        for end in (self._a.parsed, self._b.parsed):
            step = Launch(end, self._lane).read(metrics.get("step_seconds")).value
            chips = end.stated.get("hardware.chips")
            if step and chips:
                tokens = math.prod((end.stated.get(path) or 1 for path in _STEP), start=1.0)
                rates.append(float(chips) * step / tokens)
        return sum(rates) / len(rates) if rates else None


_STEP: Final = ("batch.global_batch", "batch.sequence_length")


def _typed(parsed: Parsed) -> Iterator[tuple[str, Any]]:
    """Leaves that an experimenter typed, with their values as a plan states them."""
    for section, content in before_run(parsed).items():
        if section in OPEN_MAPS:
            yield from ((f"{section}.{key}", value) for key, value in content.items() if key != "complete")
        elif isinstance(content, dict) and section != "run":
            yield from _leaves(content, f"{section}.")


def _leaves(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        leaf = find_leaf(prefix + key)
        if isinstance(value, dict) and leaf is None:
            yield from _leaves(value, f"{prefix}{key}.")
        elif leaf is not None and leaf.role is Role.AXIS:
            yield prefix + key, value


def _short(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, dict):
        return str(value.get("version", value.get("value", "…")))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text[:12]}…" if len(text) > 24 else text


Edge = tuple[int, int]
Usable = Callable[[Edge], bool]
MAX_CHAINS: Final = 1000  # that are kept apart: six axes in every order are 720


@dataclass(frozen=True)
class Graph:
    """Points by number, and for each the ones that it is joined to, with the axis in which the two differ."""

    links: dict[int, dict[int, str]] = field(default_factory=dict)

    def distances(self, start: int, usable: Usable, *, backward: bool = False) -> dict[int, int]:
        """How many hops each point is from a start, over usable edges; backward, how many it is from there to it."""
        distances = {start: 0}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there in self.links.get(here, ()):
                if there not in distances and usable((there, here) if backward else (here, there)):
                    distances[there] = distances[here] + 1
                    waiting.append(there)
        return distances

    def shortest(self, a: int, b: int, usable: Usable) -> list[Edge]:
        """Every edge of every shortest way over usable edges, the ones nearest to the start first."""
        ahead, behind = self.distances(a, usable), self.distances(b, usable, backward=True)
        length = ahead.get(b)
        if length is None:
            return []
        edges = [
            (here, there)
            for here, steps in ahead.items()
            for there in self.links.get(here, ())
            if steps + 1 + behind.get(there, length) == length and usable((here, there))
        ]
        return sorted(edges, key=lambda edge: (ahead[edge[0]], edge))

    def ways(self, a: int, b: int, edges: Collection[Edge]) -> Iterator[tuple[int, ...]]:
        """Every way from one point to another along these edges, of which no circle can be made."""
        onward: dict[int, list[int]] = {}
        for here, there in sorted(edges):
            onward.setdefault(here, []).append(there)
        waiting: list[tuple[int, ...]] = [(a,)]
        while waiting:
            way = waiting.pop()
            if way[-1] == b:
                yield way
            else:
                waiting += [(*way, there) for there in reversed(onward.get(way[-1], []))]


def graph_of(points: Sequence[Configuration], free: Collection[str] = ()) -> Graph:
    """Points that differ in one axis, and what follows it, are joined; ``free`` axes may differ beside any other."""
    axes = sorted({axis for item in points for axis in item.apart(points[0])})
    keys = [tuple(item.parts.get(axis) for axis in axes) for item in points]
    result = Graph()
    for at, axis in enumerate(axes):
        along = {axis, *points[0].followers(axis), *free}
        kept = [index for index, name in enumerate(axes) if name not in along]
        alike: dict[tuple[object, ...], dict[object, list[int]]] = {}
        for number, key in enumerate(keys):
            values = alike.setdefault(tuple(key[index] for index in kept), {})
            values.setdefault(key[at], []).append(number)
        for values in alike.values():
            for left, right in combinations(values.values(), 2):
                for one, other in product(left, right):
                    result.links.setdefault(one, {}).setdefault(other, axis)
                    result.links.setdefault(other, {}).setdefault(one, axis)
    return result


START: Final = 0
END: Final = 1
MAX_JUDGED_HOPS: Final = 200  # that are judged in one search: six axes in every order have 192
Ask = Callable[[Edge], JudgedHop]


@dataclass
class Search:
    """What was judged of a graph whose points 0 and 1 are the ends, each hop once, in the direction of A to B."""

    graph: Graph
    ask: Ask
    most: int = MAX_JUDGED_HOPS
    judged: dict[Edge, JudgedHop] = field(default_factory=dict)

    @property
    def spent(self) -> bool:
        """Whether no further hop may be judged."""
        return len(self.judged) >= self.most

    def accepted(self, edge: Edge) -> bool:
        """Whether a hop was judged and holds."""
        hop = self.judged.get(edge)
        return hop is not None and hop.verdict.status == "accepted"

    def usable(self, edge: Edge) -> bool:
        """Whether a hop holds, or was not judged yet."""
        return self.judged.get(edge) is None or self.accepted(edge)

    def judge(self, edge: Edge) -> JudgedHop | None:
        """The judgment of a hop; None if no further one may be made."""
        hop = self.judged.get(edge)
        if hop is None and not self.spent:
            hop = self.judged[edge] = self.ask(edge)
        return hop

    def run(self) -> None:
        """Judge until one of the shortest ways holds, and then the other ways of that length.

        Where none holds, every hop of the shortest ways is judged, so that what breaks them can be told.
        """
        while edges := self.graph.shortest(START, END, self.usable):
            way = next(self.graph.ways(START, END, edges))
            if all(self.judge(edge) is not None and self.accepted(edge) for edge in pairwise(way)):
                # What is refused leaves other ways of the same length, of which every hop was asked for as well.
                for edge in self.graph.shortest(START, END, self.usable):
                    self.judge(edge)
                return
            if self.spent:
                break
        for edge in self.graph.shortest(START, END, lambda _: True):
            self.judge(edge)

    def chains(self) -> list[tuple[int, ...]]:
        """The shortest ways of which every hop is accepted, at most `MAX_CHAINS`."""
        edges = self.graph.shortest(START, END, self.accepted)
        return list(islice(self.graph.ways(START, END, edges), MAX_CHAINS))

    def broken(self) -> tuple[int, ...] | None:
        """Of the shortest ways the one with the fewest hops that are refused, then with the fewest open ones."""
        ways = self.graph.ways(START, END, self.graph.shortest(START, END, lambda _: True))
        return min(islice(ways, MAX_CHAINS), key=self._faults, default=None)

    def _faults(self, way: tuple[int, ...]) -> tuple[int, int]:
        hops = [self.judged.get(edge) for edge in pairwise(way)]
        refused = sum(item is not None and item.verdict.status == "rejected" for item in hops)
        return refused, sum(item is None or item.verdict.status == "inconclusive" for item in hops)
