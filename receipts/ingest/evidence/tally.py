"""Counts by name that a hostile file cannot fill, each with where the name was seen first: a line, or a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


class Tally(Counter[K]):
    """Of more than ``most`` names the others count as ``rest``, where that is given. ``first`` is by name."""

    def __init__(self, most: int = 10_000, rest: K | None = None) -> None:
        super().__init__()
        self.first: dict[K, int] = {}
        self._most, self._rest = most, rest

    def add(self, name: K, at: int = 0, times: int = 1) -> int:
        """Count a name, and give its count from now on; 0 where there is no room for another name."""
        if name not in self and len(self) >= self._most:
            if self._rest is None:
                return 0
            name = self._rest
        self[name] += times
        self.first.setdefault(name, at)
        return self[name]
