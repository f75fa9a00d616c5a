"""The best launches of every shape: the best repeated one, a faster peak beside it, and the best that is merely stated.

Rows of the store give the candidates, the present rules decide. A shape is a geometry (the axes of the model and the
accelerator), a depth, a sequence length and a number of chips; names and families are shown and not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from receipts.metrics.reading import Taint
from receipts.publish.report.neighbours import PROVENANCES
from receipts.publish.report.reader import Item, ReportReader
from receipts.store.query.reports import SHAPE

if TYPE_CHECKING:
    from receipts.store import Entry

TRIED: Final = (4, 64, 1024)  # candidates of a shape that are looked at until one is valid
REPEATS: Final = 64  # those among which a repeated one is looked for
STATED: Final = 8  # those of a shape that are stated
Shape = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Best:
    """The best of a shape, and the one that was best when the interval began; None where none was.

    ``now`` is the fastest repeated launch, or the fastest where none is repeated. ``peak`` is a faster launch of a
    configuration that ran once; None where there is none.
    """

    now: Item
    before: Item | None
    peak: Item | None = None

    @property
    def moved(self) -> bool:
        """Whether the interval brought it."""
        return self.before is None or self.before.entry.id != self.now.entry.id


@dataclass(frozen=True)
class Frontiers:
    """Every lane's best launches, in the order of their shapes, and how many shapes nobody could decide.

    A shape is open where none of its first candidates is valid and there are more.
    """

    by_lane: Mapping[str, Sequence[Best]]
    undecided: Mapping[str, int]


def frontiers(reader: ReportReader, items: Sequence[Item]) -> Frontiers:
    """The best valid results of each shape, whenever they ran. ``items`` are those that stand of the interval."""
    before, undecided = _Before(reader).search()
    rows = shapes(item.entry for item in items)
    valid = {item.entry.id: item for item in items if is_valid(item)}
    by_lane: dict[str, list[Best]] = defaultdict(list)
    for shape in {**before, **rows}:
        earlier = before.get(shape, ())
        new = [valid[row.id] for row in rows.get(shape, ()) if row.id in valid]
        every = sorted((*earlier, *new), key=_order_of_rate)
        if every:
            best = _best(every, reader)
            held = _best(earlier, reader, reader.since) if earlier else None
            peak = every[0] if rate(every[0].entry) > rate(best.entry) else None
            by_lane[best.entry.lane].append(Best(best, held, peak))
    for held_by_lane in by_lane.values():
        held_by_lane.sort(key=lambda best: _order(best.now.entry))
    return Frontiers(dict(by_lane), undecided)


def _best(ordered: Sequence[Item], reader: ReportReader, until: datetime | None = None) -> Item:
    """The fastest that is repeated, else the fastest."""
    repeated = (item for item in ordered[:REPEATS] if reader.is_repeated(item.entry, until))
    return next(repeated, ordered[0])


class _Before:
    """Looks for the best valid launches of each shape before the interval."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self._valid: dict[Shape, list[Item]] = {}
        self._settled: set[Shape] = set()

    def search(self) -> tuple[dict[Shape, list[Item]], dict[str, int]]:
        """Valid launches by shape, the fastest first, and how many shapes of a lane nobody could decide.

        More candidates are read while a shape has no valid one, or has one that is not repeated.
        """
        if self._reader.since is None:
            return {}, {}
        full: set[Shape] = set()
        last = 0
        for most in TRIED:
            rows = self._candidates(most)
            new = [row for shape, some in rows.items() for row in self._wanted(shape, some[last:])]
            for item in self._reader.items(new):
                if is_valid(item):
                    self._take(_shape(item.entry), item)
            full = {shape for shape, some in rows.items() if len(some) >= most and shape not in self._valid}
            last = most
            if not full and (most >= REPEATS or self._is_settled(rows, most)):
                break
        undecided: dict[str, int] = defaultdict(int)
        for shape in full:
            undecided[str(shape[0])] += 1
        for candidates in self._valid.values():
            candidates.sort(key=_order_of_rate)
        return self._valid, dict(undecided)

    def _candidates(self, most: int) -> dict[Shape, list[Entry]]:
        """Candidates of each shape, so many, the fastest first."""
        reader = self._reader
        rows = shapes(reader.stored.best(reader.sought.before(reader.since), reader.rules, most))  # type: ignore[arg-type]  # since is set
        return {shape: sorted(some, key=_rank) for shape, some in rows.items()}

    def _wanted(self, shape: Shape, rows: Sequence[Entry]) -> Iterator[Entry]:
        """Those to be judged: of a shape with a valid launch, only what is repeated, and no more than decides it."""
        if shape not in self._valid:
            yield from rows
        elif shape not in self._settled:
            yield from (row for row in rows if self._reader.is_repeated(row, self._reader.since))

    def _take(self, shape: Shape, item: Item) -> None:
        self._valid.setdefault(shape, []).append(item)
        if self._reader.is_repeated(item.entry, self._reader.since):
            self._settled.add(shape)

    def _is_settled(self, rows: Mapping[Shape, Sequence[Entry]], most: int) -> bool:
        """Whether no shape has more candidates among which a repeated one may be."""
        return all(shape in self._settled or len(some) < most for shape, some in rows.items())


def stated(items: Iterable[Item]) -> list[Item]:
    """The best stated result of each shape among these: not witnessed, its rate not spoilt by an error."""
    by_id = {item.entry.id: item for item in items}
    results = []
    for candidates in shapes(item.entry for item in by_id.values()).values():
        ordered = sorted(candidates, key=_rank)
        item = next((by_id[row.id] for row in ordered[:STATED] if _is_stated(by_id[row.id])), None)
        if item is not None:
            results.append(item)
    return sorted(results, key=lambda item: _order(item.entry))


def shapes(rows: Iterable[Entry]) -> dict[Shape, list[Entry]]:
    """Rows that may be a result, by shape: standing training launches that ended well and have a rate."""
    by_shape: dict[Shape, list[Entry]] = defaultdict(list)
    for row in rows:
        plain = row.stands and row.kind == "training" and row.outcome == "ok" and row.provenance in PROVENANCES
        if plain and rate(row) > 0:
            by_shape[_shape(row)].append(row)
    return by_shape


def rate(row: Entry) -> float:
    """Tokens a second a chip; where chips are not stated there is none, and the total orders the candidates."""
    return row.tokens_per_second_per_chip or row.tokens_per_second or 0.0


def is_valid(item: Item) -> bool:
    """Whether it is a proven result: valid, its steps kept, its chips stated, and not left out of the frontier."""
    measured = item.rate_status == "valid" and item.kept_steps and item.entry.tokens_per_second_per_chip is not None
    return measured and item.may_lead


def _is_stated(item: Item) -> bool:
    rated = item.entry.tokens_per_second_per_chip is not None and item.entry.rate_source != "unsteady"
    return rated and item.may_lead and not is_valid(item) and not item.spoilt(Taint.RATE)


def _shape(row: Entry) -> Shape:
    return tuple(getattr(row, name) for name in SHAPE)


def _rank(row: Entry) -> tuple[float, int]:
    return -rate(row), row.seq


def _order_of_rate(item: Item) -> tuple[float, int]:
    return _rank(item.entry)


def _order(row: Entry) -> tuple[object, ...]:
    return (
        row.family or "~",
        row.model or "~",
        row.accelerator or "~",
        row.sequence_length or 0,
        row.chips or 0,
        row.depth or 0,
        row.geometry or 0,
    )
