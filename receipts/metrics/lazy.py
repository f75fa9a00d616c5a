"""Sequences made as far as somebody looks: the first of several statistics is mostly the one that was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Lazy(Generic[Item]):
    """What an iterator gives, kept: it can be gone through again, and by several at once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._kept: list[Item] = []
        self._rest = iter(items)

    def __iter__(self) -> Iterator[Item]:
        place = 0
        while True:
            if place == len(self._kept):
                try:
                    self._kept.append(next(self._rest))
                except StopIteration:
                    return
            yield self._kept[place]
            place += 1

    def __bool__(self) -> bool:
        return any(True for _ in self)
