"""The frontier of a lane: the best valid result of every shape, and beside it the best that is merely stated.

Rows of the store give the candidates, the present rules decide. Families, models and accelerators are never folded
into one another: a shape is a family, a model, an accelerator, a sequence length and a number of chips.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.answers import answers
from receipts.report.data import Result
from receipts.report.neighbours import PROVENANCES
from receipts.report.sections.regime import work
from receipts.report.shelf import Item, Shelf
from receipts.verdict import Level, Question, Taint

if TYPE_CHECKING:
    from receipts.store import Entry

TRIED = 8  # candidates of a shape that are judged until one is valid
_RATE = "tokens_per_second_per_chip"


def frontier(shelf: Shelf, rows: Iterable[Entry], week: Collection[str]) -> list[Result]:
    """The best valid result of each shape among these rows, whenever it ran. ``week`` holds the ids of the week."""
    found = []
    for candidates in shapes(rows).values():
        ordered = sorted(candidates, key=lambda row: (row.status != "valid", -_rate(row), row.seq))
        item = next((item for item in map(shelf.item, ordered[:TRIED]) if _is_valid(item)), None)
        if item is not None:
            found.append(_result(item, week))
    return sorted(found, key=_order)


def stated(shelf: Shelf, rows: Iterable[Entry], week: Collection[str]) -> list[Result]:
    """The best stated result of each shape that ran in the week: not witnessed, its rate not spoilt by an error."""
    found = []
    for candidates in shapes(row for row in rows if row.id in week).values():
        ordered = sorted(candidates, key=lambda row: (-_rate(row), row.seq))
        item = next((item for item in map(shelf.item, ordered[:TRIED]) if _is_stated(item)), None)
        if item is not None:
            found.append(_result(item, week))
    return sorted(found, key=_order)


def shapes(rows: Iterable[Entry]) -> dict[tuple[object, ...], list[Entry]]:
    """Rows that may be a result, by shape: standing training launches that ended well and have a rate."""
    found: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
    for row in rows:
        plain = row.stands and row.kind == "training" and row.outcome == "ok" and row.provenance in PROVENANCES
        if plain and _rate(row) > 0:
            found[row.family, row.model, row.accelerator, row.sequence_length, row.chips].append(row)
    return found


def _rate(row: Entry) -> float:
    """Tokens a second a chip; where chips are not stated there is none, and the total orders the candidates."""
    return row.tokens_per_second_per_chip or row.tokens_per_second or 0.0


def _is_valid(item: Item) -> bool:
    return item.verdict.status == "valid" and item.launch.read(metrics.get(_RATE)).source == "steps"


def _is_stated(item: Item) -> bool:
    read = item.launch.read(metrics.get(_RATE))
    return (
        read.value is not None and not _is_valid(item) and item.verdict.path != "left" and not item.spoilt(Taint.RATE)
    )


def _result(item: Item, week: Collection[str]) -> Result:
    row, launch = item.entry, item.launch
    rate, mfu, peak = (launch.read(metrics.get(name)) for name in (_RATE, "mfu", "peak_bytes"))
    share = None if item.spoilt(Taint.MFU) else mfu.value
    open_codes = {
        finding.code
        for finding in item.verdict.findings
        if finding.level is not Level.SHOWN and finding.question in (Question.PATH, Question.EFFECT)
    }
    return Result(
        receipt=item.ref,
        answers=answers(item.parsed, item.lane, item.verdict, item.facts).rows(),
        family=row.family,
        model=row.model,
        accelerator=row.accelerator,
        sequence_length=row.sequence_length,
        chips=row.chips,
        tokens_per_second_per_chip=rate.value,
        rate_source=rate.source,
        mfu=share,
        mfu_basis=_basis(item) if share is not None else None,
        peak_bytes=None if item.spoilt(Taint.MEMORY) else peak.value,
        in_week=row.id in week,
        provenance=row.provenance,
        open_questions=tuple(sorted(open_codes)),
        work=work(item),
    )


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


def _order(item: Result) -> tuple[object, ...]:
    return (
        item.family or "~",
        item.model or "~",
        item.accelerator or "~",
        item.sequence_length or 0,
        item.chips or 0,
    )


def cut(found: Sequence[Result], most: int) -> tuple[tuple[Result, ...], int]:
    """Results for a page, those of the week kept first, and how many are left out."""
    keep = {item.receipt.id for item in sorted(found, key=lambda item: not item.in_week)[:most]}
    return tuple(item for item in found if item.receipt.id in keep), len(found) - len(keep)
