"""The table of a difference: each class of B less that of A, in exact fractions of nanoseconds, and what may be said.

A side's step is the mean over its launches of the mean over its ranks of the mean over the kept steps: means add up,
medians do not. The noise of a line is the spread between launches where each side has two that were traced; steps of
one launch are no sample of launches, so that with one each a line has only *moved in these two traces*.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Final, Literal, TypeVar

from receipts.plugins.why.classes import kind_of, place_of
from receipts.plugins.why.profile import WAIT, Profile

Standing = Literal["consistent", "unexpected", "moved", "noise"]
_Key = TypeVar("_Key")  # a class, or one with a kernel
ANY: Final = "any"
MIN_SHARE: Final = Fraction(1, 100)  # of the step, of a line that two traced launches a side show
ONE_SHARE: Final = Fraction(3, 100)  # of one that one launch a side shows
ONE_OF_EFFECT: Final = Fraction(1, 3)
ERRORS: Final = 3  # standard errors: a table has some ten lines, of which none may stand out by chance
_COMMON: Final = 0.8
_SAME_RATIO: Final = 0.01
_SMALL: Final = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class TracedLaunch:
    """One launch of a side, with the profiles of its ranks or devices; several of one rank are pooled."""

    receipt: str
    name: str
    profiles: Mapping[str, Sequence[Profile]]

    def mean(self, ranks: Iterable[str]) -> dict[str, Fraction]:
        """The mean step by class over some ranks."""
        return self._mean(ranks, lambda own: [pair for step in self._by_class(own) for pair in step.items()])

    def rows(self, ranks: Iterable[str]) -> dict[tuple[str, str], Fraction]:
        """The mean step by class and kernel; those beyond the profile's bound are one of each class, without a name."""
        return self._mean(ranks, lambda own: [((row.of, row.name), row.time) for row in own.rows])

    def steps(self, ranks: Iterable[str]) -> list[dict[str, int]]:
        """The kept steps by class, of all the ranks."""
        return [step for rank in ranks for profile in self.profiles[rank] for step in self._by_class(profile)]

    @staticmethod
    def _by_class(profile: Profile) -> list[dict[str, int]]:
        return [dict(zip(profile.classes, step.times, strict=True)) for step in profile.kept]

    def _mean(
        self, ranks: Iterable[str], times: Callable[[Profile], Iterable[tuple[_Key, int]]]
    ) -> dict[_Key, Fraction]:
        """The mean over ranks of the mean over the kept steps of each."""
        chosen, sums = list(ranks), defaultdict[_Key, Fraction](Fraction)
        for rank in chosen:
            count = sum(len(profile.kept) for profile in self.profiles[rank]) * len(chosen)
            whole = Counter[_Key]()
            for profile in self.profiles[rank]:
                for key, time in times(profile):
                    whole[key] += time
            for key, time in whole.items():
                sums[key] += Fraction(time, count)
        return dict(sums)


@dataclass(frozen=True, slots=True)
class Line:
    """A class on both sides, nanoseconds a step. ``noise`` is what its change has to exceed; ``axis`` what it fits."""

    name: str
    a: Fraction
    b: Fraction
    noise: Fraction
    standing: Standing = "noise"
    axis: str = ""
    rows: tuple[tuple[str, Fraction, Fraction], ...] = ()
    note: str = ""

    @property
    def change(self) -> Fraction:
        """B less A."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Difference:
    """The whole table: its lines add up to the traced difference, exactly. ``ranks`` are those that both sides have."""

    lines: tuple[Line, ...]
    ranks: tuple[str, ...]
    paired: bool  # two traced launches a side
    a: Fraction
    b: Fraction
    common: float | None = None  # the ratio by which nearly all classes moved alike
    still: tuple[str, ...] = ()  # axes of which no line moved
    slowest: tuple[str, str] = ("", "")

    @property
    def change(self) -> Fraction:
        """The traced difference of a step."""
        return self.b - self.a


def difference(
    a: Sequence[TracedLaunch], b: Sequence[TracedLaunch], effect: Fraction | None, axes: Sequence[str]
) -> Difference:
    """The table of two sides that share a rank. ``effect`` is the measured difference, ``axes`` what changed."""
    ranks = common_ranks(a, b)
    means = [[launch.mean(ranks) for launch in side] for side in (a, b)]
    steps = [[step for launch in side for step in launch.steps(ranks)] for side in (a, b)]
    kernels = [_over([launch.rows(ranks) for launch in side]) for side in (a, b)]
    left, right = map(_over, means)
    whole_a, whole_b = sum(left.values(), Fraction(0)), sum(right.values(), Fraction(0))
    paired = len(a) > 1 and len(b) > 1
    sets = _moved_by(axes)
    longer = max(whole_a, whole_b)
    bar = max(ONE_SHARE * longer, ONE_OF_EFFECT * abs(effect or Fraction(0)))
    lines = []
    for name in sorted({*left, *right}, key=place_of):
        own, other = left.get(name, Fraction(0)), right.get(name, Fraction(0))
        noise = ERRORS * _error([[step.get(name, 0) for step in side] for side in steps])
        if paired:
            # Two launches may agree by chance: what their own steps leave open is noise, too.
            of_launches = [[mean.get(name, Fraction(0)) for mean in side] for side in means]
            noise = max(noise, *(2 * (max(values) - min(values)) for values in of_launches))
        beyond = abs(other - own) > max(noise, MIN_SHARE * longer if paired else bar)
        standing, axis = _standing(name, sets) if beyond else ("noise", "")
        lines.append(Line(name, own, other, noise, standing, axis, _rows(kernels, name)))
    moved = {line.name for line in lines if line.standing != "noise"}
    others = (line for line in lines if kind_of(line.name) in ("idle", "communication") and line.name in moved)
    largest = max((abs(line.change) for line in others), default=Fraction(0))
    # A change of products beside a larger one of gaps or communication may follow from it: the clock, the caches.
    lines = [
        replace(line, note="may be feedback (clock, cache)")
        if line.name == "gemm" and line.name in moved and largest > abs(line.change)
        else line
        for line in lines
    ]
    still = tuple(axis for axis, names in sets.items() if names and ANY not in names and not moved & names)
    slowest = _slowest(a), _slowest(b)
    return Difference(tuple(lines), ranks, paired, whole_a, whole_b, _common(lines, whole_a), still, slowest)


def common_ranks(a: Sequence[TracedLaunch], b: Sequence[TracedLaunch]) -> tuple[str, ...]:
    """The ranks of which every launch of both sides has a profile."""
    shared = set.intersection(*(set(launch.profiles) for launch in (*a, *b)))
    return tuple(sorted(shared, key=lambda rank: (len(rank), rank)))


def _over(launches: Sequence[Mapping[_Key, Fraction]]) -> dict[_Key, Fraction]:
    """The mean over launches."""
    sums: dict[_Key, Fraction] = {}
    for launch in launches:
        for name, time in launch.items():
            sums[name] = sums.get(name, Fraction(0)) + time / len(launches)
    return sums


def _error(sides: Iterable[Sequence[int]]) -> Fraction:
    """The standard error of a line by its steps."""
    variance = 0.0
    for values in sides:
        mean = sum(values) / len(values)
        variance += sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1) / len(values)
    return Fraction(round(variance**0.5))


def _rows(sides: Sequence[Mapping[tuple[str, str], Fraction]], name: str) -> tuple[tuple[str, Fraction, Fraction], ...]:
    """The kernels of a class on both sides, by how much they changed; they add up to it."""
    own, other = ({kernel: time for (of, kernel), time in side.items() if of == name} for side in sides)
    pairs = [(kernel, own.get(kernel, Fraction(0)), other.get(kernel, Fraction(0))) for kernel in {*own, *other}]
    return tuple(sorted(pairs, key=lambda row: (-abs(row[2] - row[1]), row[0])))


def _standing(name: str, sets: Mapping[str, frozenset[str]]) -> tuple[Standing, str]:
    fits = [axis for axis, names in sets.items() if name in names or ANY in names]
    if fits:
        return "consistent", ", ".join(fits)
    if sets and all(sets.values()):
        return "unexpected", ""
    return "moved", ""


def _moved_by(axes: Sequence[str]) -> dict[str, frozenset[str]]:
    """The classes that each axis may move; none where the table does not know the axis."""
    table = tomllib.loads(Path(__file__).with_name("axes.toml").read_text())
    sets = dict.fromkeys(axes, frozenset[str]())
    for axis in sets:
        for item in table["axis"]:
            if any(fnmatchcase(axis.lower(), pattern.lower()) for pattern in item["axes"]):
                sets[axis] = frozenset(name for move in item["moves"] for name in table["groups"].get(move, [move]))
                break
    return sets


def _common(lines: Sequence[Line], whole: Fraction) -> float | None:
    """The ratio by which nearly all computing classes moved, where it is one ratio and not 1."""
    ratios = [float(line.b / line.a) for line in lines if kind_of(line.name) == "compute" and line.a > _SMALL * whole]
    if len(ratios) < 3:
        return None
    middle = median(ratios)
    alike = sum(abs(ratio / middle - 1) <= _SAME_RATIO for ratio in ratios)
    return middle if alike >= _COMMON * len(ratios) and abs(middle - 1) > _SAME_RATIO else None


def _slowest(side: Sequence[TracedLaunch]) -> str:
    """The rank with the longest mean step of the first launch, less its waits; empty where there is one rank."""
    launch = side[0]
    if len(launch.profiles) < 2:
        return ""

    def working(rank: str) -> Fraction:
        mean = launch.mean([rank])
        return sum(mean.values(), Fraction(0)) - mean.get(WAIT, 0)

    return max(sorted(launch.profiles), key=working)
