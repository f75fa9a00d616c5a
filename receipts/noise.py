"""The noise floor of a lane and shape class, learnt from the store's own repeats.

Every two launches with no changed axis are an A/A pair. Launch medians are pooled on the log scale, so that one
launch against one can be judged where the lane has shown how far equal launches lie apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from receipts.axes import difference
from receipts.lane import Lane
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse
from receipts.rule import Facts
from receipts.stats.noise import largest_spread, pool

if TYPE_CHECKING:
    from receipts.store import Entry, Filters, Store

MOST_LAUNCHES = 200
CLASS = ("accelerator", "chips", "sequence_length")


@dataclass(frozen=True, slots=True)
class Floor:
    """σ of log step time on ``df`` degrees of freedom, from ``groups`` of equal launches (``launches`` in all)."""

    sigma: float | None
    df: float | None
    largest_spread: float | None
    groups: int
    launches: int


def noise_floor(store: Store, like: Parsed, lane: Lane) -> Floor:
    """The floor for launches of this receipt's lane and shape class: accelerator, chips and sequence length."""
    groups = [[location for _, location in group] for group in _equal_launches(store, like, lane)]
    repeated = [group for group in groups if len(group) > 1]
    sigma = pool(repeated)
    return Floor(
        sigma=sigma.value if sigma else None,
        df=sigma.df if sigma else None,
        largest_spread=largest_spread(repeated),
        groups=len(repeated),
        launches=sum(len(group) for group in repeated),
    )


def with_floor(facts: Facts, floor: Floor) -> Facts:
    """Facts that carry the floor."""
    return replace(facts, sigma=floor.sigma, sigma_df=floor.df, largest_spread=floor.largest_spread)


def _equal_launches(store: Store, like: Parsed, lane: Lane) -> list[list[tuple[Parsed, float]]]:
    """Launches with step times put into groups whose members differ in no axis, known or unknown."""
    groups: list[list[tuple[Parsed, float]]] = []
    for parsed in _launches(store, like):
        summary = Launch(parsed, lane).summary
        if summary is None:
            continue
        for group in groups:
            apart = difference(group[0][0], parsed, tuple(lane.not_applicable))
            if not apart.changed and not apart.unknown:
                group.append((parsed, summary.median))
                break
        else:
            groups.append([(parsed, summary.median)])
    return groups


def _launches(store: Store, like: Parsed) -> Iterator[Parsed]:
    """Stored launches of the shape class that ended well and kept their steps; those with no twin are passed over."""
    rows: dict[tuple[object, ...], list[Entry]] = {}
    for entry in store.find(_filters(like)):
        key = (entry.context, entry.micro_batch, entry.global_batch, entry.depth, entry.model)
        rows.setdefault(key, []).append(entry)
    taken = 0
    for twins in rows.values():
        if len(twins) < 2:
            continue
        for entry in twins:
            if taken >= MOST_LAUNCHES:
                return
            taken += 1
            yield parse(Document(store.document(entry.id), entry.id[:12]))


def _filters(like: Parsed) -> Filters:
    from receipts.store import Filters, condition

    run, stated = like.receipt.run, like.stated
    paths = {
        "accelerator": "hardware.accelerator",
        "chips": "hardware.chips",
        "sequence_length": "batch.sequence_length",
    }
    wanted = [f"lane={run.lane}", f"kind={run.kind}", "outcome=ok", "provenance=measured", "rate_source=steps"]
    wanted += [f"{name}={stated.get(paths[name], '-')}" for name in CLASS]
    return Filters(tuple(condition(text) for text in wanted), limit=5 * MOST_LAUNCHES)
