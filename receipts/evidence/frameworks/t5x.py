"""T5X, and other programs that log through CLU's `LoggingWriter`: ``[100] collection=train loss=…, timing/…=…``.

Metric names are T5X's (`t5x/models.py`, `metrics_lib`): ``timing/seconds`` is the time since the last record and
``timing/steps_per_second`` its steps over it, so that every record is a mean over its interval. ``loss`` is a sum over
the batch; the loss of a token is ``loss_per_nonpadding_target_token``. A *core* there is a JAX device: half a chip on
TPU v2 and v3, so that no rate a chip follows from the log alone.
"""

from __future__ import annotations

import math
import re
from typing import ClassVar, Final

from receipts.evidence.numbers import number as parse
from receipts.evidence.reader import LineReader, Spans
from receipts.evidence.reading import Reading
from receipts.evidence.shapes import Columns

_RECORD = re.compile(r"logging_writer\.py:\d{1,6}\] \[(\d{1,15})\] (?:collection=(\S{1,80}) )?")
_CELL = re.compile(
    r"(?<![\w/.\-])([A-Za-z_][\w/.\-]{0,120})=([-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf))(?=,|\s|$)", re.IGNORECASE
)
_LOSSES: Final = (
    "loss_per_nonpadding_target_token",
    "loss_per_all_target_tokens",
    "cross_ent_loss_per_all_target_tokens",
    "train_loss",
    "train/loss",
)
_RATES: Final = ("timing/steps_per_second", "steps_per_sec", "train/steps_per_sec")
_NORMS: Final = ("grad_norm", "gradient_norm", "train/grad_norm")
_KEPT: Final = frozenset(
    {
        *(*_LOSSES, *_RATES, *_NORMS),
        "timing/seconds",
        "timing/seqs",
        "timing/compilation_seconds",
        "timing/target_tokens_per_second",
        "timing/target_tokens_per_second_per_core",
    }
)
_TRAIN: Final = frozenset({"", "train"})
# Steps a record averages over, as `seconds` times the printed rate gives them back.
_WHOLE: Final = 0.01


class T5X(LineReader):
    """Reads CLU's records of the collection ``train``; those of evaluations are no steps."""

    source: ClassVar[str] = "t5x"
    anchors: ClassVar[tuple[bytes, ...]] = (b"logging_writer.py:",)

    def __init__(self) -> None:
        super().__init__()
        self._finite: bool | None = None
        self._cores: float | None = None

    def line(self, text: str, number: int) -> bool:
        """Take one line, of one record or of several glued together."""
        found = list(_RECORD.finditer(text))
        ends = [match.start() for match in found[1:]] + [len(text)]
        for match, end in zip(found, ends, strict=False):
            values = {
                name: value
                for name, word in _CELL.findall(text, match.end(), end)
                if (value := parse(word)) is not None
            }
            if values:
                self._record(int(match[1]), match[2] or "", values, number)
        return False

    def spans(self, text: str) -> Spans:
        """Step and figures of one record of training."""
        found = list(_RECORD.finditer(text))
        if len(found) != 1 or (found[0][2] or "") not in _TRAIN:
            return {}
        cells = [(cell[1], cell.span(2)) for cell in _CELL.finditer(text, found[0].end()) if parse(cell[2]) is not None]
        places = {name: place for name, place in cells if name in _KEPT}
        return {"step": found[0].span(1), **places} if places else {}

    def many(self, columns: Columns) -> bool:
        """Take records of training."""
        names = [name for name in columns.names if name != "step"]
        try:
            steps = columns.whole("step")
            figures = [columns.floats(name) for name in names]
        except ValueError:
            return False
        for line, step, *values in zip(columns.lines, steps, *figures, strict=True):
            self._record(step, "train", dict(zip(names, values, strict=True)), line)
        return True

    def finish(self) -> Reading | None:
        """The reading."""
        reading = self.reading
        if not reading.records:
            return None
        reading.diverged = None if self._finite is None else not self._finite
        if self._cores is not None:
            text = f"rates a core are over {self._cores:.0f} JAX devices; chips are not named"
            reading.remark("note", text)
        return reading

    def _record(self, step: int, collection: str, values: dict[str, float], line: int) -> None:
        reading = self.reading
        compiled = values.get("timing/compilation_seconds")
        if compiled is not None and math.isfinite(compiled):
            reading.compile.seconds = (reading.compile.seconds or 0.0) + compiled
            reading.records += 1
        if collection not in _TRAIN:
            return
        seconds = _step_seconds(values)
        loss = _first(values, _LOSSES)
        tokens = values.get("timing/target_tokens_per_second")
        if seconds is None and loss is None and tokens is None:
            return
        reading.records += 1
        if loss is not None:
            self._finite = self._finite is not False and math.isfinite(loss)
        interval = _interval(values)
        if interval is not None and interval > 1:
            reading.steps.interval = interval
        sequences = values.get("timing/seqs")
        reading.steps.put(
            step,
            {
                "step_seconds": seconds,
                "tokens_per_second": tokens,
                "loss": loss,
                "grad_norm": _first(values, _NORMS),
                "global_batch": sequences / interval if interval and sequences is not None else None,
            },
        )
        per_core = values.get("timing/target_tokens_per_second_per_core")
        if tokens and per_core and self._cores is None and math.isfinite(tokens / per_core):
            self._cores = round(tokens / per_core)


def _first(values: dict[str, float], names: tuple[str, ...]) -> float | None:
    return next((values[name] for name in names if name in values), None)


def _interval(values: dict[str, float]) -> int | None:
    """Steps since the last record: a whole number, or unknown."""
    rate, seconds = _first(values, _RATES), values.get("timing/seconds")
    if rate is None or seconds is None or not math.isfinite(rate * seconds):
        return None
    steps = round(rate * seconds)
    return steps if steps >= 1 and abs(rate * seconds - steps) < _WHOLE * steps else None


def _step_seconds(values: dict[str, float]) -> float | None:
    """Mean seconds of a step: the interval's time over its steps where both are there, else one over the rate."""
    interval, seconds = _interval(values), values.get("timing/seconds")
    if interval is not None and seconds is not None:
        return seconds / interval
    rate = _first(values, _RATES)
    return 1 / rate if rate is not None and rate > 0 and math.isfinite(rate) else None


READERS = (T5X,)
