"""Estimates as data: bytes throughout, None where something is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from receipts.estimate.surface import OUTSIDE
from receipts.plugins.aot.compiler import CompilerAnswer, answer_json
from receipts.questions.fit.estimate import MemoryEstimate, growth


def as_data(estimates: Sequence[MemoryEstimate], answer: CompilerAnswer | None, *, calibrated: bool) -> dict[str, Any]:
    """One estimate, or two and what grows between them; with the compiler's answer."""
    tree: dict[str, Any] = {"estimates": [_data(item, calibrated=calibrated) for item in estimates]}
    if len(estimates) == 2:
        rows = growth(estimates[0], estimates[1])
        tree["growth"] = [{"surface": row.name.value, "a": row.a, "b": row.b, "bytes": row.bytes} for row in rows]
    if answer is not None:
        tree["compiled"] = answer_json(answer)
    return tree


def _data(item: MemoryEstimate, *, calibrated: bool) -> dict[str, Any]:
    surfaces = [
        {"surface": each.name.value, "bytes": each.bytes, "peak_bytes": each.peak_bytes, "scales_with": each.scales,
         "live": each.name not in OUTSIDE}
        for each in item.surfaces
    ]  # fmt: skip
    tree: dict[str, Any] = {
        "name": item.name,
        "lane": item.lane,
        "fits": item.fits,
        "tight": item.tight,
        "total_bytes": item.total_bytes,
        "live_bytes": item.live_bytes,
        "least_bytes": item.least_bytes,
        "most_bytes": item.most_bytes,
        "budget_bytes": item.budget_bytes,
        "budget_source": item.budget.source if item.budget else None,
        "physical_bytes": item.budget.physical if item.budget else None,
        "headroom_bytes": item.headroom_bytes,
        "dominant": item.dominant.name.value if item.dominant else None,
        "moment": item.moment or None,
        "stage": item.stage,
        "surfaces": surfaces,
        "measured_bytes": item.measured.bytes if item.measured else None,
        "measured_kind": ("pool" if item.measured.pool else "live") if item.measured else None,
        "delta": item.delta,
        "parameters": [
            {"family": each.name, "owner": each.owner.value, "bytes": each.bytes, "ways": each.ways,
             "shard": each.shard}
            for each in item.families
        ],
        "routing_block": item.routing and asdict(item.routing),
        **{
            name: [{"axis": each.axis, "change": each.change, "saves_bytes": each.saved, "total_bytes": each.total}
                   for each in changes]
            for name, changes in (("shrinks", item.shrinks), ("pairs", item.pairs))
        },
        "missing": list(item.missing),
        "assumed": [each._asdict() for each in item.assumed],
        "uncounted": list(item.uncounted),
    }  # fmt: skip
    if calibrated:
        each = item.calibration
        tree["calibration"] = each and {name: getattr(each, name) for name in each.__slots__}
    return tree
