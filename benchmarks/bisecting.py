"""Bisecting over axes, measured: `python -m benchmarks.bisecting [--draws 2000]`.

Each draw is a lattice of axes with causes at random places: launches of a configuration take the time that its causes
give, with 0.4 % of noise, and its outcome is the effect verdict on them, as in `receipts bisect`. Where the verdict is
ambiguous, more launches are drawn. In the last kind, a quarter of the other configurations fails.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from receipts.plugins.study.bisection import Explanation, Outcome, walk
from receipts.stats.effect import compare

SIGMA, DELTA = 0.004, 0.01
MIN_LAUNCHES, MAX_LAUNCHES = 3, 40  # launches of a configuration
AXES = 6


@dataclass
class Lattice:
    """Axes with causes: sets that act where all of their axes moved, each with the log of its ratio."""

    count: int
    causes: Sequence[tuple[int, float]]
    rng: random.Random
    failing: frozenset[int] = frozenset()
    _good: list[float] = field(default_factory=list)

    def outcome(self, number: int) -> Outcome:
        """As `receipts bisect` asks: the effect of the launches there against the good side."""
        if number in self.failing:
            return "fails"
        self._good = self._good or self._launches(0, 10)
        launches: list[float] = []
        while len(launches) < MAX_LAUNCHES:
            launches += self._launches(number, MIN_LAUNCHES)
            kind = compare(self._good, launches, better="lower", delta=DELTA).kind
            if kind in ("slower", "faster", "equivalent"):
                return "bad" if kind == "slower" else "good"
        return "unknown"

    def _launches(self, number: int, count: int) -> list[float]:
        log = math.fsum(size for axes, size in self.causes if number & axes == axes)
        return [math.exp(log + self.rng.gauss(0.0, SIGMA)) for _ in range(count)]


def _axes(rng: random.Random, count: int, *sizes: int) -> list[int]:
    """Disjoint sets of axes of these sizes."""
    order = iter(rng.sample(range(count), sum(sizes)))
    return [sum(1 << next(order) for _ in range(size)) for size in sizes]


def drawn(rng: random.Random, count: int, *sizes: int) -> Lattice:
    """Causes of these sizes, each 3 to 10 % slower."""
    return Lattice(count, [(axes, rng.uniform(0.03, 0.1)) for axes in _axes(rng, count, *sizes)], rng)


def masked(rng: random.Random) -> Lattice:
    """A cause, and an axis that takes a third of it back."""
    one, other = _axes(rng, AXES, 1, 1)
    return Lattice(AXES, [(one, size := rng.uniform(0.05, 0.1)), (other, -size / 3.0)], rng)


def with_failures(rng: random.Random) -> Lattice:
    """A cause, where a quarter of the configurations between the two sides fails."""
    lattice = drawn(rng, AXES, 1)
    between = [number for number in range(1, (1 << AXES) - 1) if number != lattice.causes[0][0]]
    lattice.failing = frozenset(rng.sample(between, len(between) // 4))
    return lattice


def kinds() -> Iterator[tuple[str, Callable[[random.Random], Lattice]]]:
    """What is drawn, by name."""
    for count in (2, 3, 4, 6, 8, 12):
        yield f"{count} axes, one cause", lambda rng, count=count: drawn(rng, count, 1)
    for name, sizes in (
        ("two causes", (1, 1)),
        ("three causes", (1, 1, 1)),
        ("two axes that interact", (2,)),
        ("three axes that interact", (3,)),
        ("a cause, and two axes that interact", (1, 2)),
    ):
        yield f"{AXES} axes, {name}", lambda rng, sizes=sizes: drawn(rng, AXES, *sizes)
    yield f"{AXES} axes, one cause and one gain", masked
    yield f"{AXES} axes, one cause, a quarter fails", with_failures


def right(lattice: Lattice, explained: Explanation) -> bool:
    """Whether exactly the causes are named; among failing configurations, a set that cannot be divided may hold one."""
    causes = {axes for axes, size in lattice.causes if size > 0.0}
    if set(explained.sets) == causes:
        return True
    cause = next(iter(causes))
    return bool(lattice.failing) and any(item & cause for item in explained.inseparable)


def main() -> int:
    """Print the share of draws that are explained and the steps; 1 where one is not, or takes too many."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisecting", description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    rng = random.Random(25)
    missed = 0
    for name, draw in kinds():
        good, apart, steps, bound = 0, 0, list[int](), math.inf
        for _ in range(options.draws):
            lattice = draw(rng)
            explained = walk(lattice.count, lattice.outcome)
            good += right(lattice, explained)
            apart += bool(explained.inseparable)
            steps.append(len(explained.asked))
            if len(lattice.causes) == 1 and lattice.causes[0][0].bit_count() == 1:
                bound = 2.0 * math.log2(lattice.count) + 2.0
        over = sum(count > bound for count in steps)
        missed += options.draws - good + over
        among = f" ({apart} within a set that cannot be divided)" if apart else ""
        most = f", of at most {bound:.1f}: {over} over" if bound < math.inf else ""
        mean = sum(steps) / len(steps)
        print(f"{name}: {good} of {options.draws} explained{among}; steps: mean {mean:.1f}, most {max(steps)}{most}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
