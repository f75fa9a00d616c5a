"""T5X, and other programs that log through CLU's `LoggingWriter`: ``[100] collection=train loss=…, timing/…=…``.

Metric names are T5X's (`t5x/models.py`, `metrics_lib`): ``timing/seconds`` is the time since the last record and
``timing/steps_per_second`` its steps over it, so that every record is a mean over its interval. ``loss`` is a sum over
the batch; the loss of a token is ``loss_per_nonpadding_target_token``. A *core* there is a JAX device: half a chip on
TPU v2 and v3, so that no rate a chip follows from the log alone.
"""

from __future__ import annotations

import math
import re
from itertools import compress
from typing import ClassVar, Final

from receipts.ingest.evidence.numbers import number as parse
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT

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
                self._records([int(match[1])], match[2] or "", {name: [value] for name, value in values.items()})
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
        try:
            steps = columns.whole("step")
            figures = {name: columns.floats(name) for name in columns.names if name != "step"}
        except ValueError:
            return False
        self._records(steps, "train", figures)
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

    def _records(self, steps: list[int], collection: str, values: dict[str, list[float]]) -> None:
        """Take records that print the same figures, one or many."""
        reading = self.reading
        for compiled in filter(math.isfinite, values.get("timing/compilation_seconds", ())):
            reading.compile.seconds = (reading.compile.seconds or 0.0) + compiled
            reading.records += 1
        if collection not in _TRAIN:
            return
        intervals = list(map(_interval, *_timing(values, steps)))
        columns = {
            "step_seconds": _step_seconds(values, intervals),
            "tokens_per_second": values.get("timing/target_tokens_per_second"),
            "loss": _first(values, _LOSSES),
            "grad_norm": _first(values, _NORMS),
            "global_batch": _batches(values, intervals),
        }
        figures = {name: column for name, column in columns.items() if column is not None}
        if "loss" not in figures and "tokens_per_second" not in figures:
            kept = [seconds != ABSENT for seconds in figures.get("step_seconds", [ABSENT] * len(steps))]
            steps, intervals = list(compress(steps, kept)), list(compress(intervals, kept))
            figures = {name: list(compress(column, kept)) for name, column in figures.items()}
        if not steps:
            return
        reading.records += len(steps)
        if "loss" in figures:
            self._finite = self._finite is not False and all(map(math.isfinite, figures["loss"]))
        reading.steps.interval = next((steps for steps in reversed(intervals) if steps > 1), reading.steps.interval)
        reading.steps.extend(steps, figures)
        if self._cores is None:
            self._cores = _cores(values)


def _first(values: dict[str, list[float]], names: tuple[str, ...]) -> list[float] | None:
    return next((values[name] for name in names if name in values), None)


def _timing(values: dict[str, list[float]], steps: list[int]) -> tuple[list[float], list[float]]:
    """Steps a second, and seconds since the last record; NaN where they are not told."""
    unknown = [math.nan] * len(steps)
    return _first(values, _RATES) or unknown, values.get("timing/seconds", unknown)


def _interval(rate: float, seconds: float) -> int:
    """Steps since the last record: a whole number, or zero where it is unknown."""
    product = rate * seconds
    if not math.isfinite(product):
        return 0
    steps = round(product)
    return steps if steps >= 1 and abs(product - steps) < _WHOLE * steps else 0


def _step_seconds(values: dict[str, list[float]], intervals: list[int]) -> list[float] | None:
    """Mean seconds of a step: the interval's time over its steps where both are there, else one over the rate."""
    rates = _first(values, _RATES)
    if rates is None:
        return None
    times = values.get("timing/seconds", rates)
    return [
        time / steps if steps else 1 / rate if 0 < rate < math.inf else ABSENT
        for steps, time, rate in zip(intervals, times, rates, strict=True)
    ]


def _batches(values: dict[str, list[float]], intervals: list[int]) -> list[float] | None:
    sequences = values.get("timing/seqs")
    if sequences is None:
        return None
    return [count / steps if steps else ABSENT for count, steps in zip(sequences, intervals, strict=True)]


def _cores(values: dict[str, list[float]]) -> float | None:
    """Devices, by the first record that prints both rates of tokens."""
    names = ("timing/target_tokens_per_second", "timing/target_tokens_per_second_per_core")
    rows = zip(*(values.get(name, ()) for name in names), strict=False)
    ratios = (tokens / each for tokens, each in rows if tokens and each)
    return next((round(ratio) for ratio in ratios if math.isfinite(ratio)), None)


READERS = (T5X,)
