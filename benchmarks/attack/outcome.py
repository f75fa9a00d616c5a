"""What came of many hostile inputs, taken in by processes that print it line by line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.attack.forks import MEGABYTES, Ended, forked


class Outcome(NamedTuple):
    """How many inputs ended in which way, what went wrong, and the most that one of them cost."""

    inputs: int
    ends: Counter[str]
    faults: tuple[str, ...]
    megabytes: float
    slowest: float
    seconds: float

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in self.ends.most_common())
        cost = f"slowest {self.slowest:.1f} s, most {self.megabytes:.0f} of {MEGABYTES} MB"
        return f"{self.inputs:,} ({ends}), {cost}, in {self.seconds:.0f} s"


class Tally:
    """What one process counts of its inputs, and prints for `in_parts`."""

    def __init__(self) -> None:
        self._ends = Counter[str]()
        self._slowest = 0.0

    def add(self, end: str, seconds: float) -> None:
        """One input more."""
        self._ends[end] += 1
        self._slowest = max(self._slowest, seconds)

    def fault(self, text: str) -> None:
        """Something that must not be."""
        print(f"\nfault {text[:300]!r}")

    def close(self) -> int:
        """Print what was counted."""
        for end, count in self._ends.items():
            print(f"\nend {count} {end}")
        print(f"\nslowest {self._slowest}")
        return 0


def in_parts(work: Callable[[range], int], inputs: int, at_once: int, seconds: float) -> Outcome:
    """Let processes take the inputs by their numbers, so many each."""
    begun, ends, faults, ended, slowest = time.monotonic(), Counter[str](), list[str](), list[Ended](), 0.0
    for start in range(0, inputs, at_once):
        part = range(start, min(start + at_once, inputs))
        one = forked(lambda: work(part), seconds)  # noqa: B023 — called at once
        ended.append(one)
        faults += [f"{part}: {one.fault}"] if one.fault else []
        for line in one.text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "end":
                count, _, end = rest.partition(" ")
                ends[end] += int(count)
            elif word == "slowest":
                slowest = max(slowest, float(rest))
            elif word == "fault":
                faults.append(rest)
    return outcome(inputs, ends, faults, ended, slowest, begun)


def outcome(
    inputs: int, ends: Counter[str], faults: Sequence[str], ended: Sequence[Ended], slowest: float, begun: float
) -> Outcome:
    """The outcome of processes that ended, begun at a moment of the monotonic clock."""
    most = max((item.megabytes for item in ended), default=0)
    return Outcome(inputs, ends, tuple(faults), most, slowest, time.monotonic() - begun)
