"""The graph of configurations, joined where they are one axis apart, and the search for chains in it.

The shortest ways come first; each hop is judged when a way needs it, until one holds from end to end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise, product
from typing import Final

from receipts.axes.configuration import Configuration
from receipts.plugins.study.chain import JudgedHop

Edge = tuple[int, int]
Usable = Callable[[Edge], bool]
MOST_CHAINS: Final = 1000  # that are kept apart: six axes in every order are 720


@dataclass(frozen=True)
class Graph:
    """Points by number, and for each the ones that it is joined to, with the axis in which the two differ."""

    links: dict[int, dict[int, str]] = field(default_factory=dict)

    def axis(self, edge: Edge) -> str:
        """The axis in which two joined points differ."""
        return self.links[edge[0]][edge[1]]

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
        """The judgment of a hop; None where no further one may be made."""
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
            if all(self._holds(edge) for edge in pairwise(way)):
                self._rest()
                return
            if self.spent:
                break
        for edge in self.graph.shortest(START, END, lambda _: True):
            self.judge(edge)

    def chains(self) -> list[tuple[int, ...]]:
        """The shortest ways of which every hop is accepted, at most `MOST_CHAINS`."""
        edges = self.graph.shortest(START, END, self.accepted)
        return list(islice(self.graph.ways(START, END, edges), MOST_CHAINS))

    def broken(self) -> tuple[int, ...] | None:
        """Of the shortest ways the one with the fewest hops that are refused, then with the fewest open ones."""
        ways = self.graph.ways(START, END, self.graph.shortest(START, END, lambda _: True))
        return min(islice(ways, MOST_CHAINS), key=self._faults, default=None)

    def _faults(self, way: tuple[int, ...]) -> tuple[int, int]:
        hops = [self.judged.get(edge) for edge in pairwise(way)]
        refused = sum(item is not None and item.verdict.status == "rejected" for item in hops)
        return refused, sum(item is None or item.verdict.status == "inconclusive" for item in hops)

    def _holds(self, edge: Edge) -> bool:
        self.judge(edge)
        return self.accepted(edge)

    def _rest(self) -> None:
        # What is refused leaves other ways of the same length, of which every hop was asked for as well.
        for edge in self.graph.shortest(START, END, self.usable):
            self.judge(edge)
