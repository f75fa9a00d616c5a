"""Bisecting over axes: the walk always ends at the culprits, and a store answers it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations

import pytest

from command_line import Shell, shell
from grid_store import Grid, keep
from receipts.plugins.study.bisection import Outcome, walk
from receipts.store import open_store

pytestmark = pytest.mark.slow

__all__ = ["shell"]
AXES = 6


def bad_if(*sets: int) -> Callable[[int], Outcome]:
    return lambda number: "bad" if any(number & item == item for item in sets) else "good"


def test_one_culprit_takes_at_most_twice_the_log_and_two_steps() -> None:
    for count in range(1, 13):
        for at in range(count):
            explained = walk(count, bad_if(1 << at))
            assert explained.sets == (1 << at,)
            assert len(explained.asked) <= 2.0 * math.log2(count) + 2.0


def test_two_culprits_and_interacting_ones_are_always_found() -> None:
    for a, b in combinations(range(AXES), 2):
        assert set(walk(AXES, bad_if(1 << a, 1 << b)).sets) == {1 << a, 1 << b}
        assert walk(AXES, bad_if(1 << a | 1 << b)).sets == (1 << a | 1 << b,)


def test_what_fails_is_walked_around() -> None:
    rng = random.Random(3)
    for _ in range(200):
        culprit = 1 << rng.randrange(AXES)
        failing = set(rng.sample(range(1, 63), 20)) - {culprit}

        def ask(number: int, culprit: int = culprit, failing: set[int] = failing) -> Outcome:
            return "fails" if number in failing else bad_if(culprit)(number)

        assert walk(AXES, ask).sets == (culprit,)


def test_the_walk_waits_for_what_nobody_knows() -> None:
    explained = walk(4, lambda _: "unknown")
    assert explained.waiting is not None
    assert explained.sets == ()


VALUES = {f"flags.{name}": ("0", "1") for name in ("ALPHA", "BETA", "GAMMA", "DELTA")}


@pytest.mark.parametrize(
    ("factors", "joint", "expected"),
    [
        ({"flags.BETA": 1.05}, {}, [["flags.BETA"]]),
        ({"flags.BETA": 1.05, "flags.DELTA": 1.04}, {}, [["flags.BETA"], ["flags.DELTA"]]),
        ({}, {frozenset({"flags.ALPHA", "flags.GAMMA"}): 1.05}, [["flags.ALPHA", "flags.GAMMA"]]),
    ],
)
def test_a_store_is_asked_step_by_step(
    shell: Shell, factors: dict[str, float], joint: dict[frozenset[str], float], expected: list[list[str]]
) -> None:
    grid = Grid(VALUES, {**dict.fromkeys(VALUES, 1.0), **factors}, joint)
    path = str(shell.folder / "store.sqlite")
    with open_store(path, create=True) as store:
        ends = grid.put(store, [(), tuple(VALUES)])
        good, bad = (ends[frozenset(corner)][0].id for corner in ((), tuple(VALUES)))
    said = shell("bisect", good, bad, "--plan", "steps", "--json")
    for _ in range(12):
        if said.code != 3:
            break
        assert (shell.folder / said.json["plan"]).exists()
        moved = said.json["steps"][-1]["moved"]
        with open_store(path) as store:
            keep(store, [grid.launch(moved) for _ in range(3)])
        said = shell("bisect", good, bad, "--plan", "steps", "--json")
    assert said.code == 0, said.err
    assert sorted(map(sorted, said.json["sets"])) == expected
    assert expected[0][0] in shell("bisect", good, bad).out


def test_equal_sides_have_nothing_to_explain(shell: Shell) -> None:
    grid = Grid(VALUES, dict.fromkeys(VALUES, 1.0))
    with open_store(str(shell.folder / "store.sqlite"), create=True) as store:
        ends = grid.put(store, [(), ("flags.BETA",)])
        ids = [group[0].id for group in ends.values()]
        same = ends[frozenset()][1].id
    said = shell("bisect", *ids)
    assert said.code == 1
    assert "nothing to explain" in said.out
    assert "differ in no axis" in shell("bisect", ids[0], same).err
