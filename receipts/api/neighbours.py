"""The neighbors of a receipt as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood


def axis_named(name: str) -> str:
    """The axis that a name means: an axis, a leaf of one, or the last part of a leaf. Raises NotFound."""
    from receipts.axes import axis_leaves, axis_of
    from receipts.axes.effective import OPEN_MAPS
    from receipts.base.errors import NotFound, near

    if name.partition(".")[0] in OPEN_MAPS:
        return axis_of(name)
    leaves = axis_leaves()
    exact = {leaf.axis for leaf in leaves if name in (leaf.axis, leaf.path, *leaf.stated_at)}
    ending = exact or {leaf.axis for leaf in leaves if leaf.path.rpartition(".")[2] == name}
    if len(ending) == 1:
        return ending.pop()
    if ending:
        raise NotFound(f"{name} is the end of {', '.join(sorted(ending))}; write one of them")
    hint = near(name, sorted({item for leaf in leaves for item in (leaf.axis, leaf.path)}))
    raise NotFound(f"there is no axis {name!r}; see: receipts axes{hint}")


def as_data(neighbourhood: Neighbourhood) -> dict[str, Any]:
    """What ``receipts neighbours --json`` prints."""
    return {
        "receipt": neighbourhood.of.id,
        "label": neighbourhood.of.receipt.run.label,
        "lane": neighbourhood.of.receipt.run.lane,
        "metric": neighbourhood.metric,
        "neighbours": [_one(item) for item in neighbourhood.compared],
        "refused": [_one(item) for item in neighbourhood.refused],
        "unstated": list(neighbourhood.unstated),
        "more": list(neighbourhood.more),
        "indexed": neighbourhood.indexed,
    }


def _one(item: JudgedNeighbour) -> dict[str, Any]:
    headline = item.headline
    return {
        "axis": item.axis,
        "members": [
            {"path": member.path, "from": member.a, "to": member.b}
            for change in item.verdict.difference.changed
            if change.axis == item.axis
            for member in change.members
        ],
        "receipt": item.entry.id,
        "label": item.entry.label,
        "launches": list(item.verdict.b),
        **_verdict(item.verdict),
        "ratio": item.ratio,
        "low": headline.effect.low if headline else None,
        "high": headline.effect.high if headline else None,
        "reason": item.reason or None,
    }


def _verdict(verdict: Comparison) -> dict[str, str]:
    return {
        "status": verdict.status,
        "comparable": verdict.comparable,
        "path": verdict.path,
        "effect": verdict.effect,
    }
