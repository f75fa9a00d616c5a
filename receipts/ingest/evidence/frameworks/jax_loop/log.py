"""Steps of a plain training loop that prints a JSON object a line, as many JAX scripts do.

There is no format to know here, so nothing is guessed: a line counts where it is one JSON object with a whole ``step``
and a time or rate whose name says its unit (``step_time_s``, ``step_time_ms``, ``tokens_per_second``).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import orjson

from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.step_lines import step_of

# Field and factor by name; a name without a unit (`step_time`) is none of them.
_TIMES: Final = {
    "step_time_s": 1.0,
    "step_time_sec": 1.0,
    "step_time_secs": 1.0,
    "step_time_seconds": 1.0,
    "step_seconds": 1.0,
    "seconds_per_step": 1.0,
    "sec_per_step": 1.0,
    "step_time_ms": 1e-3,
    "step_ms": 1e-3,
    "ms_per_step": 1e-3,
}
_RATES: Final = {
    "tokens_per_second": "tokens_per_second",
    "tokens_per_sec": "tokens_per_second",
    "tokens_per_second_per_chip": "tokens_per_second_per_chip",
    "tokens_per_sec_per_chip": "tokens_per_second_per_chip",
    "tokens_per_second_per_device": "tokens_per_second_per_chip",
    "tokens_per_sec_per_device": "tokens_per_second_per_chip",
    "tflops_per_second_per_chip": "tflops_per_second_per_chip",
    "tflops_per_sec_per_device": "tflops_per_second_per_chip",
}
_LOSSES: Final = ("loss", "train_loss", "train/loss")
_NORMS: Final = ("grad_norm", "gradient_norm", "train/grad_norm")
# Names by which other sources' lines are known.
_OTHERS: Final = ("_step", "_timestamp", "perf/step_time_seconds", "learning/loss")


class JaxLoop(LineReader):
    """Reads JSON lines with a step and a time of stated unit."""

    source: ClassVar[str] = "jax-loop"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b'"step_time_',
        b'"step_seconds"',
        b'"seconds_per_step"',
        b'"sec_per_step"',
        b'"step_ms"',
        b'"ms_per_step"',
        b'"tokens_per_sec',
        b'"step_time"',
    )

    def __init__(self) -> None:
        super().__init__()
        self._finite: bool | None = None
        self._unitless = 0

    def line(self, text: str, number: int) -> bool:
        """Take one line that is an object and nothing else."""
        body = text.strip()
        if not (body.startswith("{") and body.endswith("}")):
            return False
        try:
            # Python writes NaN and Infinity, which JSON has not; between a colon and a comma they are no text.
            record = orjson.loads(body if "NaN" not in body and "Infinity" not in body else _without_nan(body))
        except orjson.JSONDecodeError:
            return False
        if not isinstance(record, dict) or any(name in record for name in _OTHERS):
            return False
        step = record.get("step")
        if isinstance(step, bool) or not isinstance(step, int) or step_of(body) is None:
            return False
        self._step(step, record, number)
        return False

    def finish(self) -> Reading | None:
        """The reading."""
        reading = self.reading
        if self._unitless and reading.records:
            reading.remark("note", '"step_time" names no unit and is not read')
        reading.diverged = None if self._finite is None else not self._finite
        return reading if reading.records else None

    def _step(self, step: int, record: dict[str, Any], number: int) -> None:
        values: dict[str, float | None] = {}
        for name, factor in _TIMES.items():
            value = _number(record.get(name))
            if value is not None and value >= 0 and "step_seconds" not in values:
                values["step_seconds"] = value * factor
        for name, field in _RATES.items():
            value = _number(record.get(name))
            if value is not None and field not in values:
                values[field] = value
        self._unitless += "step_time" in record
        if not values:
            return
        loss = next((found for name in _LOSSES if (found := _number(record.get(name))) is not None), None)
        if loss is not None:
            self._finite = self._finite is not False and math.isfinite(loss)
        values["loss"] = loss
        values["grad_norm"] = next((found for name in _NORMS if (found := _number(record.get(name))) is not None), None)
        self.reading.records += 1
        self.reading.steps.put(step, values)


def _without_nan(body: str) -> str:
    for word in ("-Infinity", "Infinity", "NaN"):
        for space in (": ", ":"):
            body = body.replace(f'"{space}{word}', f'"{space}"{word}"')
    return body


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


READERS = (JaxLoop,)
