"""The best launches of every shape: the best repeated one, a faster peak beside it, and the best that is merely stated.

Rows of the store give the candidates, the present rules decide. A shape is a geometry (the axes of the model and the
accelerator), a depth, a sequence length and a number of chips; names and families are shown and not compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from receipts.metrics.reading import Taint
from receipts.publish.report.neighbours import PROVENANCES
from receipts.publish.report.reader import Item, ReportReader
from receipts.store.query.reports import SHAPE

if TYPE_CHECKING:
    from receipts.store import Entry

FIRST: Final = 4  # candidates of a shape that are judged at once
MOST: Final = 64  # those among which a valid one and a repeated one are looked for
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
    before, undecided = _earlier(reader)
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
    repeated = (item for item in ordered[:MOST] if reader.is_repeated(item.entry, until))
    return next(repeated, ordered[0])


def _earlier(reader: ReportReader) -> tuple[dict[Shape, list[Item]], dict[str, int]]:
    """Valid launches of each shape before the interval, the fastest first; and how many shapes of a lane are undecided.

    Candidates of a shape are judged until a repeated one is valid.
    """
    since = reader.since
    if since is None:
        return {}, {}
    rows_by_shape = shapes(reader.stored.best(reader.scope.before(since), reader.rules, MOST))
    candidates = {shape: sorted(rows, key=_rank) for shape, rows in rows_by_shape.items()}
    # Most shapes need no more than these, which are judged together.
    reader.items(row for rows in candidates.values() for row in rows[:FIRST])
    valid: dict[Shape, list[Item]] = defaultdict(list)
    undecided: Counter[str] = Counter()
    for shape, rows in candidates.items():
        for row in rows:
            repeated = reader.is_repeated(row, since)
            if (repeated or shape not in valid) and is_valid(item := reader.item(row)):
                valid[shape].append(item)
                if repeated:
                    break
        if shape not in valid and len(rows) >= MOST:
            undecided[str(shape[0])] += 1
    return valid, undecided


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
