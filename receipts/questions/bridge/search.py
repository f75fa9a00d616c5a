"""Looking for chains: the shortest ways first, each hop judged when a way needs it, until one holds from end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Final

from receipts.questions.bridge.graph import MOST_CHAINS, Edge, Graph
from receipts.questions.bridge.point import JudgedHop

A: Final = 0
B: Final = 1
MOST_HOPS: Final = 200  # that are judged in one search: six axes in every order have 192
Ask = Callable[[Edge], JudgedHop]


@dataclass
class Search:
    """What was judged of a graph whose points 0 and 1 are the ends, each hop once, in the direction of A to B."""

    graph: Graph
    ask: Ask
    most: int = MOST_HOPS
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
        while edges := self.graph.shortest(A, B, self.usable):
            way = next(self.graph.ways(A, B, edges))
            if all(self._holds(edge) for edge in pairwise(way)):
                self._rest()
                return
            if self.spent:
                break
        for edge in self.graph.shortest(A, B, lambda _: True):
            self.judge(edge)

    def chains(self) -> list[tuple[int, ...]]:
        """The shortest ways of which every hop is accepted, at most `MOST_CHAINS`."""
        edges = self.graph.shortest(A, B, self.accepted)
        return list(islice(self.graph.ways(A, B, edges), MOST_CHAINS))

    def broken(self) -> tuple[int, ...] | None:
        """Of the shortest ways the one with the fewest hops that are refused, then with the fewest open ones."""
        ways = self.graph.ways(A, B, self.graph.shortest(A, B, lambda _: True))
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
        for edge in self.graph.shortest(A, B, self.usable):
            self.judge(edge)
