"""NeMo: the progress printer of NeMo 2, and the progress bar of NeMo 1 and 2.

Sources: nemo/lightning/pytorch/callbacks/progress_printer.py and progress_bar.py, nemo/utils/timers. Figures have four
significant digits; ``iteration`` counts within an epoch, ``global_step`` over all from zero; ``val_loss`` repeats the
last validation on every later line and is no figure of the step.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from receipts.ingest import record_reader
from receipts.ingest.evidence.frameworks.megatron.block import NestedDump
from receipts.ingest.evidence.frameworks.megatron.configuration import configure_nemo
from receipts.ingest.evidence.frameworks.megatron.launch import Launch
from receipts.ingest.evidence.frameworks.nemo.layout import Formula, LayoutLines
from receipts.ingest.literals import FIGURE
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader

_LARGEST: Final = 1e18
_LABEL: Final = r"(?P<label>[A-Za-z_][\w/ \-\[\].]{0,60}?)"


class Nemo(RecordReader, table="nemo"):
    """Steps of NeMo's printer or bar, and the layout and configuration that stand around them."""

    needs = frozenset()
    goes_back_at_start = True
    forms = (
        Form(
            re.compile(r"Training epoch (?P<epoch>\d{1,9}), iteration (?P<iteration>\d{1,12})/\d{1,12}(?= \|)"),
            (re.compile(rf"\| {{0,4}}{_LABEL} ?: ?(?P<word>{FIGURE})(?:\.0)?(?=[\s|,]|$)"),),
            end=re.compile(r"(?=.*reduced_train_loss: ?\S)(?=.*train_step_timing in s: ?\S).*[^|\s]\s*$"),
        ),
        Form(
            re.compile(r"Epoch \d{1,9}: [^\[]{0,200}?(?:(?P<done>\d{1,12})/(?:\d{1,12}|\?)|(?P<count>\d{1,12})it) \["),
            (re.compile(rf"(?<=, ){_LABEL} ?[=:] ?(?P<word>{FIGURE})(?:\.0)?(?=[\s,|\]]|$)"),),
        ),
        Form(
            re.compile(r"Step (?P<step>\d{1,12}): (?=train_step_timing in s ?[=:])"),
            (re.compile(rf"{_LABEL} ?[=:] ?(?P<word>{FIGURE})"),),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._block = NestedDump()
        self._launch = Launch()
        self._formula = Formula()
        self._layout = LayoutLines(self.reading)
        self._epoch = self._base = 0
        self._last = -1

    def inside(self) -> bool:
        """Whether a configuration dump or the README's formula goes on."""
        return self._block.open or self._formula.open

    def rows(self, rows: RecordRows) -> None:
        """Take records; the first form names epoch and iteration, the second a count of its own."""
        rows.steps = rows.steps or self._steps(rows)
        figures = rows.figures
        for name in ("number", "consumed"):
            figures.pop(name, None)
        if not rows.steps or not figures:
            return
        self._last = rows.steps[-1]
        if "loss" in figures or "step_seconds" not in figures or len(figures) > 1:
            self.put(rows)
        else:
            # A script's own line, which adds to what is known of the step.
            for step, seconds in zip(rows.steps, figures["step_seconds"], strict=True):
                self.reading.steps.add(step, {"step_seconds": seconds})
            self.taken += len(rows.steps)

    def finish(self) -> Reading | None:
        """The reading, or None where no step of NeMo is in the file."""
        reading = super().finish()
        if reading is None:
            return None
        reading.records = len(reading.steps) + reading.steps.restarts
        reading.see("framework", "nemo", "backend")
        self._configure()
        self._formula.state(reading)
        numbers = reading.steps.numbers()
        gaps = {later - step for step, later in pairwise(numbers)}
        starts = set()
        if len(gaps) == 1:
            reading.steps.interval = gap = gaps.pop()
            if numbers[0] in {gap - 1, gap}:
                starts.add(numbers[0])
        record_reader.mark_not_steady(reading, starts)
        return reading

    def _steps(self, rows: RecordRows) -> list[int]:
        """The global step; where it is not printed it follows from the samples, or from the iterations of epochs."""
        counts, numbers, consumed = rows.counts, rows.values("number"), rows.values("consumed")
        exact = "global_step" not in rows.columns or b"e" not in b" ".join(rows.columns.words("global_step"))
        if exact and 0 <= min(numbers) <= max(numbers) < _LARGEST and (whole := list(map(int, numbers))) == numbers:
            return whole
        done = counts.get("done") or counts.get("count")
        steps: list[int] = []
        for at, (number, samples, batch) in enumerate(zip(numbers, consumed, rows.values("global_batch"), strict=True)):
            if exact and 0 <= number < _LARGEST and number == int(number):
                steps.append(int(number))
            elif done is not None:
                # Six thousand and more are printed as 6.02e+3: the bar's own count is exact.
                steps.append(max(0, done[at] - 1))
            elif 0 < samples < _LARGEST and 0 < batch < _LARGEST and samples % batch == 0:
                steps.append(int(samples // batch) - 1)
            else:
                epoch, iteration = counts["epoch"][at], counts["iteration"][at]
                if epoch != self._epoch:
                    before = steps[-1] if steps else max(self._last, 0)
                    self._epoch, self._base = epoch, before + 1 - iteration
                steps.append(self._base + iteration)
        return steps

    def other(self, text: str, number: int) -> None:
        """Take a line of a block, or one that says one thing."""
        if self._block.open:
            self._block.take(text, number)
        elif self._formula.open:
            self._formula.take(text, number)
        elif "Experiment configuration *" in text:
            self._block.begin(text[: text.find("*")])
        elif "(sequence length) * (global batch size)" in text:
            self._formula.begin()
        else:
            self._small(text, number)

    def _small(self, text: str, number: int) -> None:
        self._layout.take(text, number)
        self.fresh |= "Restored all states from" in text
        self.reading.complete |= "Trainer.fit` stopped" in text
        self._launch.take(text, number)

    def _configure(self) -> None:
        reading = self.reading
        if self._block.values:
            configure_nemo(reading, self._block)
        self._layout.state(besides=self._block.leaf())
        self._launch.state(reading)


READERS = (Nemo,)
