"""Golden values of Megatron-LM's functional tests: what a test of its CI printed, by metric and step.

Source: tests/functional_tests of Megatron-LM, `golden_values*.json`. Since core 0.10 ``values`` maps steps to figures;
before it was a list that begins at ``start_step`` and goes on by ``step_interval``. A figure that was not printed at a
step is the text ``nan``, so that only a loss that is NaN means anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from receipts.ingest import record_reader as megatron_steady
from receipts.ingest.literals import number
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.steps import MAX_STEPS

_METRICS: Final = {
    "lm loss": "loss",
    "loss": "loss",
    "iteration-time": "step_seconds",
    "iteration_timing": "step_seconds",
    "grad-norm": "grad_norm",
    "batch-size": "global_batch",
    "throughput": "tflops_per_second_per_chip",
}
_AVERAGE: Final = "iteration_timing_avg"


class Golden(JsonReader):
    """Reads one file of golden values as a run's steps."""

    source: ClassVar[str] = "megatron-golden"
    what: ClassVar[str] = "golden values"
    # Each metric has its interval of steps.
    marks = (b'"step_interval"', b'"end_step"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Steps, memory and the mean time of all metrics."""
        reading.complete = reading.ended = True
        losses: list[float] = []
        for metric, block in document.items():
            name = _METRICS.get(metric)
            for step, figure in _values(block):
                if name is None or (math.isnan(figure) and name != "loss"):
                    continue
                losses += [figure] if name == "loss" else []
                reading.steps.add(step, {name: figure})
        reading.records = len(reading.steps)
        _memory(reading, document)
        average = document.get(_AVERAGE)
        if isinstance(average, float) and average > 0:
            text = f"{_AVERAGE} {average}"
            reading.state("measurement.stated.step_seconds", average, text, record=_AVERAGE)
            reading.state("measurement.stated.statistic", "mean", text, record=_AVERAGE)
        if losses:
            reading.diverged = not all(map(math.isfinite, losses))
        numbers = reading.steps.numbers()
        megatron_steady.mark_not_steady(reading, numbers[:1] if numbers and numbers[0] <= 1 else ())


def _values(block: Any) -> Iterator[tuple[int, float]]:
    """Steps and figures of one metric, in either form."""
    if not isinstance(block, dict):
        return
    values = block.get("values")
    if isinstance(values, dict):
        for word, value in list(values.items())[:MAX_STEPS]:
            figure = number(value)
            if word.isdigit() and len(word) < 16 and figure is not None:
                yield int(word), figure
    elif isinstance(values, list):
        start, gap = block.get("start_step"), block.get("step_interval")
        if isinstance(start, int) and isinstance(gap, int) and gap > 0:
            for at, value in enumerate(values[:MAX_STEPS]):
                figure = number(value)
                if figure is not None:
                    yield start + at * gap, figure


def _memory(reading: Reading, metrics: dict[str, Any]) -> None:
    """The largest peak, with the step that reached it first; ranks are not told apart in these files."""
    peaks = list(_values(metrics.get("mem-max-allocated-bytes")))
    peaks = [(step, figure) for step, figure in peaks if 0 < figure < 1e18]
    if not peaks:
        return
    step, peak = max(peaks, key=lambda item: (item[1], -item[0]))
    used = dict(_values(metrics.get("mem-allocated-bytes"))).get(step)
    held = round(used) if used is not None and 0 < used < 1e18 else None
    place = Place(record="mem-max-allocated-bytes")
    reading.memory.append(MemoryRow(place, None, None, step, bytes_used=held, peak_bytes=round(peak)))


READERS = (Golden,)
