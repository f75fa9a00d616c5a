"""Configurations as points, joined where they are one axis apart; and the shortest ways between two of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Final

from receipts.axes.configuration import Configuration

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


def graph(points: Sequence[Configuration], free: Collection[str] = ()) -> Graph:
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
