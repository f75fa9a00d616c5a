"""The comparisons of a report, chosen and judged: each configuration with its neighbors, and with a pin.

The axis index tells which configuration a receipt ran, and which others may be one axis away. Where it has none, a
neighbor is an earlier launch of the lane and kind that shares a context, a model's name or a label up to the first
digit, among the last `MAX_RECENT` launches before the interval and those in it, each asked for its newest `MAX_WINDOW`.
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
from receipts.judging.verdict import Comparison
from receipts.questions.sides import Join
from receipts.questions.week.reader import Item, ReportReader, order
from receipts.stats.sessions import APART

if TYPE_CHECKING:
    from receipts.axes.configuration import Configuration
    from receipts.store import Entry


MAX_WINDOW = 64
MAX_NEAREST = 24
MAX_RECENT = 2000  # launches of a lane before the interval that columns alone are looked up in
MAX_LAUNCHES = 20  # of one configuration, the newest
KINDS = ("training", "microbench", "serving")
PROVENANCES = ("measured", "quoted")
_COLUMNS = (*("context", "geometry", "layout", "chips", "sequence_length", "micro_batch", "global_batch", "depth"),)
_STEM = re.compile(r"^\D{3,}")
SOUND = ("valid", "open", "invalid")  # how a launch is judged for rates, the best first
Place = tuple[Hashable, str]  # what tells a configuration from others: its key, and the kind of its launches


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
            near.update(line[max(0, end - MAX_WINDOW) : end])
        own = [getattr(row, name) for name in _COLUMNS]
        apart = {
            other: sum(mine != getattr(self._rows[other], name) for name, mine in zip(_COLUMNS, own, strict=True))
            for other in near
        }
        return [self._rows[other] for other in sorted(near, key=lambda other: (apart[other], -other))[:MAX_NEAREST]]


def _keys(row: Entry) -> Iterator[tuple[str, ...]]:
    stem = _STEM.match(row.label or "")
    for name, value in (("context", row.context), ("model", row.model), ("stem", stem[0].lower() if stem else None)):
        if value:
            yield row.lane, row.kind, name, value


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

    @property
    def place(self) -> Place:
        """What tells its configuration from others, whichever launches of it are looked at."""
        return self.key, self.head.entry.kind


class Configurations:
    """Launches by what they ran: by the number that the axis index gives, or, where it has none, by their documents."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self._held: dict[str, bool] = {}
        self._numbers = {item.entry.id: item.configuration for item in reader.placed}
        self._keys: dict[str, Hashable] = {}
        self._speaking: dict[Place, LaunchGroup] = {}

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
        groups: dict[tuple[object, ...], list[Item]] = defaultdict(list)
        rows = list(items)
        self._look_up(rows)
        for item in sorted(rows, key=lambda item: order(item.entry)):
            groups[self._key(item), item.entry.kind, soundness(item)].append(item)
        configurations = [LaunchGroup(key[0], tuple(group)) for key, group in groups.items()]
        return sorted(configurations, key=lambda one: one.order)

    def speaking(self, item: Item) -> LaunchGroup:
        """The launches that speak for a launch's configuration, of those that a comparison may take: the newest of the
        soundest."""
        self._look_up([item])
        key, kind = self._key(item), item.entry.kind
        if (key, kind) not in self._speaking:
            ids = [row.id for row in self._reader.comparisons.alike(item.parsed) if row.outcome == "ok"]
            rows = self._reader.stored.entries(ids[:MAX_LAUNCHES]) if ids else []
            alike = self._reader.items(row for row in rows if eligible(row))
            self._look_up(alike)
            every = [item, *(one for one in alike if one.entry.id != item.entry.id and self._key(one) == key)]
            best = min(map(soundness, every))
            kept = sorted((one for one in every if soundness(one) == best), key=lambda one: order(one.entry))
            self._speaking[key, kind] = LaunchGroup(key, tuple(kept))
        return self._speaking[key, kind]

    def read(self, lane: str) -> dict[Place, LaunchGroup]:
        """Configurations of a lane that were read with all of their launches."""
        return {place: one for place, one in self._speaking.items() if one.last.entry.lane == lane}

    def numbered(self, number: int, kind: str) -> LaunchGroup | None:
        """The launches that speak for a configuration of the axis index; None where none may be compared."""
        rows = self._reader.stored.launches(number, kind, self._reader.scope.until, 1)
        self._numbers.update({row.id: number for row in rows})
        return next((self.speaking(self._reader.item(row)) for row in rows if eligible(row)), None)

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


def soundness(item: Item) -> tuple[int, bool]:
    """How well a launch speaks for its configuration, the best first: as judged for rates, then by kept steps."""
    return SOUND.index(item.rate_status), not item.kept_steps


MAX_LINKS = 2  # comparisons a configuration of the interval has at most, beside the one with a pin
MAX_TRIED = 4  # neighbours that are compared to find them
MAX_PINS = 4  # pins of a lane, the newest, of which the nearest one is compared


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
        self._seen: set[frozenset[Place]] = set()
        self._by_columns: dict[str, Neighbours] = {}

    def read(self, lane: str) -> list[LaunchGroup]:
        """Configurations of a lane: those that were compared with all of their launches, others with the interval's."""
        whole = self._every.read(lane)
        others = (one for one in self.of_interval if one.head.entry.lane == lane and one.place not in whole)
        return [*whole.values(), *others]

    def of(self, configuration: LaunchGroup) -> list[ComparedPair]:
        """Comparisons of one configuration: with those one counted axis apart, else the nearest; and with a pin."""
        one = self._every.speaking(configuration.last)
        linked = self._compared(one, self._one_axis_away(one) or self._near_by_columns(one))
        pin = self._pin(one)
        if pin is not None and self._is_new(one, pin):
            linked.append(self._pair(one, pin))
            self._seen.add(frozenset({one.place, pin.place}))
        return linked

    def between(self, one: Item, other: Item, metric: str) -> Comparison | None:
        """The launches that ran what one launch ran against those of another; None where both ran the same."""
        a, b = (self._every.speaking(item) for item in (one, other))
        return self._judged(one, other, metric) if a.key != b.key else None

    def _one_axis_away(self, configuration: LaunchGroup) -> list[LaunchGroup]:
        """Configurations that may be one axis away, and of which a launch ran earlier: of every axis in turn."""
        last = configuration.last
        if not self._every.holds(last):
            return []
        by_axis: dict[str, list[int]] = defaultdict(list)
        for number, axis in self._reader.stored.near(self._every.ran(last), None, MAX_TRIED).items():
            by_axis[axis].append(number)
        turns = zip_longest(*(sorted(numbers, reverse=True) for _, numbers in sorted(by_axis.items())))
        neighbours: list[LaunchGroup] = []
        for number in (number for turn in turns for number in turn if number is not None):
            other = self._every.numbered(number, last.entry.kind)
            neighbours += [other] if other is not None and other.order < order(last.entry) else []
            if len(neighbours) >= MAX_TRIED:
                break
        return neighbours

    def _near_by_columns(self, configuration: LaunchGroup) -> list[LaunchGroup]:
        last, reader = configuration.last.entry, self._reader
        if last.lane not in self._by_columns:
            of_lane = (one for one in self.of_interval if one.head.entry.lane == last.lane)
            rows = [item.entry for one in of_lane for item in one.launches]
            if reader.since is not None:
                scope = reader.scope.before(reader.since)._replace(lanes=(last.lane,))
                rows += reader.stored.recent(scope, KINDS, MAX_RECENT)
            self._by_columns[last.lane] = Neighbours(sorted(rows, key=order))
        near = self._by_columns[last.lane].before(last)
        others = (self._every.speaking(reader.item(row)) for row in near)
        by_place = {other.place: other for other in others if other.key != configuration.key}
        return sorted(by_place.values(), key=lambda other: other.order)

    def _pin(self, configuration: LaunchGroup) -> LaunchGroup | None:
        """The pinned configuration of its lane and kind that is nearest to it, where it is pinned to another."""
        row = configuration.last.entry
        pinned = [item for item in self._reader.pins if (item.lane, item.kind) == (row.lane, row.kind)]
        pinned_runs = [self._every.speaking(self._reader.item(item)) for item in pinned if eligible(item)][:MAX_PINS]
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
            if apart.changed or apart.unknown:  # else it repeats this configuration
                unsound = other.last.rate_status == "invalid"
                ranked.append((len(apart.axes), len(apart.unknown), unsound, other))
        ranked.sort(key=lambda entry: entry[:3])
        tried: list[ComparedPair] = []
        linked: list[ComparedPair] = []
        for *_, other in ranked[:MAX_TRIED]:
            if len(linked) >= MAX_LINKS:
                break
            if not self._is_new(configuration, other):
                continue
            pair = self._pair(configuration, other)
            tried.append(pair)
            if len(pair.verdict.counted) == 1:
                linked.append(pair)
        linked = linked or tried[:1]
        self._seen |= {frozenset({pair.a.place, pair.b.place}) for pair in linked}
        return linked

    def _is_new(self, one: LaunchGroup, other: LaunchGroup) -> bool:
        return frozenset({one.place, other.place}) not in self._seen

    def _pair(self, one: LaunchGroup, other: LaunchGroup) -> ComparedPair:
        a, b = (other, one) if other.order < one.order else (one, other)
        # A launch of each side, of the newest session that both have; else their last ones.
        near = [
            (first, second)
            for first in a.launches
            for second in b.launches
            if abs((first.entry.started - second.entry.started).total_seconds()) <= APART
        ]
        newest = max(near, key=lambda two: max(order(item.entry) for item in two), default=(a.last, b.last))
        verdict = self._judged(*newest)
        sides = ([self._reader.item(self._reader.entry(name)) for name in ids] for ids in (verdict.a, verdict.b))
        counted_a, counted_b = (LaunchGroup(of.key, tuple(side)) for of, side in zip((a, b), sides, strict=True))
        return ComparedPair(counted_a, counted_b, verdict)

    def _judged(self, a: Item, b: Item, metric: str = metrics.DEFAULT) -> Comparison:
        """B against A as `compare` has it of their labels, on the metric that it asks for unless another is named.

        A spoilt launch answers with its session alone: sound ones of its label would take its place.
        """
        join: Join = "session" if "invalid" in (a.rate_status, b.rate_status) else "label"
        return self._reader.comparisons.compare([a.parsed], [b.parsed], metric, named=(), join=join, beside=())
