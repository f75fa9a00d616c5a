"""The neighbors of a receipt as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood


COLUMNS = (
    *("axis", "members", "receipt", "label", "launches"),
    *("status", "comparable", "path", "effect", "ratio", "low", "high", "reason"),
)


def as_data(neighbourhood: Neighbourhood) -> dict[str, Any]:
    """What ``receipts neighbours --json`` prints."""
    run = neighbourhood.of.receipt.run
    return {
        "receipt": neighbourhood.of.id,
        "label": run.label,
        "lane": run.lane,
        "metric": neighbourhood.metric,
        "neighbours": [_one(item) for item in neighbourhood.compared],
        "refused": [_one(item) for item in neighbourhood.refused],
        "unstated": list(neighbourhood.unstated),
        "more": list(neighbourhood.more),
        "indexed": neighbourhood.indexed,
    }


def _one(item: JudgedNeighbour) -> dict[str, Any]:
    verdict, headline = item.verdict, item.verdict.headline
    changed = [change for change in verdict.difference.changed if change.axis == item.axis]
    return {
        "axis": item.axis,
        "members": [{"path": one.path, "from": one.a, "to": one.b} for change in changed for one in change.members],
        "receipt": item.entry.id,
        "label": item.entry.label,
        "launches": list(verdict.b),
        **{name: getattr(verdict, name) for name in ("status", "comparable", "path", "effect")},
        "ratio": item.ratio,
        "low": headline.effect.low if headline else None,
        "high": headline.effect.high if headline else None,
        "reason": item.reason or None,
    }
