"""Which receipts a report compares: launches by their configurations, and configurations near one another.

The axis index says which configuration a receipt ran, and which others may be one axis away. Where it finds none,
a neighbour is an earlier launch of the lane and kind that shares a context, a model's name or a label up to the first
digit, found among the last `RECENT` launches before the interval and those in it, each asked for its newest `WINDOW`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.judging.side import copied_pair
from receipts.publish.report.reader import Item, ReportReader, order

if TYPE_CHECKING:
    from receipts.axes.configuration import Configuration
    from receipts.store import Entry

WINDOW = 64
NEAREST = 24
RECENT = 2000  # launches of a lane before the interval that columns alone are looked up in
MOST_LAUNCHES = 20  # of one configuration, the newest
KINDS = ("training", "microbench", "serving")
PROVENANCES = ("measured", "quoted")
_COLUMNS = (*("context", "geometry", "layout", "chips", "sequence_length", "micro_batch", "global_batch", "depth"),)
_STEM = re.compile(r"^\D{3,}")


def eligible(row: Entry) -> bool:
    """Whether a row may be compared: it stands, ended well, was not projected, and has a number."""
    number = row.tokens_per_second is not None or row.step_seconds is not None
    return row.stands and row.outcome == "ok" and row.kind in KINDS and row.provenance in PROVENANCES and number


class Neighbours:
    """Rows by what makes them near. ``rows`` stand in the order in which they ran."""

    def __init__(self, rows: Iterable[Entry]) -> None:
        self._rows = [row for row in rows if eligible(row)]
        self._place = {row.id: index for index, row in enumerate(self._rows)}
        self._index: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(self._rows):
            for key in _keys(row):
                self._index[key].append(place)

    def before(self, row: Entry) -> list[Entry]:
        """The nearest earlier rows, nearest and newest first; none for a row that is not compared."""
        from bisect import bisect_left

        place = self._place.get(row.id)
        if place is None:
            return []
        near: set[int] = set()
        for key in _keys(row):
            line = self._index[key]
            end = bisect_left(line, place)
            near.update(line[max(0, end - WINDOW) : end])
        ordered = sorted(near, key=lambda other: (_apart(row, self._rows[other]), -other))
        return [self._rows[other] for other in ordered[:NEAREST]]


def _keys(row: Entry) -> Iterator[tuple[str, ...]]:
    stem = _STEM.match(row.label or "")
    for name, value in (("context", row.context), ("model", row.model), ("stem", stem[0].lower() if stem else None)):
        if value:
            yield row.lane, row.kind, name, value


def _apart(a: Entry, b: Entry) -> int:
    return sum(getattr(a, name) != getattr(b, name) for name in _COLUMNS)


@dataclass(frozen=True, eq=False)
class LaunchGroup:
    """Sound launches of one configuration in the order in which they ran; or unsound ones. ``key`` names it."""

    key: Hashable
    launches: tuple[Item, ...]

    @property
    def head(self) -> Item:
        """Its first launch."""
        return self.launches[0]

    @property
    def last(self) -> Item:
        """Its last launch."""
        return self.launches[-1]

    @property
    def order(self) -> tuple[datetime, datetime, int]:
        """Where its first launch is in time."""
        return order(self.head.entry)


class Configurations:
    """Launches by what they ran: by the number that the axis index gives, or, where it has none, by their documents."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self._held: dict[str, bool] = {}
        self._numbers = {item.entry.id: item.configuration for item in reader.placed}
        self._keys: dict[str, Hashable] = {}
        self._met: dict[Hashable, dict[str, Entry]] = defaultdict(dict)
        self._groups: dict[tuple[int, str], list[LaunchGroup]] = {}

    def ran(self, item: Item) -> Configuration:
        """What a launch ran, read from its document."""
        return item.launch.settings.configuration(item.parsed, item.lane)

    def holds(self, item: Item) -> bool:
        """Whether the axis index holds the launch's lane, as it is read now."""
        name = item.entry.lane
        if name not in self._held:
            self._held[name] = self._reader.store.query.holds_lane(self.ran(item))
        return self._held[name]

    def group(self, items: Iterable[Item]) -> list[LaunchGroup]:
        """Launches by their configurations, in the order of their first launches."""
        groups: dict[tuple[Hashable, ...], list[Item]] = defaultdict(list)
        rows = list(items)
        self._look_up(rows)
        for item in sorted(rows, key=lambda item: order(item.entry)):
            key = self._key(item)
            self._met[key][item.entry.id] = item.entry
            groups[key, *soundness(item)].append(item)
        configurations = [LaunchGroup(key[0], tuple(group)) for key, group in groups.items()]
        return sorted(configurations, key=lambda one: one.order)

    def whole(self, configuration: LaunchGroup) -> LaunchGroup:
        """The same with its other launches that had run and are as sound: the newest of them, each once."""
        others = [one for one in self._launches(configuration) if soundness(one) == soundness(configuration.last)]
        every = {item.entry.id: item for item in (*others, *configuration.launches)}
        newest = sorted(every.values(), key=lambda item: order(item.entry))[-MOST_LAUNCHES:]
        while (twice := copied_pair([item.launch for item in newest])) is not None:
            newest = [item for item in newest if item.entry.id != twice[1].id]
        return LaunchGroup(configuration.key, tuple(newest))

    def of(self, row: Entry) -> LaunchGroup:
        """The launches that ran what a row ran, as sound as it."""
        return self.group([self._reader.item(row)])[0]

    def numbered(self, number: int, kind: str) -> list[LaunchGroup]:
        """The launches of a configuration of the axis index: sound ones, and unsound ones, apart."""
        place = (number, kind)
        if place not in self._groups:
            rows = self._reader.stored.launches(number, kind, self._reader.scope.until, MOST_LAUNCHES)
            self._numbers.update({row.id: number for row in rows})
            self._groups[place] = self.group(self._reader.items(row for row in rows if eligible(row)))
        return self._groups[place]

    def _launches(self, configuration: LaunchGroup) -> list[Item]:
        key, kind = configuration.key, configuration.last.entry.kind
        if isinstance(key, int):
            return [item for one in self.numbered(key, kind) for item in one.launches]
        return self._reader.items(row for row in self._met[key].values() if row.kind == kind)

    def _look_up(self, items: Sequence[Item]) -> None:
        unknown = [item.entry.id for item in items if item.entry.id not in self._numbers]
        if unknown:
            places = self._reader.stored.place(unknown)
            self._numbers.update({name: places.get(name) for name in unknown})

    def _key(self, item: Item) -> Hashable:
        name = item.entry.id
        if name not in self._keys:
            number = self._numbers.get(name)
            self._keys[name] = number if number is not None and self.holds(item) else self.ran(item).whole
        return self._keys[name]


def soundness(item: Item) -> tuple[object, ...]:
    """What launches of one side share: one that is invalid, or kept no steps, would spoil those that are sound."""
    return item.entry.kind, item.rate_status, item.kept_steps
