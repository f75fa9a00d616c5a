"""Lists that several commands print as tables: which columns, with which units, and which a narrow terminal drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.publish.page import Column, Row, Table, heads, row
from receipts.publish.readings import effect_word, interval, leaf, number, ratio, unit, value

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour
    from receipts.questions.noise import LaneNoise
    from receipts.store import Entry

NONE = "-"
DELTA = {"lane": "set by the lane", "default": "default"}


def stored(entries: Sequence[Entry], *, who: bool = False) -> Table:
    """Stored receipts, one a row; with who submitted them where that is asked for."""
    rate, memory = metrics.get("tokens_per_second"), metrics.get("peak_bytes")
    columns = (
        *heads("id | status | outcome"),
        Column("lane", rank=5),
        Column("chips", rank=3),
        Column("sequence", numeric=True, rank=6),
        Column("micro", numeric=True, rank=7),
        Column("rate,", unit(rate), numeric=True, rank=1),
        Column("what it is", rank=8),
        Column("peak,", unit(memory), numeric=True, rank=4),
        *([Column("submitted by")] if who else []),
        Column("label", cut=True),
    )
    rows = [
        row(
            item.id[:12],
            item.status if item.stands else "superseded",
            item.outcome,
            item.lane,
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            str(item.sequence_length or NONE),
            str(item.micro_batch or NONE),
            number(rate, item.tokens_per_second) if item.tokens_per_second else NONE,
            _basis(item),
            number(memory, item.peak_bytes) if item.peak_bytes else NONE,
            *([item.actor or "not recorded"] if who else []),
            item.label or "",
        )
        for item in entries
    ]
    return Table("Receipts", columns, tuple(rows), empty="no receipt meets these conditions")


def _basis(item: Entry) -> str:
    """What the rate of a receipt is."""
    if item.rate_of is None:
        return {"stated": "as stated", "derived": "derived from what is stated"}.get(item.rate_source or "", NONE)
    return f"{item.rate_of}, not steady" if item.rate_source == "unsteady" else item.rate_of


def neighbours(items: Sequence[JudgedNeighbour]) -> Table:
    """The neighbors along one axis, one configuration a row."""
    columns = (
        Column("id"),
        Column("from → to", rank=1),
        Column("change", numeric=True),
        Column("95 % interval", rank=3),
        Column("effect", rank=2),
        Column("verdict"),
        Column("launches", numeric=True, rank=4),
        Column("label", rank=5, cut=True),
    )
    rows = []
    for item in items:
        result = item.headline
        rows.append(
            row(
                item.entry.id[:12],
                moved(item),
                ratio(result) if result else "~",
                interval(result) if result else "~",
                effect_word(result) if result else item.verdict.effect,
                item.verdict.status,
                str(len(item.verdict.b)),
                item.entry.label or "",
            )
        )
    return Table("Neighbors", columns, tuple(rows))


def moved(item: JudgedNeighbour) -> str:
    """What the axis changed from and to, leaf by leaf."""
    change = next((change for change in item.verdict.difference.changed if change.axis == item.axis), None)
    if change is None:
        return "?"
    moves = [f"{value(member.a)} → {value(member.b)}" for member in change.members]
    if len(moves) == 1:
        return moves[0]
    return "; ".join(f"{leaf(member.path)} {move}" for member, move in zip(change.members, moves, strict=True))


def noise(lanes: Sequence[LaneNoise]) -> Table:
    """The noise floor of each class of launches."""
    columns = (
        Column("lane"),
        Column("accelerator", rank=3),
        Column("chips", numeric=True, rank=2),
        Column("sequence", numeric=True, rank=2),
        Column("groups", numeric=True, rank=4),
        Column("launches", numeric=True, rank=1),
        Column("σ", numeric=True),
        Column("df", numeric=True, rank=5),
        Column("largest spread", numeric=True, rank=6),
        Column("δ"),
    )
    return Table("Noise floor", columns, tuple(map(_floor, lanes)), empty="no launch kept its steps")


def _floor(item: LaneNoise) -> Row:
    shape, floor = item.shape, item.floor
    return row(
        shape.lane if shape.kind == "training" else f"{shape.lane} ({shape.kind})",
        shape.accelerator or "not stated",
        _count(shape.chips),
        _count(shape.sequence_length),
        str(floor.groups),
        str(floor.launches),
        _sigma(item),
        "~" if floor.df is None else f"{floor.df:g}",
        "~" if floor.largest_spread is None else f"{floor.largest_spread:.2%}",
        f"{item.delta:.2%} ({DELTA[item.delta_source]})",
    )


def _sigma(item: LaneNoise) -> str:
    if item.floor.sigma is not None:
        return f"{item.floor.sigma:.3%}"
    return "~" if item.declared is None else f"{item.declared:.3%} declared, not measured"


def _count(count: int | None) -> str:
    return "not stated" if count is None else str(count)
