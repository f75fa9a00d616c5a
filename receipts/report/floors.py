"""The noise floor that a report judges by, as `receipts.noise` measures it: from columns, so that nothing is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from receipts.noise import MOST_LAUNCHES, Floor
from receipts.report.neighbours import RECENT

if TYPE_CHECKING:
    from receipts.report.shelf import Shelf
    from receipts.store import Entry

NONE: Final = Floor(None, None, None, 0, 0)
_CLASS: Final = ("lane", "kind", "accelerator", "chips", "sequence_length")
Key = tuple[object, ...]


class Floors:
    """Floors by shape class (lane, kind, accelerator, chips, sequence length), each measured once.

    σ is that of launches which the axis index gives one configuration: of those of the interval, newest first, and
    where they are few of the last `RECENT` of the lane before it. Of a lane that the index does not hold there is none.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._found: dict[Key, Floor] = {}
        self._before: dict[tuple[str, str], dict[Key, list[Entry]]] = {}
        self._numbers = {item.entry.id: item.configuration for item in shelf.placed}

    def of(self, row: Entry) -> Floor:
        """The floor for launches of a row's class."""
        key = _key(row)
        if key not in self._found:
            self._found[key] = self._measured(row)
        return self._found[key]

    def _measured(self, row: Entry) -> Floor:
        from receipts.stats.noise import largest_spread, pool

        key = _key(row)
        rows = self._of_interval.get(key, [])
        groups = self._groups(rows)
        if sum(map(len, groups)) < MOST_LAUNCHES:
            groups = self._groups([*rows, *self._earlier(row).get(key, ())])
        sigma = pool(groups)
        if sigma is None:
            return NONE
        return Floor(sigma.value, sigma.df, largest_spread(groups), len(groups), sum(map(len, groups)))

    def _groups(self, rows: Sequence[Entry]) -> list[list[float]]:
        """Median steps of launches of one configuration, in seconds, the newest; a copy has its original's."""
        unknown = [row.id for row in rows if row.id not in self._numbers]
        if unknown:
            found = self._shelf.stored.place(unknown)
            self._numbers.update({name: found.get(name) for name in unknown})
        held: dict[int, dict[float, None]] = defaultdict(dict)
        for row in rows:
            number = self._numbers[row.id]
            if number is not None and row.step_seconds is not None:
                held[number][row.step_seconds] = None
        return list(_newest(list(values) for values in held.values() if len(values) > 1))

    @cached_property
    def _of_interval(self) -> dict[Key, list[Entry]]:
        return _by_class(reversed(self._shelf.rows))

    def _earlier(self, row: Entry) -> dict[Key, list[Entry]]:
        """The launches of its lane and kind that started last before the interval, by class."""
        place = (row.lane, row.kind)
        if place not in self._before:
            shelf = self._shelf
            found: list[Entry] = []
            if shelf.since is not None:
                sought = shelf.sought.before(shelf.since)._replace(lanes=(row.lane,))
                found = shelf.stored.recent(sought, (row.kind,), RECENT)
            self._before[place] = _by_class(found)
        return self._before[place]


def _key(row: Entry) -> Key:
    return tuple(getattr(row, name) for name in _CLASS)


def _by_class(rows: Iterable[Entry]) -> dict[Key, list[Entry]]:
    """Launches that ended well, were measured and kept their steps, by their class."""
    found: dict[Key, list[Entry]] = defaultdict(list)
    for row in rows:
        if row.stands and row.outcome == "ok" and row.provenance == "measured" and row.rate_source == "steps":
            found[_key(row)].append(row)
    return found


def _newest(groups: Iterable[list[float]]) -> Iterator[list[float]]:
    """As many launches as a floor is measured by."""
    left = MOST_LAUNCHES
    for group in groups:
        taken = group[:left]
        left -= len(taken)
        if len(taken) > 1:
            yield taken
