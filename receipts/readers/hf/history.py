"""Records of the Hugging Face Trainer, wherever they stand: console dictionaries, metric blocks, trainer_state.json.

Sources: `transformers/trainer.py`, `trainer_utils.py` (`speed_metrics`, `TrainerMemoryTracker`), 4.0 to 5.x. The loss
is the mean since the last record, the gradient norm is the last one; with `logging_nan_inf_filter` (the default) a NaN
of a step is replaced before it is averaged, so a run that has diverged logs a loss of exactly 0.0 beside a NaN norm.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any, Final

from receipts.ingest.literals import integer, number
from receipts.ingest.reading import MemoryRow, Place, Reading

_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")
_MEBIBYTES = re.compile(r"(-?\d{1,15})MB", re.IGNORECASE)
_FLOS = re.compile(r"(\d{1,30})GF", re.IGNORECASE)
_MAX_UNNUMBERED: Final = 300_000
# Of ranks that print one run's runtime, in parts of it.
_RANKS_DIFFER: Final = 0.001
# Of a product of two figures with four digits each, in parts of it.
_FOUR_DIGITS: Final = 0.001
_COUNTS: Final = ("train_samples", "num_input_tokens_seen", "eval_samples")


class TrainerRecords:
    """Summaries, evaluations and tables of a training, and the records that have no step until a rule numbers them."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.records = 0
        self.bad = False
        self.unnumbered = (array("d"), array("d"))
        self._memory: dict[str, int] = {}
        self._memory_line = 0
        self._runtime: float | None = None
        self._planned = 0.0
        self._summed_at = -1
        self._evaluation = 0.0
        self._warned_rate = False

    def keep(self, losses: Sequence[float], norms: Sequence[float]) -> None:
        """Keep records that have no step."""
        self.records += len(losses)
        room = max(0, _MAX_UNNUMBERED - len(self.unnumbered[0]))
        self.unnumbered[0].extend(losses[:room])
        self.unnumbered[1].extend(norms[:room])

    def summary(self, values: dict[str, Any], line: int, steps: int = 0) -> None:
        """The last record of `train()`: runtime of the whole call, means over it. ``steps`` were taken before it."""
        self.records += 1
        seconds = duration(values.get("train_runtime"))
        if seconds is not None:
            self._add_runtime(seconds, steps + len(self.unnumbered[0]))
            self._planned = self._planned or seconds * (number(values.get("train_steps_per_second")) or 0.0)
        loss = number(values.get("train_loss"))
        if loss is not None and loss - loss != 0:
            self.bad = True
        for name in _COUNTS:
            count = integer(values.get(name))
            if count is not None and count > 0:
                self.reading.counters[name] = count
        flos = values.get("total_flos")
        if isinstance(flos, str) and (match := _FLOS.fullmatch(flos)):
            self.reading.counters["total_flos"] = int(match[1]) << 30
        self._memory_of(values, line)
        self._rate(values, seconds, line)

    def evaluation(self, values: dict[str, Any], line: int) -> None:
        """A record of an evaluation or prediction; its time lies within the runtime of training."""
        self.records += 1
        for name, value in values.items():
            if name.endswith("_runtime") and name != "train_runtime":
                self._evaluation += duration(value) or 0.0
            elif name == "eval_loss" and (loss := number(value)) is not None and loss != loss:
                self.bad = True

    def one_a_step(self) -> bool:
        """Whether there are as many records without a step as steps follow from the summary's four digits."""
        count = len(self.unnumbered[0])
        return count > 1 and abs(self._planned - count) <= max(0.5, _FOUR_DIGITS * count)

    def finish(self) -> None:
        """State what the whole file shows."""
        losses = self.unnumbered[0]
        if losses:
            what = f"{len(losses):,} records carry no step: their losses cannot be placed"
            self.reading.remark("missing", what)
        self._memory_row()
        if self._runtime is not None and self._evaluation > 0:
            what = f"train_runtime of {self._runtime:,.1f} s holds {self._evaluation:,.1f} s of evaluation"
            self.reading.remark("note", f"{what}: no step time follows from it")

    def _add_runtime(self, seconds: float, before: int) -> None:
        """One run's runtime; the table repeats the dictionary's, cut to hundredths, and ranks print their own."""
        again, self._summed_at = before == self._summed_at, before
        near = max(0.011, _RANKS_DIFFER * seconds if again else 0.0)
        if self._runtime is not None and abs(self._runtime - seconds) < near:
            return
        self.reading.time("train_runtime", seconds)
        self._runtime = seconds

    def _rate(self, values: dict[str, Any], seconds: float | None, line: int) -> None:
        """Whether tokens a second are of one rank: told by the tokens that the same record counts."""
        rate, tokens = number(values.get("train_tokens_per_second")), number(values.get("num_input_tokens_seen"))
        if self._warned_rate or not rate or not tokens or not seconds:
            return
        if not (0 < rate * seconds < 1e18 and 0 < tokens < 1e18):
            return
        ranks = tokens / (rate * seconds)
        if ranks > 1.5 and abs(ranks - round(ranks)) < 0.02 * ranks:
            self._warned_rate = True
            what = f"train_tokens_per_second {rate:,.3f} counts one rank of {round(ranks)}: {tokens:,.0f} tokens in"
            self.reading.remark("contradiction", f"{what} {seconds:,.1f} s are {tokens / seconds:,.1f} a second", line)

    def _memory_of(self, values: dict[str, Any], line: int) -> None:
        for name, value in values.items():
            if "_mem_gpu" in name:
                size = integer(value)
                if size is None and isinstance(value, str) and (match := _MEBIBYTES.fullmatch(value)):
                    size = int(match[1]) << 20
                if size is not None:
                    self._memory.setdefault(name, size)
                    self._memory_line = line

    def _memory_row(self) -> None:
        """The tracker counts from the start of each stage, so a peak needs what was allocated before it."""
        start = self._memory.get("before_init_mem_gpu")
        peaked = self._memory.get("train_mem_gpu_peaked_delta")
        if peaked is None:
            return
        if start is None:
            self.reading.remark("missing", "before_init_mem_gpu is not told: the memory deltas have no origin")
            return
        used = (
            start + self._memory.get("init_mem_gpu_alloc_delta", 0) + self._memory.get("train_mem_gpu_alloc_delta", 0)
        )
        if used >= 0 and peaked >= 0:
            self.reading.memory.append(
                MemoryRow(Place(self._memory_line), phase="steady", bytes_used=used, peak_bytes=used + peaked)
            )


def duration(value: Any) -> float | None:
    """Seconds: a number, quoted or not, or a clock such as ``0:08:58.11`` or ``1 day, 2:03:04.00``."""
    if isinstance(value, str) and (match := _CLOCK.fullmatch(value.strip())):
        days, hours, minutes, seconds = match.groups()
        return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    figure = number(value)
    return figure if figure is not None and 0 <= figure < 1e12 else None
