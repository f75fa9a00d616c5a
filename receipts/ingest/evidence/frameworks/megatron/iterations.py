"""The iteration records of one log in order: their figures as steps, and what they show of starts and divergence."""

from __future__ import annotations

import math
from itertools import pairwise, repeat
from typing import Final

from receipts.ingest.evidence.frameworks.megatron import line as megatron_lines
from receipts.ingest.evidence.frameworks.megatron.bridge import RATE_OF, STEP_TIME_OF, StepTimes
from receipts.ingest.evidence.frameworks.megatron.profile import Profiler
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.rows import rising
from receipts.ingest.evidence.shapes import Columns

_RATE: Final = "tflops_per_second_per_chip"
_SIGNED: Final = frozenset({"loss", "grad_norm", "global_batch"})
_COUNTS: Final = frozenset({"step", "rank", "skipped", "nans"})
_MAX_REMARKED: Final = 10
_MAX_KEPT: Final = 300_000
# A record's date and prefix stand right before it.
_NEAR: Final = 200


class Records:
    """Fills a reading's steps.

    ``fresh`` is to be set where the log shows that a training loop begins.
    """

    def __init__(self, reading: Reading, times: StepTimes, profiler: Profiler) -> None:
        self.reading = reading
        self.count = 0
        self.last: int | None = None
        self.fresh = False
        self.deepspeed = self.undated_depths = self.reinforcement = False
        self.starts: set[int] = set()
        self.carrying: set[int] = set()
        self.lengths: dict[int, int] = {}
        self._times = times
        self._profiler = profiler
        self._ranks: set[int] = set()
        self._micro_dates = False
        self._finite = False
        self._silent: list[tuple[int, int, int]] = []
        self._spoilt: list[tuple[int, str, int]] = []

    def many(self, columns: Columns) -> bool:
        """Take records that follow on another, each with a loss, no skipped and no NaN iteration."""
        if not {"loss", "skipped", "nans"} <= set(columns.names) or self.fresh or self._profiler.active:
            return False
        if {*columns.words("skipped"), *columns.words("nans")} != {b"0"}:
            return False
        try:
            ranks = set(columns.whole("rank")) if "rank" in columns else set()
            steps = columns.whole("step")
            figures = {name: columns.floats(name) for name in columns.names if name not in _COUNTS}
        except ValueError:
            return False
        times, rates = figures.pop(STEP_TIME_OF, None), figures.pop(RATE_OF, None)
        if times is not None and _RATE in figures:
            return False
        if ranks != self._ranks or len(ranks) > 1 or not self.starts.isdisjoint((self.last, *steps)):
            return False
        if self.last is None or not rising(steps, max(self.last, 1)) or not self._ordinary(figures):
            return False
        if (milliseconds := figures.pop("milliseconds", None)) is not None:
            figures["step_seconds"] = [time / 1e3 for time in milliseconds]
        if _RATE not in figures:
            seconds = figures.get("step_seconds", [-1.0] * len(steps))
            if times is None and not len(self._times):
                # A step time that follows is the last one's.
                self._times.rate(steps[-1], seconds[-1])
            else:
                pairs = zip(times, rates or repeat(math.nan), strict=False) if times else repeat(None)
                first = next(iter(columns.names)) == STEP_TIME_OF
                rows = zip(steps, seconds, strict=True)
                figures[_RATE] = self._times.pairs(self.reading, rows, pairs, first=first)
        self.reading.steps.extend(steps, figures)
        self._finite = True
        self.count += len(steps)
        self.last = steps[-1]
        return True

    def _ordinary(self, figures: dict[str, list[float]]) -> bool:
        """Whether all figures are what they are in a run that goes well; takes the lengths of sequences out of them."""
        if any(length not in self.lengths for length in figures.pop("sequence_length", ())):
            return False
        if any(0.0 in column or not math.isfinite(sum(column)) for column in figures.values()):
            return False
        return all(min(column) > 0.0 for name, column in figures.items() if name not in _SIGNED)

    def take(self, record: str, text: str, start: int, number: int) -> None:
        """Take one record, which begins at ``start`` of its line."""
        found = megatron_lines.read(record)
        if found is None:
            return
        self.deepspeed |= found.deepspeed
        self.reinforcement |= found.reinforcement
        before = text[max(0, start - _NEAR) : start]
        date = megatron_lines.DATE.search(before)
        self._micro_dates |= bool(date and date[2])
        # The program's own date stands in brackets; a collector's does not.
        _, bracket, inside = before.rpartition("[")
        dated = bool(bracket) and megatron_lines.CLOCK.search(inside) is not None
        self.undated_depths |= found.long_rate and found.depths and not dated
        if not found.ended:
            found.values["skipped"] = math.nan
        self._keep(found.step, found.values, text, start, number)

    def judge(self, log_interval: str) -> None:
        """Divergence: printed, counted, or shown by the absence of a loss from an iteration that trained.

        Megatron prints a loss only where it is not below zero, which NaN is not; an interval of nothing but skipped
        iterations has no loss, and that is no divergence.
        """
        if self._silent and not self.reinforcement:
            before = self.intervals(log_interval)
            for step, skipped, number in self._silent:
                if skipped == 0 or before.get(step, 0) > skipped:
                    self._spoil(step, "trained and prints no loss: Megatron leaves out a loss that is NaN", number)
        if self._spoilt:
            self.reading.diverged = True
            for step, what, number in self._spoilt[:_MAX_REMARKED]:
                self.reading.remark("note", f"iteration {step} {what}", number)
        elif self._finite:
            self.reading.diverged = False

    def intervals(self, log_interval: str) -> dict[int, int]:
        """How many iterations each record averages over, where the numbers or the arguments show it."""
        numbers = self.reading.steps.numbers()
        gaps = {step: step - earlier for earlier, step in pairwise(numbers)}
        if numbers and log_interval.isdigit() and len(log_interval) < 10:
            gaps[numbers[0]] = int(log_interval)
        return gaps

    def _keep(self, step: int, values: dict[str, float], text: str, start: int, number: int) -> None:
        """Put one record's figures, and note what they show."""
        skipped, nans = values.pop("skipped", 0.0), values.pop("nans", 0.0)
        values.pop("loss_scale", None)
        length = values.pop("sequence_length", None)
        if length is not None and 0 < length < 1e12 and len(self.lengths) < 100:
            self.lengths.setdefault(int(length), number)
        self._begin(step)
        for name in ("tflops_per_second_per_chip", "step_seconds"):
            if not 0.0 < values.get(name, 1.0) < math.inf:
                del values[name]
        if "tflops_per_second_per_chip" not in values:
            rate = self._times.rate(step, values.get("step_seconds", -1.0))
            if rate is not None:
                values["tflops_per_second_per_chip"] = rate
        self._watch(step, values, skipped, nans, number)
        self.reading.steps.put(step, values, self._rank(text, start))
        if self._profiler.active and len(self.reading.not_steady) < _MAX_KEPT:
            self.reading.not_steady[step] = "profile"
        self.count += 1
        self.last = step

    def _begin(self, step: int) -> None:
        """Note the first record after a start, and the one that still carries it."""
        last = self.last
        if step == last:
            return
        if self.fresh or step <= 1 or (last is not None and step < last):
            if len(self.starts) < _MAX_KEPT:
                self.starts.add(step)
        elif self._micro_dates and last in self.starts:
            # From core 0.16 on, which dates to the microsecond, the first record does not reset the clock.
            self.carrying.add(step)
        self.fresh = False

    def _rank(self, text: str, start: int) -> int | None:
        """The rank that printed a record, once records of several ranks were seen; None while there is one printer."""
        if start < 3:
            return None
        match = megatron_lines.RANK.search(text, max(0, start - _NEAR), start)
        if match is None:
            return None
        rank = int(match[1] or match[2])
        if len(self._ranks) < 10_000:
            self._ranks.add(rank)
        return rank if len(self._ranks) > 1 else None

    def _watch(self, step: int, values: dict[str, float], skipped: float, nans: float, number: int) -> None:
        loss = values.get("loss")
        if nans > 0:
            self._spoil(step, "counts a NaN iteration", number)
        if loss is None:
            if math.isfinite(skipped) and len(self._silent) < _MAX_KEPT:
                self._silent.append((step, int(skipped), number))
        elif math.isfinite(loss):
            self._finite = True
        else:
            self._spoil(step, "prints a loss that is not finite", number)
        norm = values.get("grad_norm")
        if norm is not None and not math.isfinite(norm) and skipped == 0:
            self._spoil(step, "prints a gradient norm that is not finite", number)

    def _spoil(self, step: int, what: str, number: int) -> None:
        if len(self._spoilt) < 1_000:
            self._spoilt.append((step, what, number))
