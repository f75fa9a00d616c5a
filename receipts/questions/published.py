"""Published results side by side: the spread of each submission, what two differ in, and how far apart they are.

A submission is what shares one context: a system and a benchmark of one round. Its launches differ in their seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean, median, stdev

from receipts.axes.difference import Difference, difference_under
from receipts.axes.lane import Lane
from receipts.axes.replicates import distinct_steps
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.stats import effect as effects
from receipts.stats.equivalence import Effect

FEWEST = 3  # launches of a side whose own spread gives an interval


@dataclass(frozen=True)
class SubmissionSpread:
    """Launches of one submission, and the step time of each in seconds; those without one are counted only."""

    context: str
    launches: tuple[Parsed, ...]
    seconds: tuple[float, ...]

    @property
    def like(self) -> Parsed:
        """The launch that represents the others: their settings are the same."""
        return self.launches[0]

    @property
    def benchmark(self) -> str:
        """The benchmark's name; empty where no launch states it."""
        return str(self.like.stated.get("model.name", ""))

    @property
    def accelerator(self) -> str:
        """The registry's key of its accelerator, else its name as stated."""
        name = str(self.like.stated.get("hardware.accelerator", ""))
        machine = find_accelerator(name)
        return machine.key if machine is not None else name or "~"

    @cached_property
    def location(self) -> float | None:
        """The median launch, in seconds a step."""
        return median(self.seconds) if self.seconds else None

    @cached_property
    def spread(self) -> float | None:
        """The standard deviation of launches over their mean; None for fewer than two."""
        return stdev(self.seconds) / fmean(self.seconds) if len(self.seconds) > 1 else None


@dataclass(frozen=True)
class SubmissionPair:
    """Two submissions of one benchmark: what differs between them, and the effect of B's launches against A's."""

    a: SubmissionSpread
    b: SubmissionSpread
    apart: Difference
    effect: Effect | None

    @property
    def one_axis(self) -> bool:
        """Whether one stated axis differs, and each is stated by both or by neither."""
        return len(self.apart.changed) == 1 and not self.lopsided

    @property
    def lopsided(self) -> tuple[str, ...]:
        """Axes that one of the two states and the other does not: each may be the one that differs."""
        return tuple(sorted({item.axis for item in self.apart.unknown if item.missing != "both"}))


def submissions(launches: Iterable[Parsed], lane: Lane) -> list[SubmissionSpread]:
    """Launches by submission, in the order of benchmark, accelerator, size and name; a copy counts once."""
    groups: defaultdict[str, list[Parsed]] = defaultdict(list)
    seen: set[object] = set()
    for parsed in launches:
        run = parsed.receipt.run
        names = {run.launch, *distinct_steps(parsed)}
        if run.outcome != "ok" or names & seen:
            continue
        seen |= names
        groups[run.context or run.label or parsed.id].append(parsed)
    listed = [
        SubmissionSpread(context, tuple(group), tuple(_seconds(group, lane))) for context, group in groups.items()
    ]
    return sorted(listed, key=lambda item: (item.benchmark, item.accelerator, _chips(item), item.context))


def pairs(listed: Sequence[SubmissionSpread], lane: Lane) -> Iterator[SubmissionPair]:
    """Every two submissions of one benchmark, those that differ in the fewest axes first."""
    compared = [
        pair_of(a, b, lane)
        for a, b in combinations(listed, 2)
        if a.benchmark == b.benchmark and a.accelerator == b.accelerator
    ]
    yield from sorted(compared, key=lambda item: (len(item.lopsided) + len(item.apart.changed), item.a.context))


def pair_of(a: SubmissionSpread, b: SubmissionSpread, lane: Lane) -> SubmissionPair:
    """What differs between two submissions; their effect where both have launches enough."""
    enough = min(len(a.seconds), len(b.seconds)) >= FEWEST
    effect = effects.compare(a.seconds, b.seconds, better="lower") if enough else None
    return SubmissionPair(a, b, difference_under(lane, a.like, b.like), effect)


def _seconds(group: Sequence[Parsed], lane: Lane) -> Iterator[float]:
    for parsed in group:
        seconds = Launch(parsed, lane).step_seconds
        if seconds is not None:
            yield seconds


def _chips(item: SubmissionSpread) -> int:
    return int(item.like.stated.get("hardware.chips") or 0)
