"""NeMo: progress lines of NeMo 1 and 2, the layout, arguments, and NeMo 1's configuration.

What NeMo and Lightning say of a run's layout: process groups, processes, arguments, and NeMo 1's configuration. The
README files of NVIDIA/dgxc-benchmarking work out tokens a second below a NeMo line. The example states the sequence
length, which the line does not; it counts only where its batch and its time are those of a step in the same text.

NeMo: the progress printer of NeMo 2, and the progress bar of NeMo 1 and 2. Sources:
nemo/lightning/pytorch/callbacks/progress_printer.py and progress_bar.py, nemo/utils/timers. Figures have four
significant digits; ``iteration`` counts within an epoch, ``global_step`` over all from zero; ``val_loss`` repeats the
last validation on every later line and is no figure of the step.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import pairwise
from typing import Final

from receipts.ingest import megatron as megatron_config
from receipts.ingest import record_reader, vocabulary
from receipts.ingest.arguments import Statements
from receipts.ingest.literals import FIGURE
from receipts.ingest.megatron import NestedDump, configure_nemo
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.readers.megatron.startup import Launch

_EXAMPLE: Final = re.compile(
    r"(\d{1,9}) \* (\d{1,9}) / ([0-9]{1,9}(?:\.[0-9]{1,9})?) = ([0-9][0-9,]{0,15}(?:\.[0-9]{1,9})?)"
)
_MAX_LINES: Final = 12
_MAX_EXAMPLES: Final = 16


class Formula:
    """Reads the worked examples that follow the formula's words."""

    __slots__ = ("_left", "_records", "open")

    def __init__(self) -> None:
        self._records: list[tuple[int, int, float, float, str, int]] = []
        self._left = 0
        self.open = False

    def begin(self) -> bool:
        """The words were read; an example is within the next lines."""
        self.open, self._left = True, _MAX_LINES
        return True

    def take(self, text: str, line: int) -> bool:
        """Take a line after the words; False once an example was read or none came."""
        self._left -= 1
        match = _EXAMPLE.search(text)
        if match is not None and len(self._records) < _MAX_EXAMPLES:
            rate = float(match[4].replace(",", ""))
            self._records.append((int(match[1]), int(match[2]), float(match[3]), rate, match[0], line))
        self.open = match is None and self._left > 0
        return self.open

    def state(self, reading: Reading) -> None:
        """State the sequence length, and the rate of the step that an example is about."""
        for length, batch, seconds, rate, text, line in self._records:
            if length < 1 or seconds <= 0 or abs(length * batch / seconds - rate) > 1:
                continue
            for step in reading.steps.numbers():
                same = reading.steps.get(step, "step_seconds") == seconds
                if same and reading.steps.get(step, "global_batch") in {None, float(batch)}:
                    reading.state("batch.sequence_length", length, text, line)
                    reading.steps.add(step, {"tokens_per_second": rate})
                    break


_GROUP: Final = re.compile(
    r"Rank \d{1,7} has (tensor model|pipeline model|context|data) parallel group ?: ?\[([\d, ]{1,20000})\]"
)
_DEGREES: Final = {
    "tensor model": "parallelism.tensor",
    "pipeline model": "parallelism.pipeline",
    "context": "parallelism.context",
    "data": "parallelism.data",
}
_STATEMENTS: Final = Statements("nemo")
_OPTIMIZER: Final = "OptimizerConfig("
_OF_OPTIMIZER: Final = frozenset(
    ("optimizer", "lr", "min_lr", "bf16", "fp16", "params_dtype", "use_distributed_optimizer")
)
_ARGUMENT: Final = re.compile(r"\b([a-z_0-9]{2,60})=('[^']{0,80}'|[\w.+\-]{1,60})")
# Those of Megatron's arguments that shape the run, and the two that have no leaf of their own.
_NAMES: Final = (
    *(
        name
        for path, entry in vocabulary.table("megatron")["arguments"].items()
        if path.startswith(("parallelism.", "batch.", "model."))
        for name in entry["names"]
    ),
    *("virtual_pipeline_model_parallel_size", "num_query_groups"),
)
_MODEL_ARGUMENTS: Final = re.compile(rf"\b({'|'.join(_NAMES)})[=:] ?(\w{{1,20}})\b")
# A line of a recipe in YAML.
_SETTING: Final = re.compile(rf"[ \t]*(?:{'|'.join(_NAMES)}): \w{{1,20}}\s*")


class LayoutLines:
    """States what the lines say at once, and the arguments of the printed objects at the end."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._arguments: dict[str, tuple[str, int]] = {}

    def take(self, text: str, number: int) -> None:
        """Read one line."""
        reading = self._reading
        for kind, ranks in _GROUP.findall(text):
            reading.state(_DEGREES[kind], ranks.count(",") + 1, f"{kind} parallel group: [{ranks[:60]}]", number)
        _STATEMENTS.take(reading, text, number)
        if (at := text.find(_OPTIMIZER)) >= 0:
            arguments = _ARGUMENT.findall(text, at, at + 4_000)
            self._note({name: value for name, value in arguments if name in _OF_OPTIMIZER}, number)
        if "tensor_model_parallel_size=" in text or _SETTING.fullmatch(text):
            self._note(dict(_MODEL_ARGUMENTS.findall(text[:20_000])), number)

    def state(self, besides: Container[str]) -> None:
        """State the arguments that were printed, but for those of a configuration that says more."""
        known = {name: value for name, value in self._arguments.items() if name not in besides}
        if known:
            megatron_config.state_arguments(self._reading, known)

    def _note(self, values: dict[str, str], line: int) -> None:
        for name, value in values.items():
            self._arguments.setdefault(name, (value, line))


_MAX_NUMBER: Final = 1e18
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
        if self._block.values:
            configure_nemo(reading, self._block)
        self._layout.state(besides=self._block.leaf())
        self._launch.state(reading)
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
        if exact and 0 <= min(numbers) <= max(numbers) < _MAX_NUMBER and (whole := list(map(int, numbers))) == numbers:
            return whole
        done = counts.get("done") or counts.get("count")
        steps: list[int] = []
        for at, (number, samples, batch) in enumerate(zip(numbers, consumed, rows.values("global_batch"), strict=True)):
            if exact and 0 <= number < _MAX_NUMBER and number == int(number):
                steps.append(int(number))
            elif done is not None:
                # Six thousand and more are printed as 6.02e+3: the bar's own count is exact.
                steps.append(max(0, done[at] - 1))
            elif 0 < samples < _MAX_NUMBER and 0 < batch < _MAX_NUMBER and samples % batch == 0:
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
            self._layout.take(text, number)
            self.fresh |= "Restored all states from" in text
            self.reading.ended |= "Trainer.fit` stopped" in text
            self._launch.take(text, number)


READERS = (Nemo,)
