"""Looking for chains and for the cheapest runs, against every way tried by hand."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipts.plugins.study.chain import Hop, JudgedHop, Values, gain_of, gain_together
from receipts.plugins.study.lattice import Edge, Graph, Lattice, Search
from receipts.plugins.study.missing_runs import Ground, launches_needed, launches_to_settle
from receipts.receipt import Parsed
from receipts.stats.log_ratio import Sigma
from thorough import unless_thorough

STATUSES = ("accepted", "accepted", "accepted", "inconclusive", "rejected")


def cube(axes: int) -> tuple[Graph, dict[int, int]]:
    """Every corner of a cube, 0 and 1 being its ends; and the corner of each point."""
    corners = [0, (1 << axes) - 1, *range(1, (1 << axes) - 1)]
    number = {corner: at for at, corner in enumerate(corners)}
    made = Graph()
    for corner, bit in itertools.product(corners, range(axes)):
        made.links.setdefault(number[corner], {})[number[corner ^ 1 << bit]] = f"axis{bit}"
    return made, dict(enumerate(corners))


def verdict(status: str) -> JudgedHop:
    return JudgedHop(cast("Any", SimpleNamespace(status=status)), None)


def ways(graph: Graph, most: int) -> list[tuple[int, ...]]:
    """Every way from 0 to 1 that visits no point twice, of at most so many hops."""
    found, waiting = [], [(0,)]
    while waiting:
        way: Any = waiting.pop()
        if way[-1] == 1:
            found.append(way)
        elif len(way) <= most:
            waiting += [(*way, there) for there in graph.links[way[-1]] if there not in way]
    return found


@pytest.mark.slow
@settings(max_examples=unless_thorough(80, 300))
@given(st.integers(1, 3), st.data())
def test_the_chains_are_the_shortest_ways_of_which_every_hop_is_accepted(axes: int, data: st.DataObject) -> None:
    graph, _ = cube(axes)
    status: dict[Edge, str] = {}

    def ask(edge: Edge) -> JudgedHop:
        status[edge] = status.get(edge[::-1]) or data.draw(st.sampled_from(STATUSES))
        return verdict(status[edge])

    search = Search(graph, ask)
    search.run()
    found = search.chains()
    assert all(status[edge] == "accepted" for way in found for edge in pairwise(way))
    usable = [way for way in ways(graph, 8) if all(search.usable(edge) for edge in pairwise(way))]
    if not found:
        assert all(any(edge not in status for edge in pairwise(way)) for way in usable)
        assert usable == []
    else:
        shortest = min(map(len, usable))
        assert {len(way) for way in found} == {shortest}
        assert set(found) == {way for way in usable if len(way) == shortest}


def test_a_search_judges_no_hop_twice_and_none_beyond_what_it_may() -> None:
    graph, _ = cube(3)
    asked: list[Edge] = []

    def ask(edge: Edge) -> JudgedHop:
        asked.append(edge)
        return verdict("accepted")

    search = Search(graph, ask, most=7)
    search.run()
    assert len(asked) == len(set(asked)) == 7
    assert search.spent
    assert all(edge in search.judged for way in search.chains() for edge in pairwise(way))


class Flat:
    """A lattice whose runs all cost the same, but for those of one axis."""

    def __init__(self, axes: int, effort: dict[int, float], failing: frozenset[int]) -> None:
        self.axes = tuple(f"axis{bit}" for bit in range(axes))
        self.full = (1 << axes) - 1
        self._effort = effort
        self._failing = failing

    def effort(self, number: int) -> float:
        return self._effort.get(number, 1.0)

    def label(self, number: int) -> str:
        return f"{number:b}"

    def plan(self, number: int) -> Parsed | str:
        return cast("Parsed", SimpleNamespace(number=number))

    def failure(self, number: int) -> str:
        return "ran out of memory" if number in self._failing else ""

    def one_apart(self, here: int, there: int) -> bool:
        return True


class Known:
    """Hops that were judged."""

    def __init__(self, hops: dict[Edge, str]) -> None:
        self.hops = hops

    def known(self, here: int, there: int) -> Hop | None:
        status = self.hops.get((here, there))
        if status is None:
            return None
        return cast("Hop", SimpleNamespace(accepted=status == "accepted", verdict=SimpleNamespace(status=status)))

    def judge(self, here: int, there: int) -> Hop | None:
        return self.known(here, there)


@pytest.mark.slow
@settings(max_examples=unless_thorough(80, 300))
@given(st.integers(1, 4), st.data())
def test_the_cheapest_runs_are_the_fewest_that_any_order_needs(axes: int, data: st.DataObject) -> None:
    full = (1 << axes) - 1
    corners = st.frozensets(st.integers(1, max(1, full - 1)))
    stored = {0, full} | (data.draw(corners) - {full} if axes > 1 else set())
    failing = frozenset(data.draw(corners)) - stored
    effort = data.draw(st.dictionaries(st.integers(0, full), st.sampled_from((1.0, 2.0, 0.5))))
    hops = {
        (here, here | 1 << bit): data.draw(st.sampled_from(STATUSES))
        for here in stored
        for bit in range(axes)
        if here | 1 << bit in stored and not here >> bit & 1
    }
    known = Known(hops)
    lattice = Flat(axes, effort, failing)
    ground = Ground(cast("Lattice", lattice), dict.fromkeys(stored, cast("Any", None)), {}, known)
    way = ground.route()
    while way is not None and ground.learn(way):
        way = ground.route()

    costs = []
    for order in itertools.permutations(range(axes)):
        here, cost = 0, [0.0, 0.0, 0.0, 0.0]
        for bit in order:
            there = here | 1 << bit
            status = hops.get((here, there))
            cost[0] += there in failing
            cost[1] += there not in stored
            cost[2] += status == "inconclusive"
            cost[3] += effort.get(there, 1.0) if there not in stored else 0.0
            cost[0] += math.inf if status == "rejected" else 0
            here = there
        costs.append(cost)
    best = min(costs)
    if math.isinf(best[0]):
        assert way is None
        return
    assert way is not None
    assert sum(number in failing for number in way) == best[0]
    assert sum(number not in stored for number in way) == best[1]
    assert sum(hops.get(edge) == "inconclusive" for edge in pairwise(way)) == best[2]
    assert math.isclose(sum(effort.get(number, 1.0) for number in way if number not in stored), best[3])


logs = st.lists(st.floats(-1, 1), min_size=1, max_size=5).map(tuple)
sides = st.builds(Values, logs, st.just(True))


@given(st.lists(sides, min_size=2, max_size=6))
def test_gains_telescope_whatever_the_launches(places: list[Values]) -> None:
    steps = [gain_of(here, there, None) for here, there in pairwise(places)]
    whole = gain_of(places[0], places[-1], None)
    assert whole is not None
    assert math.isclose(math.fsum(step.log for step in steps if step is not None), whole.log, abs_tol=1e-12)


@given(sides, sides, sides, sides)
def test_an_interaction_is_what_one_axis_gains_by_the_other_either_way(
    a: Values, x: Values, y: Values, b: Values
) -> None:
    joint = gain_together((a, x, y, b), Sigma(0.01, 5.0, "measured"))
    pairs = [gain_of(y, b, None), gain_of(a, x, None), gain_of(x, b, None), gain_of(a, y, None)]
    over_x, alone_x, over_y, alone_y = (item.log for item in pairs if item is not None)
    assert joint is not None
    assert joint.low is not None
    assert joint.high is not None
    assert math.isclose(joint.log, over_x - alone_x, abs_tol=1e-12)
    assert math.isclose(joint.log, over_y - alone_y, abs_tol=1e-12)
    assert joint.low <= joint.log <= joint.high


def test_stated_numbers_have_a_gain_and_no_interval() -> None:
    stated, measured = Values((0.5,), False), Values((0.1, 0.2, 0.3), True)
    found = gain_of(measured, stated, Sigma(0.01, 5.0, "measured"))
    assert found is not None
    assert (found.interval, found.measured) == (None, False)
    assert gain_of(measured, Values((), False), None) is None
    joint = gain_together((measured, measured, measured, stated), None)
    assert joint is not None
    assert joint.interval is None


def test_a_wider_floor_asks_for_more_launches_and_never_for_fewer_than_three() -> None:
    counts = [launches_needed(Sigma(sigma, None, "measured"), 0.01) for sigma in (0.0005, 0.004, 0.01, 0.02)]
    assert counts == sorted(counts)
    assert counts[0] == launches_needed(None, None) == 3
    assert counts[-1] > 10


def test_no_run_is_asked_for_that_a_comparison_would_not_read() -> None:
    def effect(kind: str, needed: int | None) -> Any:
        return SimpleNamespace(kind=kind, needed=needed)

    assert launches_to_settle(None) == launches_to_settle(effect("unproven", None)) == (3, "")
    assert launches_to_settle(effect("ambiguous", 12)) == (12, "")
    for needed in (201, 800, None):  # none of an ambiguous one is more than a thousand
        count, beyond = launches_to_settle(effect("ambiguous", needed))
        assert count == 200
        assert "at most 200 launches per side" in beyond
    assert launches_needed(Sigma(0.5, None, "measured"), 0.001) == 200
