"""torch_xla's counters and timers: the printed report, the JSON of a script, and what a table of them proves.

What a table of torch_xla's counters and timers proves: compiles, cache, fallbacks, host reads, the posture. A counter
that never counted is not in the table, so an absence is a zero only in a whole table of executed steps.

torch_xla's metrics report: `met.metrics_report()`, the short one, XLA_METRICS_FILE, and excerpts of them. Read:
``Metric: NAME`` with ``TotalSamples:`` and ``Accumulator:`` (``Counter:`` in reports of 2019), ``Counter: NAME`` with
``Value:``, ``[MetricsData; step=N]``, indented or behind a logger's prefix. A report is cumulative: of several in one
file the last one stands, and each tells the compiles of its steps.

Of a duration the printer rounds every unit, but takes only the floor of it away before it prints the next one, in
every version up to 2.9: ``02s903ms745.417us`` is 1.902745417 s. Decode from the smallest unit upward: where what is
left below a unit is half of it or more, it was rounded up. Source: torch_xla/csrc/runtime/metrics.cpp
(`MetricFnTime`).

torch_xla's counters and metrics kept as JSON by a training script. Two documents are known by their content:
``{"counters": {NAME: n}, "metrics": {NAME: {…}}}`` with what `met.counter_value` and `met.metric_data` return
(samples and the accumulator, nanoseconds for timers), and the list of `met.executed_fallback_ops()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from receipts.base.units import CLOCK
from receipts.ingest.literals import counted, size
from receipts.ingest.reader import JsonReader, LineReader
from receipts.ingest.reading import TRANSFERS, CompileCounts, Reading, Report, Timing

EXECUTIONS: Final = ("ExecuteTime", "ExecuteReplicatedTime", "ExecuteParallelTime", "ExecuteChainedTime")
EAGER: Final = ("EagerOpExecuteTime", "EagerOpCompileTime")
DYNAMO: Final = "DynamoSyncInputExecuteTime"
# Executions are counted when they end, so a report may lack those of the last steps.
MAX_LAG: Final = 2
HOST_READ: Final = "aten::_local_scalar_dense"
FROM_DEVICE: Final = ("TransferFromDeviceTime", "TransferFromServerTime")
TO_DEVICE: Final = ("TransferToDeviceTime", "TransferToServerTime")
# What `met.short_metrics_report()` prints, next to every aten:: counter.
SHORT: Final = frozenset(
    {"CachedCompile", "MarkStep", "CompileTime", DYNAMO, *EXECUTIONS[:2], *FROM_DEVICE, *TO_DEVICE}
)


@dataclass(slots=True)
class MetricsReport:
    """Counters and timers of one report; ``samples`` holds the sample counts of every metric, timer or not."""

    counters: dict[str, int] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    # Steps that `[MetricsData; step=N]` counts above a report, from 0.
    step: int | None = None

    def update(self, later: MetricsReport) -> bool:
        """Take over a later report of the process; True where the table was cleared in between."""
        mine, other = {**self.counters, **self.samples}, {**later.counters, **later.samples}
        cleared = any(other[name] < mine[name] for name in other.keys() & mine.keys())
        if cleared or not later.short:
            self.counters, self.timings, self.samples = later.counters, later.timings, later.samples
        else:
            self.counters |= later.counters
            self.timings |= later.timings
            self.samples |= later.samples
        self.cut, self.step = later.cut, later.step
        return cleared

    @property
    def short(self) -> bool:
        """Whether this holds nothing that the short report does not print."""
        return all(name in SHORT or name.startswith("aten::") for name in (*self.counters, *self.samples))

    @property
    def executions(self) -> int:
        """Programs executed."""
        timed = sum(self.samples.get(name, 0) for name in EXECUTIONS)
        return max(timed, self.counters.get("ExecuteComputation", 0))

    @property
    def steps(self) -> int | None:
        """Steps marked; a mark with nothing pending executes nothing, as where the loader and the loop both mark."""
        marked = self.counters.get("MarkStep", self.step)
        if marked is None or self.executions + MAX_LAG >= marked:
            return marked
        return self.executions or marked

    @property
    def eager(self) -> bool:
        """Whether operators were compiled and executed one by one."""
        return any(name in self.samples or name in self.counters for name in EAGER)

    @property
    def compiles(self) -> int | None:
        """Programs compiled. `CachedCompile` counts look-ups that hit in memory; it is no persistent hit."""
        count = self._counted
        return 0 if count is None and self.counters.get("PersistentCacheHit") and self.whole else count

    @property
    def _counted(self) -> int | None:
        """Compiles as far as a line shows them. To 2.7 the programs of dynamo are timed, and not counted."""
        counts = self.counters.get("UncachedCompile"), self.samples.get("CompileTime")
        count = max((item for item in counts if item is not None), default=None)
        return count if count is not None else self.samples.get("EagerOpCompileTime")

    @property
    def cleared(self) -> bool:
        """Whether programs ran that no line of the table compiled: it was cleared after the first compile."""
        loaded = self.counters.get("PersistentCacheHit", 0)
        return self.executions > 0 and self._counted is None and not loaded

    @property
    def whole(self) -> bool:
        """Whether an operator that is not here was not executed in the steps that this table covers."""
        steps = "MarkStep" in self.counters or self.eager
        kind = any(name.startswith("xla::") for name in self.counters) or self.short
        return steps and kind and self.executions > 0 and not (self.cut or self.cleared)

    @property
    def host_reads(self) -> int | None:
        """Reads of live tensors: printing a tensor leaves a transfer and no operator's name, `.item()` leaves both."""
        transfers = sum(self.samples.get(name, 0) for name in FROM_DEVICE)
        reads = max(transfers, self.counters.get(HOST_READ, 0))
        return reads if reads or self.whole else None

    @property
    def report(self) -> Report | None:
        """Steps, compiles and host reads so far; None where the table does not show what a step executes."""
        steps, compiles = self.steps, self.compiles
        if steps is None or compiles is None or not self.executions:
            return None
        return Report(steps, compiles, self.host_reads, -(-self.executions // max(steps, 1)))


def describe(table: MetricsReport, reading: Reading, line: int) -> None:
    """Put into the reading what the table proves."""
    reading.counters = dict(table.counters)
    reading.timings = dict(table.timings)
    counts = reading.counters
    operators = {name: count for name, count in counts.items() if name.startswith("aten::") and name != HOST_READ}
    reading.complete = table.whole
    reading.fallbacks = operators if operators or table.whole else None
    reading.host_transfers = table.host_reads
    # What falls back reads its operands; a tensor that is printed or copied leaves no operator's name.
    readers = {HOST_READ: counts[HOST_READ]} if HOST_READ in counts else operators
    for name, count in (readers or {"no operator: a tensor is printed or copied": table.host_reads or 0}).items():
        if table.host_reads:
            reading.blame(TRANSFERS, name, count)
    reading.steps_covered = table.steps or (table.executions if not table.eager else 0) or None
    reading.marks = True
    counts = table.counters
    timing = table.timings.get("CompileTime") or table.timings.get("EagerOpCompileTime")
    cached = any(name.startswith("PersistentCache") for name in (*counts, *table.samples))
    reading.compile = CompileCounts(
        compiles=table.compiles,
        cache_hits=counts.get("PersistentCacheHit", 0) if cached else None,
        cache_misses=counts.get("PersistentCacheMiss", 0) if cached else None,
        seconds=timing.seconds if timing is not None else None,
    )
    if not reading.reports and (report := table.report) is not None:
        reading.reports.append(report)
    if table.executions or table.samples or any(name.startswith(("xla::", "aten::")) for name in counts):
        reading.see("framework", "torch-xla", "kernels", line)
    if table.eager:
        reading.see("posture", "eager", "kernels", line)
    elif DYNAMO in counts:
        reading.see("posture", "whole_graph", "kernels", line)
    if table.cleared:
        what = f"{table.executions} executions and no compile: the table was cleared, or cut; totals are unknown"
        reading.remark("missing", what, line)
    elif not table.executions and counts.get("CreateXlaTensor"):
        reading.remark("missing", "tensors were made and nothing was executed: this report covers no step", line)
    elif not table.whole:
        reading.remark("missing", "an excerpt, or no executed step: what it does not name is unknown, not zero", line)
    if counts.get("PersistentCacheDeserializeFailure") and not counts.get("PersistentCacheHit"):
        failures = counts["PersistentCacheDeserializeFailure"]
        reading.remark("note", f"{failures} cached programs could not be loaded: the cache saved no compile", line)


# Nanoseconds.
_UNITS: Final = {unit: round(factor * 1e9) for unit, factor in CLOCK.items()}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s|m|h|d)")
_DURATION: Final = re.compile(r"(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|ms|s|m|h|d)){1,7}")


def seconds(text: str) -> float | None:
    """Seconds of a printed duration (``04m22s555ms668.071us``), decoded; None where it is none."""
    if _DURATION.fullmatch(text) is None:
        return None
    parts = [(_picos(figure), _UNITS[unit] * 1000) for figure, unit in _PART.findall(text)]
    total = 0
    above = None
    for picos, unit in reversed(parts):
        if above is not None and unit <= above:
            return None
        count = picos // 1000
        if above is None:
            total = picos * unit // 1000
        else:
            # ``total`` is what is below this unit: at half of it and more the printer had rounded up. The highest
            # unit is printed from one of it on, and a half may be rounded down to zero.
            least = 2 if unit == parts[0][1] else 1
            total += (count - 1 if 2 * total >= unit and count >= least else count) * unit
        above = unit
    return total / 1e12


def _picos(figure: str) -> int:
    """Thousandths of a unit, exact."""
    whole, _, rest = figure.partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3])


MAX_NAMES: Final = 20_000
MAX_FOREIGN: Final = 3
# A program that prints dots as it goes leaves no line break before the report.
_NAME: Final = re.compile(r"(?<!\w)(Metric|Counter): ([A-Za-z_][\w:.\-]{0,199})\s*$")
_FIELD: Final = re.compile(
    r"(?:^|[\s\]:|>])(TotalSamples|Accumulator|Counter|Value|ValueRate|Rate|Mean|StdDev|Percentiles):\s*([^\s`]{0,99})"
)
_STEP: Final = re.compile(r"\[MetricsData; step=(\d{1,15})\]")
_INTEGER: Final = re.compile(r"\d{1,18}")


class TorchXlaMetrics(LineReader):
    """Reports of torch_xla's counters and timers."""

    source = "torch-xla-metrics"
    anchors = (b"Metric: ", b"Counter: ", b"[MetricsData; step=")

    def __init__(self) -> None:
        super().__init__()
        self._table = MetricsReport()
        self._part: MetricsReport | None = None
        self._kind = self._name = ""
        self._samples: int | None = None
        self._has: set[str] = set()
        self._foreign = 0
        self._first = 0
        self._merged = False

    def line(self, text: str, number: int) -> bool:
        """Names, their fields, and what ends or elides a report."""
        self._first = self._first or number
        if (step := _STEP.search(text)) is not None:
            self._end_report()
            self._part = MetricsReport(step=int(step[1]) + 1)
            self._foreign = 0
            return True
        # Inside a metric of an old report ``Counter: 06m09s…`` is its accumulator.
        named = _NAME.search(text)
        if named is not None and not (self._kind == "Metric" and seconds(named[2]) is not None):
            self._close()
            if self._part is not None and named[2] in (
                self._part.counters if named[1] == "Counter" else self._part.samples
            ):
                self._end_report()
            if self._part is None:
                self._part = MetricsReport()
            self._kind, self._name = named[1], named[2]
            self._samples, self._has = None, set()
            self._foreign = 0
            return True
        if not self._kind and self._part is None:
            return False
        if (fields := _FIELD.search(text)) is not None:
            self._foreign = 0
            self._take(fields[1], fields[2])
            return True
        return self._other(text.strip())

    def finish(self) -> Reading | None:
        """The last report, with what the earlier ones tell of it."""
        self._end_report()
        if not self.reading.records:
            return None
        describe(self._table, self.reading, self._first)
        return self.reading

    def _take(self, name: str, value: str) -> None:
        part = self._part
        if part is None or len(part.counters) + len(part.samples) >= MAX_NAMES:
            return
        self._has.add(name)
        if self._kind == "Counter" and name == "Value" and _INTEGER.fullmatch(value):
            part.counters[self._name] = int(value)
            self.reading.records += 1
        elif self._kind == "Metric" and name == "TotalSamples" and _INTEGER.fullmatch(value):
            part.samples[self._name] = self._samples = int(value)
            self.reading.records += 1
        elif self._kind == "Metric" and name in ("Accumulator", "Counter") and self._samples is not None:
            if (spent := seconds(value)) is not None:
                part.timings[self._name] = Timing(self._samples, spent)
            elif value.endswith("B") and (moved := size(value)) is not None:
                part.counters[f"{self._name}.bytes"] = moved

    def _other(self, text: str) -> bool:
        """Blank lines and wrapped percentiles go on; an elision is noted; other programs' lines end the block."""
        if not text:
            return True
        if text.startswith(("...", "…", "[...", "<...")):
            if self._part is not None:
                self._part.cut = True
            return True
        if "%=" in text:
            return True
        self._foreign += 1
        return self._foreign < MAX_FOREIGN

    def _close(self) -> None:
        """A metric without the rest of its lines was shortened by hand, and so was its report."""
        shown = "Percentiles" in self._has and bool(self._has & {"Accumulator", "Counter"})
        cut = self._samples is None or not shown if self._kind == "Metric" else "Value" not in self._has
        if self._part is not None and self._kind and cut:
            self._part.cut = True
        self._kind = self._name = ""

    def _end_report(self) -> None:
        self._close()
        part, self._part = self._part, None
        if part is None or not (part.counters or part.samples):
            return
        if self._table.update(part) and self._merged:
            self.reading.reports.clear()
            self.reading.remark("note", "the table was cleared between two reports; the later one stands")
        self._merged = True
        report = self._table.report
        if report is not None and len(self.reading.reports) < MAX_NAMES:
            self.reading.reports.append(report)


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


READERS = (TorchXlaMetrics, TorchXlaMetricsJson)
