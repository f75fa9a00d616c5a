"""Which receipts a report compares: rows near one another, found by columns alone, and launches grouped by equality.

A neighbour of a launch is an earlier one of its lane and kind that ended well and shares its context, its model's name
or its label up to the first digit. Each such index is asked for its newest `WINDOW` rows before the launch, so that
the work grows with the launches of the week and not with their square.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.axes import difference, effective
from receipts.axes.effective import OPEN_MAPS, is_complete
from receipts.report.shelf import Item, order

if TYPE_CHECKING:
    from receipts.store import Entry

WINDOW = 64
NEAREST = 24
MOST_LAUNCHES = 50
KINDS = ("training", "microbench", "serving")
PROVENANCES = ("measured", "quoted")
_COLUMNS = (
    *("context", "accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth", "model"),
    "family",
)
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
class Configuration:
    """Sound launches that differ in no axis, known or unknown, in the order in which they ran; or unsound ones."""

    launches: tuple[Item, ...]

    @property
    def head(self) -> Item:
        """Its first launch."""
        return self.launches[0]

    @property
    def order(self) -> tuple[datetime, datetime, int]:
        """Where its first launch stands in time."""
        return order(self.head.entry)


def configurations(items: Sequence[Item]) -> list[Configuration]:
    """Group launches by configuration, at most `MOST_LAUNCHES` each, in the order of their first launches."""
    buckets: dict[tuple[object, ...], list[list[Item]]] = defaultdict(list)
    for item in sorted(items, key=lambda item: order(item.entry)):
        bucket = buckets[_fingerprint(item)]
        group = next((group for group in bucket if _equal(group[0], item)), None)
        if group is None:
            bucket.append([item])
        elif len(group) < MOST_LAUNCHES and item.entry.launch not in {other.entry.launch for other in group}:
            group.append(item)
    found = [Configuration(tuple(group)) for bucket in buckets.values() for group in bucket]
    return sorted(found, key=lambda made: made.order)


def _fingerprint(item: Item) -> tuple[object, ...]:
    """What equal launches share; the commit may differ where the imported files do not.

    A launch that is invalid, or that kept no steps, is no repeat of one that is sound: one of it would spoil the
    whole side.
    """
    values = effective(item.parsed)
    shared = tuple((path, repr(values[path])) for path in sorted(values) if not path.startswith("code."))
    complete = tuple(is_complete(item.parsed, name) for name in OPEN_MAPS)
    row, steps = item.entry, bool(item.launch.durations)
    return row.lane, row.kind, row.outcome, item.verdict.status, steps, complete, shared


def _equal(a: Item, b: Item) -> bool:
    apart = difference(a.parsed, b.parsed, tuple(a.lane.not_applicable))
    return not apart.changed and not apart.unknown
