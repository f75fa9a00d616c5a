"""An account as JSON values, every amount in bytes."""

from __future__ import annotations

from typing import Any

from receipts.metrics.chips.account import Account
from receipts.metrics.chips.chip import LEAVES, Chip
from receipts.metrics.chips.phase import Phase


def to_json(memory: Account) -> dict[str, Any]:
    """The account as JSON values, every amount in bytes."""
    return {
        "chips": memory.stated,
        "phases": [_phase_json(phase) for phase in memory.phases],
        "tightest": _tightest_json(memory.tightest),
        "aggregate": memory.aggregate.model_dump(exclude_none=True) if memory.aggregate is not None else None,
    }


def _phase_json(phase: Phase) -> dict[str, Any]:
    rows = [
        {
            "chip": item.chip,
            "bytes_used": item.used,
            "bytes_limit": item.limit,
            "peak_bytes": item.peak,
            "peak_reserved_bytes": item.pool,
            "headroom_bytes": item.headroom,
            "step": item.step,
        }
        for item in phase.chips
    ]
    ranked = {leaf: ranking for name, leaf in LEAVES.items() if (ranking := phase.ranking(name)) is not None}
    moment = phase.moment
    return {
        "phase": phase.name,
        "chips": rows,
        "missing": list(phase.missing),
        "missing_unnamed": phase.unnamed,
        "doubled": list(phase.doubled),
        "beyond_stated": phase.strange,
        "ranking": {leaf: {**item._asdict(), "skew": item.skew} for leaf, item in ranked.items()},
        "earliest": moment._asdict() if moment is not None else None,
        "tightest": _tightest_json(phase.tightest),
    }


def _tightest_json(item: Chip | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {"chip": item.chip, "phase": item.phase, "headroom_bytes": item.headroom, "left": item.left}
