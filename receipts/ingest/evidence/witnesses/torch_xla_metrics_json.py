"""torch_xla's counters and metrics kept as JSON by a training script.

Two documents are known by their content: ``{"counters": {NAME: n}, "metrics": {NAME: {…}}}`` with what
`met.counter_value` and `met.metric_data` return (samples and the accumulator, nanoseconds for timers), and the list of
`met.executed_fallback_ops()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from receipts.ingest.evidence.witnesses.torch_xla_metrics_table import HOST_READ, MetricsReport, describe
from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading, Timing

_COUNTERS: Final = re.compile(rb'^\s*\{\s*"(?:counters|metrics)"\s*:\s*\{')
_KNOWN: Final = re.compile(
    rb'"(?:CreateXlaTensor|UncachedCompile|CachedCompile|MarkStep|CreateDataHandles|LazyTracing)"'
)
_OPERATORS: Final = re.compile(rb'^\s*\[\s*"aten::')
_TIMERS: Final = frozenset(
    {"DeviceLockWait", "LazyTracing", "IrValueTensorToXlaData", "TensorToData", "UnwrapXlaData", "WrapXlaData"}
)


class TorchXlaMetricsJson(JsonReader):
    """Counters, timers and fallback operators of torch_xla as a JSON document."""

    source = "torch-xla-metrics"
    what = "a table of counters"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Counters by torch_xla's own names, or a list of operators."""
        return bool(_OPERATORS.match(head)) or bool(_COUNTERS.match(head) and _KNOWN.search(head))

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Counters and timers."""
        table = _table(document)
        reading.records = len(table.counters) + len(table.samples)
        describe(table, reading, 0)

    def listed(self, reading: Reading, rows: list[Any]) -> None:
        """Operators without counts: each fell back at least once. Host reads are among them."""
        names = [name for name in rows[:10_000] if isinstance(name, str) and name.startswith("aten::")]
        reading.records = len(names)
        reading.counters = dict.fromkeys(names, 1)
        reading.fallbacks = {name: 1 for name in names if name != HOST_READ} or None
        reading.remark("note", "operators without counts: each was executed on the host at least once")
        if names:
            reading.see("framework", "torch-xla", "kernels")


def _table(document: Mapping[str, Any]) -> MetricsReport:
    table = MetricsReport()
    counters, metrics = document.get("counters"), document.get("metrics")
    if isinstance(counters, dict):
        table.counters = {name: count for name, count in counters.items() if counted(count)}
    for name, metric in metrics.items() if isinstance(metrics, dict) else ():
        samples, total = _metric(metric)
        if samples is None:
            continue
        table.samples[name] = samples
        if total is not None and (name in _TIMERS or name.endswith("Time")):
            table.timings[name] = Timing(samples, total / 1e9)
    return table


def _metric(metric: Any) -> tuple[int | None, float | None]:
    """Samples and accumulator: named, or in the order in which `metric_data` returns them."""
    if isinstance(metric, dict):
        samples = next((metric[name] for name in ("total_samples", "samples", "count") if name in metric), None)
        total = metric.get("accumulator")
    elif isinstance(metric, list) and len(metric) >= 2:
        samples, total = metric[:2]
    else:
        return None, None
    count = samples if counted(samples) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or not abs(total) < 1e18:
        return count, None
    return count, float(total)


READERS = (TorchXlaMetricsJson,)
