"""The first of many values, and how many more there are: a page would drown in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Cut(Generic[T_co]):
    """The values that are shown, and how many ``more`` there are."""

    shown: tuple[T_co, ...] = ()
    more: int = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.shown) + self.more

    def map(self, show: Callable[[T_co], T]) -> Cut[T]:
        """The same with every value as another."""
        return Cut(tuple(map(show, self.shown)), self.more)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.shown)

    def __len__(self) -> int:
        return len(self.shown)

    def __getitem__(self, place: Any) -> Any:
        return self.shown[place]


def cut(values: Iterable[T_co], most: int) -> Cut[T_co]:
    """The first so many."""
    every = tuple(values)
    return Cut(every[:most], max(0, len(every) - most))
