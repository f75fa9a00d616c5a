"""MaxText's metrics as JSON lines: `metrics_file`, and `metrics_step_000000_to_step_000099.txt` in a bucket.

`metric_logger.py` writes one object a step, ``perf/…`` and ``learning/…`` beside ``step`` and ``run_name``, and one of
``eval/…`` for each evaluation. Floats stand with all their digits; rates are those of one JAX device.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar, Final

import orjson

from receipts.ingest.evidence.frameworks.maxtext.steady import Events, not_steady
from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading

FIELDS: Final = {
    "perf/step_time_seconds": "step_seconds",
    "perf/per_device_tflops_per_sec": "tflops_per_second_per_chip",
    "perf/per_device_tokens_per_sec": "tokens_per_second_per_chip",
    "learning/loss": "loss",
    "learning/grad_norm": "grad_norm",
}
MAX_OPEN_LINES: Final = 100
MAX_PIECE: Final = 1 << 16
# Where the object is quoted in a comment.
_COMMENT = re.compile(r"^\s*(?:#|//)\s?|\s+$")


class MaxTextMetrics(LineReader):
    """Reads the JSON lines of MaxText's metrics, wherever they stand."""

    source: ClassVar[str] = "maxtext-metrics"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"learning/', b'"perf/step_time_seconds"', b'"eval/avg_loss"')

    def __init__(self) -> None:
        super().__init__()
        self._events = Events()
        self._last: int | None = None
        self._finite: bool | None = None
        self._validation: tuple[float, int] | None = None
        self._open: list[str] = []

    def line(self, text: str, number: int) -> bool:
        """Take one line; what stands before the object (a prefix) or behind it is left alone.

        More are wanted while an object is open, which a page prints over several lines.
        """
        record = _object(text)
        if self._open and (record is not None or "{" in text or len(self._open) >= MAX_OPEN_LINES):
            self._broken(number)
        if record is None:
            self._open.append(_COMMENT.sub("", text[:MAX_PIECE]))
            if "}" not in text:
                return True
            whole = " ".join(self._open)
            record = _object(whole if "{" in whole else "{" + whole)
            if record is None:
                self._broken(number)
                return False
        self._open.clear()
        self._record(record, number)
        return False

    def _broken(self, number: int) -> None:
        self._open.clear()
        self.reading.remark("broken", "metrics that are no whole JSON object", number)

    def _record(self, record: dict[str, Any], number: int) -> None:
        known = ("learning/loss", "perf/step_time_seconds", "eval/avg_loss")
        if not any(name in record for name in known):
            return
        step = _number(record.get("step"))
        if step is None or step != int(step) or not 0 <= step < 1e15:
            self.reading.remark("missing", "a metrics line without a step", number)
            return
        self.reading.records += 1
        if "learning/loss" in record or "perf/step_time_seconds" in record:
            self._step(int(step), record, number)
        else:
            self._evaluation(int(step), record, number)

    def finish(self) -> Reading | None:
        """The reading; a file of evaluations only has no steps."""
        reading = self.reading
        if self._open:
            self._broken(0)
        if not reading.records:
            return None
        reading.diverged = None if self._finite is None else not self._finite
        not_steady(reading, self._events)
        if self._validation is not None:
            reading.state("measurement.loss.validation", self._validation[0], "eval/avg_loss", self._validation[1])
        if len(reading.steps):
            reading.see("framework", "maxtext", "backend")
        return reading

    def _step(self, step: int, record: dict[str, Any], number: int) -> None:
        reading = self.reading
        values = {field: _number(record.get(key)) for key, field in FIELDS.items()}
        reading.steps.put(step, {**values})
        loss = values["loss"]
        if loss is not None:
            self._finite = self._finite is not False and math.isfinite(loss)
        if step == 0 or (self._last is not None and step < self._last):
            self._events.first.add(step)
        self._last = step
        tera = _number(record.get("perf/per_device_tflops"))
        if tera is not None and 0 < tera < 1e12:
            reading.state("measurement.flops_per_step_per_chip", tera * 1e12, f"perf/per_device_tflops: {tera}", number)
        name = record.get("run_name")
        if isinstance(name, str) and name:
            reading.state("run.label", name, name, number)

    def _evaluation(self, step: int, record: dict[str, Any], number: int) -> None:
        value = _number(record.get("eval/avg_loss"))
        if value is not None and math.isfinite(value):
            self._validation = value, number
        self._events.after[step + 1] = "eval"


def _object(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    end = text.rfind("}")
    if start < 0 or end < start:
        return None
    body = text[start : end + 1]
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            # Python writes NaN and Infinity, which are no JSON and are what a diverged run has.
            found = json.loads(body)
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


READERS = (MaxTextMetrics,)
