"""Distinct numbers in the order in which they came, each with its place: as long as they ascend, without objects."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import Final

_LARGEST: Final = (1 << 63) - 1


class Rows:
    """Numbers and their places. A log counts its steps upwards, nearly always: then a place is found by halving."""

    __slots__ = ("_ascending", "_places")

    def __init__(self) -> None:
        self._ascending = array("q")
        self._places: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._ascending) if self._places is None else len(self._places)

    def __iter__(self) -> Iterator[int]:
        """The numbers in the order in which they came."""
        return iter(self._ascending if self._places is None else self._places)

    def place(self, number: int) -> int | None:
        """The place of a number, or None where it never came."""
        if self._places is not None:
            return self._places.get(number)
        at = bisect_left(self._ascending, number)
        return at if at < len(self._ascending) and self._ascending[at] == number else None

    def beyond(self, number: int) -> bool:
        """Whether all numbers ascend and one more is greater than all of them."""
        return self._places is None and (not self._ascending or number > self._ascending[-1])

    def run(self, numbers: Sequence[int]) -> int | None:
        """The place of the first of some ascending numbers that all came, side by side; else None."""
        first = self.place(numbers[0])
        if self._places is not None or first is None or numbers[-1] >= _LARGEST:
            return None
        return first if self._ascending[first : first + len(numbers)] == array("q", numbers) else None

    def extend(self, numbers: Sequence[int]) -> None:
        """Give places to numbers that have none yet."""
        if not numbers:
            return
        if (
            self.beyond(numbers[0])
            and rising(numbers, numbers[0] - 1)
            and -_LARGEST < numbers[0] <= numbers[-1] < _LARGEST
        ):
            self._ascending.extend(numbers)
            return
        if self._places is None:
            self._places = {number: place for place, number in enumerate(self._ascending)}
            self._ascending = array("q")
        self._places.update(zip(numbers, range(len(self._places), len(self._places) + len(numbers)), strict=True))

    def sorted(self) -> list[int]:
        """The numbers, ascending."""
        return self._ascending.tolist() if self._places is None else sorted(self._places)

    def by_number(self) -> Iterable[int] | None:
        """The places in the order of the numbers; None where they lie in it."""
        return None if self._places is None else (place for _, place in sorted(self._places.items()))


def rising(numbers: Sequence[int], above: int) -> bool:
    """Whether each number is greater than the one before it, and the first one than ``above``."""
    return not numbers or (numbers[0] > above and all(map(lt, numbers, islice(numbers, 1, None))))
