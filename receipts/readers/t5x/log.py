"""T5X, and other programs that log through CLU's `LoggingWriter`: ``[100] collection=train loss=…, timing/…=…``.

Metric names are T5X's (`t5x/models.py`, `metrics_lib`): ``timing/seconds`` is the time since the last record and
``timing/steps_per_second`` its steps over it, so that every record is a mean over its interval. ``loss`` is a sum over
the batch; the loss of a token is ``loss_per_nonpadding_target_token``. A *core* there is a JAX device: half a chip on
TPU v2 and v3, so that no rate a chip follows from the log alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from receipts.ingest.literals import FIGURE
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT

_COLLECTION = re.compile(r"collection=(\S{1,80}) ")
# Steps a record averages over, as `seconds` times the printed rate gives them back.
_WHOLE: Final = 0.01


class T5X(RecordReader, table="t5x"):
    """Reads CLU's records of the collection ``train``; those of evaluations are no steps."""

    forms = (
        Form(
            # Under Python's own handler the place is the logger's name; a message alone names its collection.
            re.compile(
                r"(?:logging_writer\.py:\d{1,6}\] |\babsl:|(?<!\S)(?=\[\d{1,12}\] collection=))\[(?P<step>\d{1,12})\] "
            ),
            (
                re.compile(
                    r"(?<![\w/.\-])(?P<label>[A-Za-z_][\w/.\-]{0,120})="
                    rf"(?P<word>{FIGURE})(?=,|\s|$)",
                    re.IGNORECASE,
                ),
            ),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._cores: float | None = None

    def complete(self, names: Iterable[str]) -> bool:
        """Whether a record has a known label: any may be left out."""
        return any(self.label(name) is not None for name in names)

    def rows(self, rows: RecordRows) -> None:
        """Take records that print the same figures."""
        reading, figures = self.reading, rows.figures
        for compiled in filter(math.isfinite, figures.pop("compile_seconds", ())):
            reading.compile.seconds = (reading.compile.seconds or 0.0) + compiled
            reading.records += 1
        seconds, rates, sequences, cores = (
            figures.pop(name, None) for name in ("interval_seconds", "steps_per_second", "sequences", "tokens_per_core")
        )
        collection = _COLLECTION.search(rows.text)
        if collection is not None and collection[1] != "train":
            return
        unknown = [math.nan] * len(rows.steps)
        intervals = list(map(_interval, rates or unknown, seconds or unknown))
        if rates is not None:
            figures["step_seconds"] = list(map(_step_seconds, intervals, seconds or rates, rates))
        if sequences is not None:
            counted = zip(sequences, intervals, strict=True)
            figures["global_batch"] = [count / steps if steps else ABSENT for count, steps in counted]
        if not figures.keys() & {"loss", "tokens_per_second"}:
            rows.keep([seconds != ABSENT for seconds in rows.values("step_seconds")])
        reading.steps.interval = next((steps for steps in reversed(intervals) if steps > 1), reading.steps.interval)
        if self._cores is None and cores is not None:
            # Devices, by the first record that prints both rates of tokens.
            ratios = (
                tokens / one
                for tokens, one in zip(figures.get("tokens_per_second", ()), cores, strict=False)
                if tokens and one
            )
            self._cores = next((round(ratio) for ratio in ratios if math.isfinite(ratio)), None)
        self.put(rows)

    def finish(self) -> Reading | None:
        """The reading, which may hold compile times alone."""
        reading = super().finish()
        if reading is None:
            return self.reading if self.reading.records else None
        if self._cores is not None:
            reading.remark("note", f"rates a core are over {self._cores:.0f} JAX devices; chips are not named")
        return reading


def _interval(rate: float, seconds: float) -> int:
    """Steps since the last record: a whole number, or zero where it is unknown."""
    product = rate * seconds
    if not math.isfinite(product):
        return 0
    steps = round(product)
    return steps if steps >= 1 and abs(product - steps) < _WHOLE * steps else 0


def _step_seconds(steps: int, seconds: float, rate: float) -> float:
    """Mean seconds of a step: the interval's time over its steps where both are there, else one over the rate."""
    return seconds / steps if steps else 1 / rate if 0 < rate < math.inf else ABSENT


READERS = (T5X,)
