"""Delta debugging over the lattice of axes (Zeller, Hildebrandt, IEEE Trans. Software Eng. 28 (2002) 183).

A configuration is a number whose bit n is set where axis n is as the bad side has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["good", "bad", "unknown", "fails"]
Ask = Callable[[int], Outcome]
MOST_AXES: Final = 12


class OutcomeUnknown(Exception):
    """The walk needs the outcome of a configuration that nobody knows."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sets of axes, each of which makes the good side bad, and none of whose parts does.

    A set of two or more acts together. ``inseparable`` are sets of which every part fails, so that they cannot be taken
    apart. ``waiting`` is the configuration whose outcome is needed next, None at the end. ``asked`` are the
    configurations that the walk needed, in order, ends left out.
    """

    sets: tuple[int, ...]
    inseparable: tuple[int, ...]
    waiting: int | None
    asked: tuple[int, ...]


def walk(count: int, ask: Ask, known: Callable[[int], bool] = lambda _: False) -> Explanation:
    """Find what makes the bad side bad among ``count`` axes.

    ``known`` says whether an outcome costs no launch; such configurations are asked first where they divide as well.
    """
    search = _Search((1 << count) - 1, ask, known)
    sets: list[int] = []
    try:
        left = search.full
        while left and search.outcome(left) == "bad":
            smallest = search.smallest(left)
            sets.append(smallest)
            left &= ~smallest
    except OutcomeUnknown as waiting:
        return Explanation(tuple(sets), tuple(search.inseparable), waiting.number, tuple(search.asked))
    return Explanation(tuple(sets), tuple(search.inseparable), None, tuple(search.asked))


class _Search:
    """The outcomes so far. Both ends are known: nothing moved is good, everything moved is bad."""

    def __init__(self, full: int, ask: Ask, known: Callable[[int], bool]) -> None:
        self.full = full
        self.asked: list[int] = []
        self.inseparable: list[int] = []
        self._ask = ask
        self._known = known
        self._outcomes: dict[int, Outcome] = {0: "good", full: "bad"}

    def outcome(self, number: int) -> Outcome:
        """The outcome of a configuration. Raises Waiting where it is not known yet."""
        if number not in self._outcomes:
            answer = self._ask(number)
            if answer != "fails":
                self.asked.append(number)
            if answer == "unknown":
                raise OutcomeUnknown(number)
            self._outcomes[number] = answer
        return self._outcomes[number]

    def smallest(self, bad: int) -> int:
        """A smallest set of moved axes that is bad, within a set that is."""
        needed = 0
        while self.outcome(needed) != "bad":
            group, good = self._needed(needed, bad)
            needed |= group
            bad = needed | good
            if needed == bad:
                break
        return needed

    def _needed(self, base: int, bad: int) -> tuple[int, int]:
        """An axis without which ``bad`` is good, or a group that cannot be divided; and the good set that it joins."""
        good = base
        while _size(bad & ~good) > 1:
            closer = self._closer(base, good, bad)
            if closer is None:
                self.inseparable.append(bad & ~good)
                break
            good, bad = closer
        return bad & ~good, good

    def _closer(self, base: int, good: int, bad: int) -> tuple[int, int] | None:
        """A good and a bad set with fewer axes between them; None where every way to divide these fails."""
        rest = bad & ~good
        for part in self._halves(rest):
            answer = self.outcome(good | part)
            if answer != "fails":
                return (good | part, bad) if answer == "good" else (good, good | part)
        # What fails beside the good axes may run without them.
        alone = (base | part for part in _bits(rest) if self.outcome(base | part) == "bad")
        return next(((base, number) for number in alone), None)

    def _halves(self, rest: int) -> Iterator[int]:
        """Parts of a set, those first that divide it evenly; of these, those whose outcome costs no launch."""
        bits = _bits(rest)
        parts = [
            sum(bit for at, bit in enumerate(bits) if choice >> at & 1) for choice in range(1, (1 << len(bits)) - 1)
        ]
        half = len(bits) / 2.0
        yield from sorted(parts, key=lambda part: (abs(_size(part) - half), not self._known(part), part))


def _bits(number: int) -> list[int]:
    return [1 << at for at in range(number.bit_length()) if number >> at & 1]


def _size(number: int) -> int:
    return number.bit_count()
