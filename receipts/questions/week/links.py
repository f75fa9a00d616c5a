"""The comparisons of a report, chosen and judged: each configuration with its neighbors, and with a pin.

The axis index tells which configuration a receipt ran, and which others may be one axis away. Where it has none, a
neighbor is an earlier launch of the lane and kind that shares a context, a model's name or a label up to the first
digit, among the last `RECENT` launches before the interval and those in it, each asked for its newest `WINDOW`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.judging.side import copied_pair
from receipts.judging.verdict import Comparison
from receipts.questions.sides import Join
from receipts.questions.week.reader import Item, ReportReader, order
from receipts.stats.sessions import APART

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


LINKS = 2  # comparisons a configuration of the interval has at most, beside the one with a pin
TRIED = 4  # neighbours that are compared to find them
PINNED = 4  # pins of a lane, the newest, of which the nearest one is compared
SOUND = ("valid", "open", "invalid")  # how a launch is judged for rates, the best first
Place = tuple[Hashable, str, str, bool]


@dataclass(frozen=True, eq=False)
class ComparedPair:
    """One comparison with the launches of its sides."""

    a: LaunchGroup
    b: LaunchGroup
    verdict: Comparison


class Links:
    """Finds the comparisons of configurations, each once."""

    def __init__(self, reader: ReportReader, items: Sequence[Item]) -> None:
        self._reader = reader
        self.rules = reader.rulebook.rules
        self._every = Configurations(reader)
        self.of_interval = self._every.group(items)
        self._seen: set[frozenset[tuple[Hashable, str]]] = set()
        self._whole: dict[Place, LaunchGroup] = {}
        self._by_columns: dict[str, Neighbours] = {}

    def wholes(self, lane: str) -> list[LaunchGroup]:
        """Configurations of a lane that were read with all of their launches."""
        return [configuration for configuration in self._whole.values() if configuration.head.entry.lane == lane]

    def of(self, configuration: LaunchGroup) -> list[ComparedPair]:
        """Comparisons of one configuration: with those one counted axis apart, else the nearest; and with a pin."""
        whole = self._as_whole(configuration)
        others = self._one_axis_away(whole) or self._near_by_columns(whole)
        linked = self._compared(whole, others)
        pin = self._pin(whole)
        if pin is not None and self._is_new(whole, pin):
            pair = self._pair(whole, pin)
            linked.append(pair)
            self._seen.add(ran_by(whole, pin))
        return linked

    def between(self, one: Item, other: Item, metric: str) -> Comparison | None:
        """The launches that ran what one launch ran against those of another; None where both ran the same."""
        a, b = (self._as_whole(self._every.of(item.entry)) for item in (one, other))
        return self._judged(one, other, metric) if a.key != b.key else None

    def _as_whole(self, configuration: LaunchGroup) -> LaunchGroup:
        place = place_of(configuration)
        if place not in self._whole:
            self._whole[place] = self._every.whole(configuration)
        return self._whole[place]

    def _one_axis_away(self, configuration: LaunchGroup) -> list[LaunchGroup]:
        """Configurations that may be one axis away, and of which a launch ran earlier: of every axis in turn."""
        if not self._every.holds(configuration.last):
            return []
        by_axis: dict[str, list[int]] = defaultdict(list)
        for number, axis in self._reader.stored.near(self._every.ran(configuration.last), None, TRIED).items():
            by_axis[axis].append(number)
        turns = zip_longest(*(sorted(numbers, reverse=True) for _, numbers in sorted(by_axis.items())))
        neighbours: list[LaunchGroup] = []
        for number in (number for turn in turns for number in turn if number is not None):
            launched = self._every.numbered(number, configuration.last.entry.kind)
            valid_first = sorted(launched, key=lambda other: other.head.rate_status == "invalid")
            neighbours += [other for other in valid_first if other.order < order(configuration.last.entry)][:1]
            if len(neighbours) >= TRIED:
                break
        return neighbours

    def _near_by_columns(self, configuration: LaunchGroup) -> list[LaunchGroup]:
        rows = self._nearest(configuration.last.entry.lane).before(configuration.last.entry)
        own = {item.entry.id for item in configuration.launches}
        groups = self._every.group(self._reader.items(row for row in rows if row.id not in own))
        return [other for other in groups if other.key != configuration.key or other.head.rate_status != "invalid"]

    def _nearest(self, lane: str) -> Neighbours:
        if lane not in self._by_columns:
            reader = self._reader
            rows = [
                item.entry
                for configuration in self.of_interval
                for item in configuration.launches
                if item.entry.lane == lane
            ]
            if reader.since is not None:
                scope = reader.scope.before(reader.since)._replace(lanes=(lane,))
                rows += reader.stored.recent(scope, KINDS, RECENT)
            self._by_columns[lane] = Neighbours(sorted(rows, key=order))
        return self._by_columns[lane]

    def _pin(self, configuration: LaunchGroup) -> LaunchGroup | None:
        """The pinned configuration of its lane and kind that is nearest to it, where it is pinned to another."""
        row = configuration.last.entry
        pinned = [item for item in self._reader.pins if (item.lane, item.kind) == (row.lane, row.kind)]
        pinned_runs = [self._every.of(item) for item in pinned if eligible(item)][:PINNED]
        ranked = [
            (len(apart.axes), len(apart.unknown), at, other)
            for at, other in enumerate(pinned_runs)
            if other.key != configuration.key
            for apart in [other.last.launch.difference(configuration.last.launch, configuration.last.lane)]
        ]
        return min(ranked, key=lambda one: one[:3])[-1] if ranked else None

    def _compared(self, configuration: LaunchGroup, others: Sequence[LaunchGroup]) -> list[ComparedPair]:
        ranked = []
        for other in others:
            apart = other.last.launch.difference(configuration.last.launch, configuration.last.lane)
            if apart.changed or apart.unknown:  # else it repeats this configuration, less soundly
                unsound = other.last.rate_status == "invalid"
                ranked.append((len(apart.axes), len(apart.unknown), unsound, other))
        ranked.sort(key=lambda entry: entry[:3])
        tried: list[ComparedPair] = []
        linked: list[ComparedPair] = []
        for *_, other in ranked[:TRIED]:
            if len(linked) >= LINKS:
                break
            if not self._is_new(configuration, other):
                continue
            pair = self._pair(configuration, other)
            tried.append(pair)
            if len(pair.verdict.counted) == 1:
                linked.append(pair)
        linked = linked or tried[:1]
        self._seen |= {ran_by(pair.a, pair.b) for pair in linked}
        return linked

    def _is_new(self, one: LaunchGroup, other: LaunchGroup) -> bool:
        return ran_by(one, other) not in self._seen

    def _pair(self, one: LaunchGroup, other: LaunchGroup) -> ComparedPair:
        one, other = self._soundest(one), self._soundest(other)
        a, b = (other, one) if other.order < one.order else (one, other)
        verdict = self._judged(*_near_in_time(a, b))
        return ComparedPair(self._counted(a, verdict.a), self._counted(b, verdict.b), verdict)

    def _soundest(self, configuration: LaunchGroup) -> LaunchGroup:
        """The launches that speak for a configuration: an unsound repeat does not."""
        key, kind = configuration.key, configuration.last.entry.kind
        others = self._every.numbered(key, kind) if isinstance(key, int) else self.of_interval
        alike = [one for one in others if (one.key, one.last.entry.kind) == (key, kind)]
        ranked = [configuration, *alike]
        return self._as_whole(min(ranked, key=lambda one: (SOUND.index(one.last.rate_status), not one.last.kept_steps)))

    def _counted(self, configuration: LaunchGroup, ids: Sequence[str]) -> LaunchGroup:
        """The configuration with the launches that count."""
        return LaunchGroup(configuration.key, tuple(self._reader.item(self._reader.entry(name)) for name in ids))

    def _judged(self, a: Item, b: Item, metric: str = metrics.DEFAULT) -> Comparison:
        """B against A as `compare` has it of their labels, on the metric that it asks for unless another is named.

        A spoilt launch answers with its session alone: sound ones of its label would take its place.
        """
        join: Join = "session" if "invalid" in (a.rate_status, b.rate_status) else "label"
        return self._reader.comparisons.compare([a.parsed], [b.parsed], metric, named=(), join=join, beside=())


def _near_in_time(a: LaunchGroup, b: LaunchGroup) -> tuple[Item, Item]:
    """A launch of each side, of the newest session that both have; else their last ones."""
    near = [
        (one, other)
        for one in a.launches
        for other in b.launches
        if abs((one.entry.started - other.entry.started).total_seconds()) <= APART
    ]
    newest = max(near, key=lambda two: max(order(item.entry) for item in two), default=None)
    return newest or (a.last, b.last)


def ran_by(one: LaunchGroup, other: LaunchGroup) -> frozenset[tuple[Hashable, str]]:
    """What tells a pair of configurations from others, whichever launches of them are looked at."""
    return frozenset({(one.key, one.last.entry.kind), (other.key, other.last.entry.kind)})


def place_of(configuration: LaunchGroup) -> Place:
    """What tells a configuration's sound launches from its unsound ones, and from those of others."""
    item = configuration.last
    return configuration.key, item.entry.kind, item.rate_status, item.kept_steps
