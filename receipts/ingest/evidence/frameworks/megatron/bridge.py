"""What Megatron-Bridge prints beside the iteration line: step times of rank 0, and its configuration.

Source: src/megatron/bridge/training/utils/train_utils.py and config.py, v0.1 to v0.6. ``Step Time`` is printed by the
first rank and the iteration line by the last, so that either may come first; the former has two decimals.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from math import inf, nan
from typing import Any, Final

from receipts.ingest.evidence.frameworks.megatron import configuration as megatron_config
from receipts.ingest.evidence.frameworks.megatron.block import NestedDump
from receipts.ingest.evidence.frameworks.megatron.line import FIRST_RANK
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.record import RecordRows
from receipts.ingest.evidence.steps import MAX_STEPS

# Two decimals of seconds, and the last digit of the milliseconds.
_ROUNDING: Final = 0.00506
_WAITING: Final = 64
_UNNAMED: Final = -1
_RATE: Final = "tflops_per_second_per_chip"
_NAMES: Final = {"num_moe_experts": "num_experts", "sequence_length": "seq_length", "wgrad_fusion": ""}
_SECTIONS: Final = ("model", "train", "dataset", "optimizer", "ddp", "scheduler", "rng", "tokenizer", "mixed_precision")


class StepTimes:
    """Step times of the first rank and records that print no TFLOP/s, in their order; ``any`` where a time was read."""

    __slots__ = ("_rates", "_seconds", "_steps", "any")

    def __init__(self) -> None:
        # Of a step time the step is `_UNNAMED`, of a record the rate is NaN.
        self._steps = array("q")
        self._seconds = array("d")
        self._rates = array("d")
        self.any = False

    def take(self, rows: RecordRows, times: Sequence[tuple[float, float]] | None) -> None:
        """Take records, and the step time (with its TFLOP/s or NaN) that is before or behind each."""
        records = [(step, seconds, nan) for step, seconds in zip(rows.steps, rows.values("step_seconds"), strict=True)]
        if not self.any:
            # Before the first step time only the last record can wait for one.
            del self._steps[:], self._seconds[:], self._rates[:]
            records = records if times else records[-1:]
        if times is None:
            self._keep(records)
            return
        self.any = True
        stated = [(_UNNAMED, seconds, rate) for seconds, rate in times]
        before = next(iter(rows.columns.names)) == FIRST_RANK
        self._keep(
            list(
                chain.from_iterable(
                    zip(stated, records, strict=False) if before else zip(records, stated, strict=False)
                )
            )
        )

    def time(self, seconds: float, rate: float) -> None:
        """Take one step time, with its TFLOP/s or NaN."""
        self.any = True
        self._keep([(_UNNAMED, seconds, rate)])

    def pair(self, reading: Reading) -> None:
        """Give each record the TFLOP/s of the step time that is as long, of those around it."""
        times: deque[tuple[float, float]] = deque(maxlen=_WAITING)
        records: deque[tuple[float, int]] = deque(maxlen=_WAITING)
        rates: dict[int, float] = {}
        for step, seconds, rate in zip(self._steps, self._seconds, self._rates, strict=True):
            if step != _UNNAMED:
                at = _near(times, seconds) if times else None
                rates[step] = nan if at is None else times[at][1]
                if at is None:
                    records.append((seconds, step))
                for _ in range(0 if at is None else at + 1):
                    times.popleft()
            elif records and (at := _near(records, seconds)) is not None:
                rates[records[at][1]] = rate
                del records[at]
            else:
                times.append((seconds, rate))
        for step, printed in zip(reading.steps.numbers(), reading.steps.column(_RATE), strict=True):
            if printed is None and 0 < (rate := rates.get(step, nan)) < inf:
                reading.steps.add(step, {_RATE: rate})

    def number(self, reading: Reading) -> None:
        """Number the step times by their order: the log holds no iteration record that would name them."""
        for step, (seconds, rate) in enumerate(zip(self._seconds, self._rates, strict=True), 1):
            reading.steps.put(step, {"step_seconds": seconds or None, _RATE: rate if rate > 0 else None})
        reading.remark("note", "steps are numbered by the order of their times; the log names none")

    def _keep(self, events: Sequence[tuple[int, float, float]]) -> None:
        steps, seconds, rates = zip(*events, strict=True)
        if len(self._steps) + len(steps) <= 2 * MAX_STEPS:
            self._steps.extend(steps)
            self._seconds.extend(seconds)
            self._rates.extend(rates)


def _near(waiting: Iterable[tuple[float, Any]], seconds: float) -> int | None:
    """The place of the first that is as long."""
    for at, item in enumerate(waiting):
        if abs(item[0] - seconds) <= _ROUNDING:
            return at
    return None


def configure(reading: Reading, block: NestedDump) -> None:
    """State what a configuration dump of Megatron-Bridge gives, by the arguments' names."""
    section = block.leaf(*_SECTIONS)
    renamed = {_NAMES.get(name, name): value for name, value in section.items()}
    renamed.pop("", None)
    if "rng.seed" in block.values:
        renamed["seed"] = block.values["rng.seed"]
    # A dump of differences holds no default: the sizes that it leaves out are unknown, and stay so.
    megatron_config.state(reading, renamed)
