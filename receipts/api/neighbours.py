"""The neighbors of a receipt as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
