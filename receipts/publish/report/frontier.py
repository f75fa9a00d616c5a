"""The frontier of a lane: the best valid result of every shape, and beside it the best that is merely stated.

Rows of the store give the candidates, the present rules decide. A shape is a geometry (the axes of the model and the
accelerator), a depth, a sequence length and a number of chips; names and families are shown and not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes.shape import described
from receipts.judging.verdict import Level, Question
from receipts.metrics.reading import Taint
from receipts.publish.report.data import Change, Result
from receipts.publish.report.neighbours import PROVENANCES
from receipts.publish.report.sections.regime import work
from receipts.publish.report.shelf import Item, Shelf
from receipts.questions.answers import answers
from receipts.store.query.reports import SHAPE

if TYPE_CHECKING:
    from receipts.publish.report.links import Links
    from receipts.store import Entry

TRIED = (4, 64, 1024)  # candidates of a shape that are looked at until one is valid
STATED = 8  # those of a shape that are stated
_RATE = "tokens_per_second_per_chip"
Shape = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Best:
    """The best valid launch of a shape, and the one that was best when the interval began; None where none was."""

    now: Item
    before: Item | None

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


def frontiers(shelf: Shelf, items: Sequence[Item]) -> Frontiers:
    """The best valid result of each shape, whenever it ran. ``items`` are those that stand of the interval."""
    before, undecided = _before(shelf)
    rows = shapes(item.entry for item in items)
    valid = {item.entry.id: item for item in items if _is_valid(item)}
    by_lane: dict[str, list[Best]] = defaultdict(list)
    for shape in {**before, **rows}:
        held = before.get(shape)
        new = [valid[row.id] for row in rows.get(shape, ()) if row.id in valid]
        every = [item for item in (held, *new) if item is not None]
        if every:
            item = min(every, key=_rank)
            by_lane[item.entry.lane].append(Best(item, held))
    for found in by_lane.values():
        found.sort(key=lambda best: _order(best.now.entry))
    return Frontiers(dict(by_lane), undecided)


def _before(shelf: Shelf) -> tuple[dict[Shape, Item], dict[str, int]]:
    """The best valid launch of each shape before the interval, and how many shapes of a lane nobody could decide."""
    if shelf.since is None:
        return {}, {}
    found: dict[Shape, Item] = {}
    full: set[Shape] = set()
    last = 0
    for most in TRIED:
        rows = shapes(shelf.stored.best(shelf.sought.before(shelf.since), shelf.rules, most))
        new = [
            row
            for shape, held in rows.items()
            if shape not in found
            for row in sorted(held, key=lambda row: (-_rate(row), row.seq))[last:]
        ]
        for item in shelf.items(new):
            if _is_valid(item):
                found.setdefault(_shape(item.entry), item)
        full = {shape for shape, held in rows.items() if shape not in found and len(held) >= most}
        last = most
        if not full:
            break
    undecided: dict[str, int] = defaultdict(int)
    for shape in full:
        undecided[str(shape[0])] += 1
    return found, dict(undecided)


def stated(items: Iterable[Item]) -> list[Item]:
    """The best stated result of each shape among these: not witnessed, its rate not spoilt by an error."""
    by_id = {item.entry.id: item for item in items}
    found = []
    for candidates in shapes(item.entry for item in by_id.values()).values():
        ordered = sorted(candidates, key=lambda row: (-_rate(row), row.seq))
        item = next((by_id[row.id] for row in ordered[:STATED] if _is_stated(by_id[row.id])), None)
        if item is not None:
            found.append(item)
    return sorted(found, key=lambda item: _order(item.entry))


def shapes(rows: Iterable[Entry]) -> dict[Shape, list[Entry]]:
    """Rows that may be a result, by shape: standing training launches that ended well and have a rate."""
    found: dict[Shape, list[Entry]] = defaultdict(list)
    for row in rows:
        plain = row.stands and row.kind == "training" and row.outcome == "ok" and row.provenance in PROVENANCES
        if plain and _rate(row) > 0:
            found[_shape(row)].append(row)
    return found


def _shape(row: Entry) -> Shape:
    return tuple(getattr(row, name) for name in SHAPE)


def _rate(row: Entry) -> float:
    """Tokens a second a chip; where chips are not stated there is none, and the total orders the candidates."""
    return row.tokens_per_second_per_chip or row.tokens_per_second or 0.0


def _rank(item: Item) -> tuple[float, int]:
    return -_rate(item.entry), item.entry.seq


def _is_valid(item: Item) -> bool:
    return item.rate_status == "valid" and item.kept_steps and item.entry.tokens_per_second_per_chip is not None


def _is_stated(item: Item) -> bool:
    rated = item.entry.tokens_per_second_per_chip is not None and item.entry.rate_source != "unsteady"
    return rated and not _is_valid(item) and not item.spoilt(Taint.RATE)


def result(item: Item, since: datetime | None, change: Change | None = None) -> Result:
    """A launch as a result, read from its document; what ran from ``since`` on is of the interval."""
    row, launch = item.entry, item.launch
    rate, mfu, peak = (launch.read(metrics.get(name)) for name in (_RATE, "mfu", "peak_bytes"))
    share = None if item.spoilt(Taint.MFU) else mfu.value
    heavy = [finding for finding in item.verdict.findings if finding.level is not Level.SHOWN]
    evidence = {finding.code for finding in heavy if finding.question in (Question.PATH, Question.EFFECT)}
    open_codes = evidence or {finding.code for finding in heavy}
    known = described(item.parsed.stated)
    return Result(
        receipt=item.ref,
        answers=answers(item.parsed, item.lane, item.verdict, item.facts, item.shelf.rulebook.rules).states(),
        shape=str(launch.settings.shape),
        family=known.family,
        model=known.name,
        axes=known.model,
        layout=known.layout,
        accelerator=row.accelerator,
        sequence_length=row.sequence_length,
        chips=row.chips,
        tokens_per_second_per_chip=rate.value,
        rate_source=rate.source,
        mfu=share,
        mfu_basis=_basis(item) if share is not None else None,
        peak_bytes=None if item.spoilt(Taint.MEMORY) else peak.value,
        in_week=in_interval(item, since),
        provenance=row.provenance,
        open_questions=tuple(sorted(open_codes)),
        work=work(item),
        change=change,
    )


def in_interval(item: Item, since: datetime | None) -> bool:
    """Whether a launch ran in the interval."""
    return since is None or (item.entry.finished or item.entry.started) >= since


def _basis(item: Item) -> str:
    """What an MFU divides by: formula, FLOPs a token, and the peak."""
    stated = item.launch.stated
    formula = stated.get("measurement.stated.formula", "formula not stated")
    flops = stated.get("measurement.stated.flops_per_token")
    dtype = stated.get("measurement.stated.peak_dtype", stated.get("numerics.compute_dtype", "type not stated"))
    peak = item.launch.peak
    each = f", {flops / 1e9:,.4g} GFLOP/token" if flops else ""
    over = f", of {peak / 1e12:,.4g} TFLOP/s {dtype}" if peak else ", peak not stated"
    return f"{formula}{each}{over}"


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


def change(best: Best, links: Links) -> Change:
    """What the interval did to the best of a shape."""
    now, before = best.now, best.before
    if before is None:
        return Change("new", None, None, None, None, None, None, ())
    was = before.entry.tokens_per_second_per_chip
    if not best.moved:
        return Change("same", before.ref, was, None, None, None, None, ())
    plain = _rate(now.entry) / was if was else None
    verdict = links.between(before, now, _RATE)
    if verdict is None:
        return Change("better", before.ref, was, plain, None, None, None, ())
    found = next((item for item in verdict.results if item.metric == _RATE), None)
    told = found is not None and found.effect.low is not None and found.effect.high is not None
    return Change(
        state="better",
        was=before.ref,
        was_rate=was,
        ratio=found.ratio if found is not None and told else plain,
        low=found.effect.low if found is not None and told else None,
        high=found.effect.high if found is not None and told else None,
        comparable=verdict.comparable,
        moved=verdict.counted,
    )


def cut(found: Sequence[Item], most: int, since: datetime | None) -> tuple[list[Item], int]:
    """Launches for a page, those of the interval kept first, and how many are left out."""
    keep = {item.entry.id for item in sorted(found, key=lambda item: not in_interval(item, since))[:most]}
    return [item for item in found if item.entry.id in keep], len(found) - len(keep)
