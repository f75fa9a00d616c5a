"""Expected values of every line with tolerances that follow from its noise, for a test suite to hold launches to."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.base import files
from receipts.stats.log_ratio import predicted

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.track.line import History
    from receipts.store import Store
    from receipts.store.query.replicates import Line

CONFIDENCE: Final = 0.99
METRICS: Final = ("step_seconds", "tokens_per_second", "peak_bytes")


def export_golden(
    store: Store, rulebook: Rulebook, place: Path, ids: frozenset[str] | None, since: datetime | None, *, force: bool
) -> int:
    """Write the expected values of lines, those with a launch of ``ids`` alone if given; returns their number."""
    lines = store.query.recent_lines(since or datetime(1970, 1, 1, tzinfo=UTC))
    chosen = [line for line in lines if ids is None or any(item.id in ids for item in line.entries)]
    expected = [_line(store, rulebook, line) for line in chosen]
    kept = [item for item in expected if item["values"]]
    document = {"format": "receipts golden", "version": 1, "confidence": CONFIDENCE, "lines": kept}
    files.write(place, json.dumps(document, indent=2, ensure_ascii=False) + "\n", over=force)
    return len(kept)


def _line(store: Store, rulebook: Rulebook, line: Line) -> dict[str, Any]:
    from receipts.plugins.track.line import history

    newest = line.entries[-1]
    lane = rulebook.lanes.of(newest.lane)
    histories = [history(line.entries, line.digest, lane, metrics.get(name), store.parsed) for name in METRICS]
    values = {item.metric: value for item in histories if (value := _expected(item)) is not None}
    return {
        "name": newest.name,
        "line": f"{line.digest % 2**64:016x}",
        "lane": newest.lane,
        "accelerator": newest.accelerator,
        "chips": newest.chips,
        "newest": newest.id,
        "values": values,
    }


def _expected(history: History) -> dict[str, Any] | None:
    """The level since the last change, and how far one more launch may lie from it by chance; None without launches."""
    logs = history.logs
    if not logs:
        return None
    center = math.fsum(logs) / len(logs)
    half = _reach(logs)
    return {
        "expected": math.exp(center),
        "low": math.exp(center - half) if half is not None else None,
        "high": math.exp(center + half) if half is not None else None,
        "launches": len(logs),
        "unit": metrics.get(history.metric).unit,
    }


def _reach(logs: Sequence[float]) -> float | None:
    """Half the prediction interval of one more launch, in logs; None for fewer than three."""
    return predicted(logs).half_width(CONFIDENCE) if len(logs) >= 3 else None
