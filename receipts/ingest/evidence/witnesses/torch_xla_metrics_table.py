"""What a table of torch_xla's counters and timers proves: compiles, cache, fallbacks, host reads, the posture.

A counter that never counted is not in the table, so an absence is a zero only in a whole table of executed steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
    reading.compile = _compile(table)
    if not reading.reports and (report := table.report) is not None:
        reading.reports.append(report)
    if table.executions or table.samples or any(name.startswith(("xla::", "aten::")) for name in counts):
        reading.see("framework", "torch-xla", "kernels", line)
    if table.eager:
        reading.see("posture", "eager", "kernels", line)
    elif DYNAMO in counts:
        reading.see("posture", "whole_graph", "kernels", line)
    _remarks(table, reading, line)


def _compile(table: MetricsReport) -> CompileCounts:
    counts = table.counters
    timing = table.timings.get("CompileTime") or table.timings.get("EagerOpCompileTime")
    cached = any(name.startswith("PersistentCache") for name in (*counts, *table.samples))
    return CompileCounts(
        compiles=table.compiles,
        cache_hits=counts.get("PersistentCacheHit", 0) if cached else None,
        cache_misses=counts.get("PersistentCacheMiss", 0) if cached else None,
        seconds=timing.seconds if timing is not None else None,
    )


def _remarks(table: MetricsReport, reading: Reading, line: int) -> None:
    counts = table.counters
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
