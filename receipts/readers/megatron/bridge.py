"""What Megatron-Bridge prints beside the iteration line: step times of rank 0, and its configuration.

Source: src/megatron/bridge/training/utils/train_utils.py and config.py, v0.1 to v0.6. ``Step Time`` is printed by the
first rank and the iteration line by the last, so that either may come first; the former has two decimals.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from itertools import repeat
from typing import Final

from receipts.ingest import megatron as megatron_config
from receipts.ingest.megatron import NestedDump
from receipts.ingest.reading import Reading
from receipts.ingest.record import RecordRows
from receipts.ingest.steps import ABSENT, MAX_STEPS
from receipts.readers.megatron.iteration import FIRST_RANK

# Two decimals of seconds, and the last digit of the milliseconds.
_ROUNDING: Final = 0.00506
_WAITING: Final = 64
_RATE: Final = "tflops_per_second_per_chip"
_NAMES: Final = {"num_moe_experts": "num_experts", "sequence_length": "seq_length", "wgrad_fusion": ""}
_SECTIONS: Final = ("model", "train", "dataset", "optimizer", "ddp", "scheduler", "rng", "tokenizer", "mixed_precision")


class StepTimes:
    """Pairs step times with iteration records by their time; keeps the order for a log that has no records."""

    __slots__ = ("_records", "_times", "rates", "seconds")

    def __init__(self) -> None:
        self.seconds = array("d")
        self.rates = array("d")
        self._times: deque[tuple[float, float]] = deque(maxlen=_WAITING)
        self._records: deque[tuple[int, float]] = deque(maxlen=_WAITING)

    def __len__(self) -> int:
        return len(self.seconds)

    def give(self, reading: Reading, seconds: float, rate: float, rates: dict[int, float] | None = None) -> None:
        """Take one step time, and give its TFLOP/s (or NaN) to the record that waits for it; ``rates`` are new ones."""
        if len(self.seconds) < MAX_STEPS:
            self.seconds.append(seconds)
            self.rates.append(rate)
        waiting = next((item for item in self._records if abs(item[1] - seconds) <= _ROUNDING), None)
        if waiting is None:
            self._times.append((seconds, rate))
            return
        self._records.remove(waiting)
        if rates is not None and waiting[0] in rates and rate > 0:
            rates[waiting[0]] = rate
        elif rate > 0 and reading.steps.get(waiting[0], _RATE) is None:
            reading.steps.add(waiting[0], {_RATE: rate})

    def pairs(
        self,
        reading: Reading,
        records: Iterable[tuple[int, float]],
        times: Iterable[tuple[float, float] | None],
        *,
        first: bool,
    ) -> list[float]:
        """TFLOP/s of many records, of each of which a step time is before (``first``) or behind; else `ABSENT`."""
        rows = list(zip(records, times, strict=False))
        stated = [time for _, time in rows if time is not None]
        # One step time may stand before the first of the records, and then each is the next one's.
        beside = stated if first else [*self._times, *stated]
        alone = not self._records and len(self._times) <= (not first) and len(stated) == len(rows)
        if alone and all(abs(row[0][1] - time[0]) <= _ROUNDING for row, time in zip(rows, beside, strict=False)):
            # TFLOP/s where each record's step time is known to be its own; `stated` are the new ones.
            room = max(0, MAX_STEPS - len(self.seconds))
            self.seconds.extend(time for time, _ in stated[:room])
            self.rates.extend(rate for _, rate in stated[:room])
            self._times.clear()
            self._times.extend(beside[len(stated) :])
            return [rate if rate > 0 else ABSENT for _, rate in beside[: len(stated)]]
        rates: dict[int, float] = {}
        for (step, seconds), time in rows:
            if time is not None and first:
                self.give(reading, *time, rates)
            rate = self.rate(step, seconds)
            rates[step] = ABSENT if rate is None else rate
            if time is not None and not first:
                self.give(reading, *time, rates)
        return list(rates.values())

    def of_rows(self, reading: Reading, rows: RecordRows, times: list[tuple[float, float]] | None) -> list[float]:
        """TFLOP/s by step times of the first rank; those that the record prints stand."""
        seconds = rows.values("step_seconds")
        if times is None and not len(self):
            # A step time that follows is the last one's.
            self.rate(rows.steps[-1], seconds[-1])
            return rows.values(_RATE)
        first = next(iter(rows.columns.names)) == FIRST_RANK
        rates = self.pairs(reading, zip(rows.steps, seconds, strict=True), times or repeat(None), first=first)
        if _RATE not in rows.figures:
            return rates
        own = zip(rows.figures[_RATE], rates, strict=True)
        return [printed if printed > 0 else rate for printed, rate in own]

    def rate(self, step: int, seconds: float) -> float | None:
        """The TFLOP/s of a step time that was printed before this record; it waits for one where there is none."""
        for at, (printed, rate) in enumerate(self._times):
            if abs(printed - seconds) <= _ROUNDING:
                for _ in range(at + 1):
                    self._times.popleft()
                return rate if rate > 0 else None
        if not self.seconds:
            # Before the first step time only the last record can wait for one.
            self._records.clear()
        self._records.append((step, seconds))
        return None

    def alone(self, reading: Reading) -> None:
        """Number the step times by their order: the log holds no iteration record that would name them."""
        for step, (seconds, rate) in enumerate(zip(self.seconds, self.rates, strict=True), 1):
            rated = rate if rate > 0 else None
            reading.steps.put(step, {"step_seconds": seconds or None, "tflops_per_second_per_chip": rated})
        if self.seconds:
            reading.remark("note", "steps are numbered by the order of their times; the log names none")


def configure(reading: Reading, block: NestedDump) -> None:
    """State what a configuration dump of Megatron-Bridge gives, by the arguments' names."""
    section = block.leaf(*_SECTIONS)
    renamed = {_NAMES.get(name, name): value for name, value in section.items()}
    renamed.pop("", None)
    if "rng.seed" in block.values:
        renamed["seed"] = block.values["rng.seed"]
    # A dump of differences holds no default: the sizes that it leaves out are unknown, and stay so.
    megatron_config.state_arguments(reading, renamed)
