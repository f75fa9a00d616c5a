"""torch_xla's metrics report: `met.metrics_report()`, the short one, XLA_METRICS_FILE, and excerpts of them.

Read: ``Metric: NAME`` with ``TotalSamples:`` and ``Accumulator:`` (``Counter:`` in reports of 2019), ``Counter: NAME``
with ``Value:``, ``[MetricsData; step=N]``, indented or behind a logger's prefix. A report is cumulative: of several in
one file the last one stands, and each tells the compiles of its steps.

Of a duration the printer rounds every unit, but takes only the floor of it away before it prints the next one, in every
version up to 2.9: ``02s903ms745.417us`` is 1.902745417 s. Decode from the smallest unit upward: where what is left
below a unit is half of it or more, it was rounded up. Source: torch_xla/csrc/runtime/metrics.cpp (`MetricFnTime`).
"""

from __future__ import annotations

import re
from typing import Final

from receipts.base.units import CLOCK
from receipts.ingest.evidence.witnesses.torch_xla_metrics_table import MetricsReport, describe
from receipts.ingest.literals import size
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading, Timing

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
            self._open(named[1], named[2])
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

    def _open(self, kind: str, name: str) -> None:
        self._close()
        if self._part is not None and name in (self._part.counters if kind == "Counter" else self._part.samples):
            self._end_report()
        if self._part is None:
            self._part = MetricsReport()
        self._kind, self._name = kind, name
        self._samples, self._has = None, set()

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
            self._accumulate(part, value)

    def _accumulate(self, part: MetricsReport, value: str) -> None:
        assert self._samples is not None
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
        if self._part is not None and self._kind and self._cut():
            self._part.cut = True
        self._kind = self._name = ""

    def _cut(self) -> bool:
        if self._kind == "Counter":
            return "Value" not in self._has
        shown = "Percentiles" in self._has and bool(self._has & {"Accumulator", "Counter"})
        return self._samples is None or not shown

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


READERS = (TorchXlaMetrics,)
