"""Gauges of watched lines for ``/metrics``: the level of each with its interval, and its open incidents.

A line is watched as `receipts watch` watches it: it has a launch of the last week, or an open incident.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.plugins.track.line import CONFIDENCE, History, history
from receipts.plugins.track.watch import MIN_LAUNCHES

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store

SINCE: Final = timedelta(days=7)
MAX_LINES: Final = 200  # those that ran last
GAUGES: Final = {
    "level": "The metric since the last step of the line, in the unit of the metric",
    "low": "The low end of the 95 % interval of the level",
    "high": "The high end of the 95 % interval of the level",
    "open_incidents": "Incidents that are open",
}


def gauges(store: Store, rulebook: Rulebook) -> Iterator[str]:
    """Lines of OpenMetrics; none where the extra `history` is not installed."""
    if importlib.util.find_spec("ruptures") is None:
        return
    is_open = [item for item in store.published.incidents() if item.closed is None]
    count = Counter((item.line, item.kind, item.metric) for item in is_open)
    values: dict[tuple[int, str, str], tuple[str, str, dict[str, float]]] = {
        (item.line, item.kind, item.metric): (item.body["lane"], item.body["name"], {}) for item in is_open
    }
    lines = store.query.recent_lines(datetime.now(UTC) - SINCE)
    recent = [line for line in lines if len(line.entries) >= MIN_LAUNCHES]
    for line in sorted(recent, key=lambda line: line.entries[-1].started)[-MAX_LINES:]:
        head = line.entries[-1]
        others = (metric for number, kind, metric in count if (number, kind) == (line.digest, head.kind))
        for metric in {metrics.DEFAULT, *others}:
            rules = rulebook.lanes.of(head.lane)
            seen = history(line.entries, line.digest, rules, metrics.get(metric), store.parsed)
            values[line.digest, head.kind, metric] = (head.lane, head.name, _level(seen))
    rows: list[tuple[str, dict[str, float]]] = []
    for (number, kind, metric), (lane, label, level) in sorted(values.items()):
        named = {"lane": lane, "kind": kind, "line": f"{number & (1 << 64) - 1:016x}", "label": label, "metric": metric}
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in named.items())
        rows.append((labels, {**level, "open_incidents": float(count[number, kind, metric])}))
    for name, text in GAUGES.items():
        yield f"# TYPE receipts_line_{name} gauge"
        yield f"# HELP receipts_line_{name} {text}"
        yield from (f"receipts_line_{name}{{{labels}}} {row[name]:.10g}" for labels, row in rows if name in row)


def _level(seen: History) -> dict[str, float]:
    """The level with the interval that the spread of its launches gives; nothing of what is not known."""
    from receipts.stats.log_ratio import RatioEstimate, pooled

    if seen.level is None:
        return {}
    level, launches = seen.level
    sigma = pooled([seen.logs])
    if sigma is None:
        return {"level": level}
    widen = math.exp(RatioEstimate(0.0, sigma.value / math.sqrt(launches), sigma.df).half_width(CONFIDENCE))
    return {"level": level, "low": level / widen, "high": level * widen}


def _escaped(text: str) -> str:
    """A value of a label: on one line, as OpenMetrics quotes it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
