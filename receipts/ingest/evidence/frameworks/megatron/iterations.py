"""What iteration records show of divergence, in Megatron's own ways, and which of them ran under a profiler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from receipts.ingest.reading import Reading
from receipts.ingest.record import RecordRows
from receipts.ingest.steps import ABSENT

_BEGUN: Final = "Completed Stage: Warm Up"
_DONE: Final = ("Completed Stage: Collection", "Completed Stage: Post Processing")


class Profiler:
    """Follows PyTorch's profiler (Kineto) through its stage lines; ``active`` is whether it is collecting."""

    __slots__ = ("active",)

    def __init__(self) -> None:
        self.active = False

    def take(self, text: str) -> None:
        """Read a stage line: collecting begins when the warm-up is complete."""
        if _BEGUN in text:
            self.active = True
        elif any(words in text for words in _DONE):
            self.active = False

    def steps(self, arguments: Mapping[str, str], numbers: Iterable[int]) -> list[int]:
        """Records that `--profile` covers: it starts once ``profile_step_start`` iterations are done."""
        if arguments.get("profile") != "True":
            return []
        start, end = arguments.get("profile_step_start", ""), arguments.get("profile_step_end", "")
        if not (start.isdigit() and end.isdigit()) or max(len(start), len(end)) > 12:
            return []
        return [step for step in numbers if int(start) < step <= int(end)]


_MAX_REMARKED: Final = 10
_MAX_SPOILT: Final = 1_000
_MAX_KEPT: Final = 300_000


class Divergence:
    """Collects what records show; ``judge`` decides once the whole file was read."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.checked = False
        self._finite = False
        self._silent: list[tuple[int, int, int]] = []
        self._spoilt: list[tuple[int, str, int]] = []

    def take(self, rows: RecordRows, skipped: list[float] | None, nans: list[float]) -> None:
        """Take records with their counts of skipped and of NaN iterations; None where they print no skipped ones."""
        losses, norms = rows.figures.get("loss"), rows.figures.get("grad_norm", [])
        if losses is None:
            # A record without its end may have lost the loss with it.
            counts = skipped[: max(0, _MAX_KEPT - len(self._silent))] if skipped is not None else []
            silent = zip(rows.steps, counts, rows.lines, strict=False)
            self._silent += [(step, int(count), line) for step, count, line in silent if math.isfinite(count)]
        if math.isfinite(sum(losses or ()) + sum(norms)) and not any(nans):
            self._finite |= losses is not None
            return
        for at, (step, line) in enumerate(zip(rows.steps, rows.lines, strict=True)):
            if nans and nans[at] > 0:
                self._spoil(step, "counts a NaN iteration", line)
            if losses and not math.isfinite(losses[at]):
                self._spoil(step, "prints a loss that is not finite", line)
            elif losses and losses[at] != ABSENT:
                self._finite = True
            if norms and not math.isfinite(norms[at]) and skipped is not None and skipped[at] == 0:
                self._spoil(step, "prints a gradient norm that is not finite", line)

    def check(self, words: str, line: int) -> None:
        """Take what Megatron's own check of losses and gradients says, of which every rank may print one."""
        if not self.checked:
            self.reading.remark("note", f"Megatron's check {words}", line)
        self.checked = True

    def judge(self, log_interval: str, *, reinforced: bool) -> None:
        """Divergence: printed, counted, or shown by the absence of a loss from an iteration that trained.

        Megatron prints a loss only where it is not below zero, which NaN is not; an interval of nothing but skipped
        iterations has no loss, and that is no divergence. Of reinforcement learning (``reinforced``) none has.
        """
        if self._silent and not reinforced:
            before = self.intervals(log_interval)
            for step, skipped, number in self._silent:
                if skipped == 0 or before.get(step, 0) > skipped:
                    self._spoil(step, "trained and prints no loss: Megatron leaves out a loss that is NaN", number)
        if self._spoilt or self.checked:
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

    def _spoil(self, step: int, what: str, line: int) -> None:
        if len(self._spoilt) < _MAX_SPOILT:
            self._spoilt.append((step, what, line))
