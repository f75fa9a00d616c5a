"""The Hugging Face Trainer: dictionaries on a console, and trainer_state.json.

The Hugging Face Trainer on a console: dictionaries of every version, banner, progress bar, metric tables. A console
dictionary is a Python repr: ``nan`` and ``inf`` are bare words, and since transformers 5 the numbers are quoted. It
carries no step. The step is shown by the progress bar that `tqdm.write` draws again below the dictionary, by a line
of the script's own right above it, by a key that some forks add, or it follows from ``logging_steps``; else the
record has none.

trainer_state.json of the Hugging Face Trainer: the only place where its records carry their steps. Source:
`transformers/trainer_callback.py` (`TrainerState`). Read as a stream of flat objects, so that a state of any size,
one that was cut out of its file, and Python's bare ``NaN`` read alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any, ClassVar, Final

from receipts.ingest.literals import FIGURE, judged, literal
from receipts.ingest.reader import FileReader, Spans
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, LineRecord, RecordColumns, RecordRows
from receipts.ingest.record_reader import STEP, RecordReader
from receipts.ingest.source import Source
from receipts.ingest.steps import ABSENT, StepRow, StepTable
from receipts.readers.hf.console import BAR, HINT, Banner, DictBlock, MetricTable, Places, ProfileEvents, TrainerRecords

_DICT = re.compile(r"\{[^{}]{0,20000}\}")
_RECORD = re.compile(r"\{(?=[^{}]{0,20000}?['\"]loss['\"]:[^{}]{0,20000}\})")
_CELL = re.compile(
    rf"['\"](?P<label>[a-z][\w/. ()]{{1,40}})['\"]:\s{{0,4}}['\"]?(?P<word>{FIGURE})['\"]?\s{{0,4}}(?=[,}}])", re.I
)
# The last two are ms-swift's, `5/500`.
_OWN = re.compile(
    r"['\"](?:step|global_step|current_steps|(?:steps\[)?global_step/max_steps\]?"
    r"|iteration(?=['\"]: ['\"]\d{1,12}/))['\"]:\s{0,4}['\"]?(\d{1,12})\b"
)
# LLaMA-Factory says a record before the Trainer does.
_ECHO = re.compile(r"callbacks(?:\.py)?:(\d{1,5})[^{}]{0,40}(?:>>|&gt;&gt;)\s*$")
_ECHOED: Final = "echo"
_RATES: Final = frozenset({"tokens_per_second", "tokens_per_second_per_chip"})
# What a record of the Trainer has, or one that LLaMA-Factory says.
_SIGNS: Final = frozenset({"epoch", "learning_rate", "lr", _ECHOED})


class HfTrainer(RecordReader, table="hf_trainer"):
    """Reads what the Trainer prints. ``bare``: a record needs no epoch and no rate of learning to be the Trainer's."""

    companions: ClassVar[tuple[bytes, ...]] = (b"] step=",)
    prefix = 1 << 20
    forms = (Form(_RECORD, (_CELL,)),)

    def __init__(self) -> None:
        super().__init__()
        self._records = TrainerRecords(self.reading)
        self._banner = Banner(self.reading)
        self._pending: tuple[dict[str, float], int] | None = None
        self._echoed = False
        # The step of a record that LLaMA-Factory said behind its bar, and the record that stands before the first.
        self._echo_steps: list[int] = []
        self._early: tuple[dict[str, float], int] | None = None
        self._zeros = 0
        self._rates: defaultdict[str, list[float]] = defaultdict(list)
        self._places = Places()
        self._steps = StepTable({"trainingloss": "loss"})
        self._block = DictBlock(most=80)
        self._events = ProfileEvents(self.reading)
        self._metrics = MetricTable()
        self.bare = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; True within a dictionary or a table that goes on below."""
        if self._block:
            if self._block.add(text):
                return True
            self.joined(self._block.take(), self._block.line)
            return False
        if self._metrics.open:
            if self._metrics.take(text):
                return True
            self._end_table()
        if self._steps.open:
            self._train_rows(self._steps.take(text), number)
            if self._steps.open:
                return True
        return super().line(text, number)

    def inside(self) -> bool:
        """Whether a dictionary or a table goes on below."""
        return bool(self._block) or self._metrics.open or self._steps.open

    def complete(self, names: Iterable[str]) -> bool:
        """Whether the Trainer (or one of its forks) wrote it."""
        return "loss" in names and (self.bare or not _SIGNS.isdisjoint(names))

    def find(self, text: str) -> list[LineRecord]:
        """The records of a line, each with the step that it has, or that is before it."""
        at, records = 0, super().find(text)
        for record in records:
            end = text.find("}", record.start)
            before = list(BAR.finditer(text, at, record.start)) or list(HINT.finditer(text, at, record.start))
            step = _OWN.search(text, record.start, end) or (before[-1] if before else None)
            if step is not None:
                record.spans[STEP] = step.span(1)
            if echo := _ECHO.search(text, max(at, record.start - 80), record.start):
                record.spans[_ECHOED] = echo.span(1)
            at = end + 1
        return records

    def cells(self, text: str, start: int, stop: int, form: Form) -> Iterator[tuple[str, tuple[int, int]]]:
        """The figures of one dictionary."""
        return super().cells(text, start, text.find("}", start) + 1, form)

    def spans(self, text: str) -> Spans:
        """Figures, and the step where there is one, of a line with one dictionary of training and no progress bar."""
        if text.count("{") != 1 or BAR.search(text) or "callbacks" in text or HINT.search(text):
            return {}
        return {name: span for name, span in super().spans(text).items() if name not in _SIGNS}

    def many(self, columns: RecordColumns) -> bool:
        """Take records that no line above them gives a step."""
        return (STEP in columns or (self.follows and self._places.alone(columns.lines[0]))) and super().many(columns)

    def rows(self, rows: RecordRows) -> None:
        """Take records; what is below the last one may give it a step."""
        echo = _ECHOED in rows.counts
        figures = {name: column[-1] for name, column in rows.figures.items()}
        echoed = self._pending[0] if self._echoed and self._pending is not None else {}
        epoch = echoed.get("epoch")
        if echoed and echoed["loss"] == figures["loss"] and epoch == figures.get("epoch", epoch):
            self._pending = None
            rows.steps = rows.steps or self._echo_steps
        if echo and rows.steps:
            # The bar stands before its own record: what waits is of a step before that one.
            self._echo_steps = rows.steps
            if self._pending is not None and not self._echoed and not len(self.reading.steps):
                self._early, self._pending = self._pending, None
        self._settle(None)
        self.follows = True
        self.keep_memory(rows)
        above = self._places.above(rows.lines[0]) if len(rows.lines) == 1 and not echo else None
        if not rows.steps and above is not None:
            rows.steps = [above]
        self._places.record(rows.steps[-1] if rows.steps else None)
        if rows.steps and not echo:
            self.put(rows)
        else:
            for name in _RATES & rows.figures.keys():
                self._rates[name] += [rate for rate in rows.figures[name] if 0.0 < rate < inf]
            self._keep(rows.values("loss")[:-1], rows.values("grad_norm")[:-1], rows.lines)
            self._pending, self._echoed = (figures, rows.lines[-1]), echo
        rest = rows.text[rows.text.rfind("}") + 1 :]
        if BAR.search(rest):
            self._bar(rest)
        else:
            self._places.hint(rest, rows.lines[-1])

    def put(self, rows: RecordRows) -> None:
        """Record steps, without the losses that the Trainer's filter made."""
        rows.figures["loss"] = self._filtered(rows.values("loss"), rows.values("grad_norm"), rows.lines)
        super().put(rows)

    def other(self, text: str, number: int) -> None:
        """Take a line that is no record."""
        if ("'" in text or '"' in text) and self._dictionaries(text, number):
            return
        if BAR.search(text):
            self._bar(text)
            self._places.bar(text, number)
        elif not self._block:
            if self._banner.take(text, number):
                self._places.total = self._banner.steps
            elif "Training Loss" in text or ">Step<" in text:
                self._train_rows(self._steps.begin(text), number)
            elif "train metrics *****" in text:
                self._settle(None)
                self._metrics.begin(number)
            elif not self._events.take(text):
                self.follows = self._places.hint(text, number)

    def finish(self) -> Reading | None:
        """The reading; steps by ``logging_steps`` only where the whole run is in the file."""
        self.joined(self._block.take(), self._block.line)
        self._end_table()
        self._settle(None)
        records, reading = self._records, self.reading
        if self._early is not None:
            first = reading.steps.numbers()[:2]
            step = 2 * first[0] - first[1] if len(first) == 2 else 0
            figures = {name: self._early[0].get(name) for name in ("loss", "grad_norm")}
            if step > 0:
                reading.steps.put(step, figures, -1)  # of no printer that went back
            else:
                self._keep([self._early[0].get("loss", ABSENT)], [self._early[0].get("grad_norm", ABSENT)], [])
        if not self.taken and not records.records and not self._events.records and "global" not in self._banner.sizes:
            return None
        if self._zeros > 1:
            what = f"a loss of exactly 0.0 in {self._zeros} records: a divergence that is hidden, or labels all masked"
            reading.remark("note", what)
        self._banner.state()
        if self._banner.of_script and not self.taken and not records.records:
            reading.source = "accelerate-script"
        losses, norms = (list(column) for column in records.unnumbered)
        every = self._banner.every(len(losses)) or records.one_a_step()
        if losses and not len(reading.steps) and every:
            steps = [at * every for at in range(1, len(losses) + 1)]
            reading.steps.extend(steps, {"loss": losses, "grad_norm": norms})
            del records.unnumbered[0][:]
        for name, rates in self._rates.items():
            if rates and not len(reading.steps):
                text = f"mean of {len(rates):,} records without a step"
                reading.state(f"measurement.stated.{name}", float(f"{fmean(rates):.6g}"), text)
                reading.state("measurement.stated.statistic", "mean", text)
        records.finish()
        if self._bad or self._good or records.bad:
            reading.diverged = self._bad or records.bad
        reading.records = self.taken + records.records + self._events.records + len(self._banner.sizes)
        reading.steps.interval = self._banner.logging_steps
        return reading

    def _keep(self, losses: Sequence[float], norms: Sequence[float], lines: Sequence[int]) -> None:
        """Keep records that have no step; a loss or a norm that is not printed is none."""
        bad, good = judged([loss for loss in losses if loss != ABSENT], norms)
        self._bad, self._good = self._bad or bad, self._good or good
        self._records.keep(self._filtered(losses, norms, lines), norms)

    def _filtered(self, losses: Sequence[float], norms: Sequence[float], lines: Sequence[int]) -> list[float]:
        """Losses without those of 0.0 beside a norm of NaN, which stand for a NaN."""
        hidden = [loss == 0.0 and norm != norm for loss, norm in zip(losses, norms, strict=True)]
        self._zeros += sum(loss == 0.0 for loss in losses) - sum(hidden)
        if any(hidden):
            what = "loss 0.0 beside a gradient norm of NaN: the Trainer filtered NaN losses, the run has diverged"
            self.reading.remark("contradiction", what, lines[hidden.index(True)])
        return [ABSENT if hide else loss for loss, hide in zip(losses, hidden, strict=True)]

    def _dictionaries(self, text: str, line: int) -> bool:
        """Take the dictionaries of a line that are no records, or the begin of one; whether there were any."""
        if self._summaries(text, line):
            return True
        if "_runtime'" in text or '_runtime"' in text or "'loss'" in text or "_mem_gpu_" in text:
            return self.joined(self._block.open(text, line), line) or bool(self._block)
        return False

    def joined(self, text: str, line: int) -> bool:
        """Take a dictionary that was put together; whether the Trainer wrote it."""
        records = [record for record in self.find(text) if self.complete(record.spans)]
        for record in records:
            self._one(text, record, line)
        return bool(records) or self._summaries(text, line)

    def _summaries(self, text: str, line: int) -> bool:
        taken = [self._dictionary(literal(match[0]), line) for match in _DICT.finditer(text)]
        return any(taken)

    def _dictionary(self, values: Any, line: int) -> bool:
        """One dictionary that is no record; whether the Trainer (or one of its forks) wrote it."""
        if not isinstance(values, dict) or "loss" in values:
            return False
        if "train_runtime" in values or any("_mem_gpu_" in str(name) for name in values):
            self._settle(None)
            self._records.summary(values, line, self.taken)
            return True
        if "eval_runtime" in values or "eval_loss" in values:
            self._records.evaluation(values, line)
            return True
        return False

    def _bar(self, text: str) -> None:
        """A progress bar below a record tells its step."""
        if self._pending is not None and (step := self._places.below(text)) is not None:
            self._settle(step)

    def _train_rows(self, rows: list[StepRow], line: int) -> None:
        """Rows of the table that a notebook or a model card shows; ``No log`` is no loss."""
        for row in rows:
            self._put_one(row.step, row.figures, line)

    def _put_one(self, step: int, figures: Mapping[str, float], line: int) -> None:
        columns = {name: [value] for name, value in figures.items()}
        self.put(RecordRows([step], [line], {}, columns, RecordColumns((line,), (line,), {})))

    def _settle(self, step: int | None) -> None:
        """Give the record that waits its step, or none."""
        pending, self._pending, self._echoed = self._pending, None, False
        if pending is None:
            return
        figures, line = pending
        self._places.record(step)
        if step is None:
            self._keep([figures.get("loss", ABSENT)], [figures.get("grad_norm", ABSENT)], [line])
        else:
            self._put_one(step, figures, line)

    def _end_table(self) -> None:
        if metrics := self._metrics.end():
            self._records.summary(metrics, self._metrics.line, self.taken)


_FLAT = re.compile(r"\{[^{}]*\}")
_SCALAR = re.compile(
    r'"(global_step|max_steps|logging_steps|train_batch_size|num_input_tokens_seen)"\s*:\s*(\d{1,18})\b'
)
_MAX_REST: Final = 1 << 16


class TrainerState(FileReader):
    """Reads a trainer_state.json, whole or cut."""

    source: ClassVar[str] = "hf-trainer"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it begins as JSON and holds the history, or records of one."""
        if head.lstrip()[:1] not in (b"{", b'"', b"["):
            return False
        if b'"log_history"' in head:
            return True
        return all(word in head for word in (b'"epoch":', b'"step":', b'"learning_rate":', b'"loss":'))

    def __init__(self) -> None:
        self._reader = HfTrainer()
        self._reader.bare = True
        self.reading = self._reader.reading
        self._logging_steps: int | None = None

    def read(self, source: Source) -> list[Reading]:
        """One reading, whatever the length of the history."""
        rest, line = "", 1
        for chunk in source.chunks():
            # The text begins on ``line``; its whole objects are taken, and the rest of it waits.
            text = rest + chunk.decode("utf-8", "replace")
            at = 0
            for match in _FLAT.finditer(text):
                line += text.count("\n", at, match.start())
                self._scalars(text[at : match.start()], line)
                self._reader.joined(match[0], line)
                line += match[0].count("\n")
                at = match.end()
            if len(text) - at > _MAX_REST:
                self._scalars(text[at:], line)
                line += text.count("\n", at, len(text) - _MAX_REST)
                at = len(text) - _MAX_REST
            rest = text[at:]
        # What followed the last whole object.
        self._scalars(rest, 0)
        self._reader.finish()
        self.reading.complete = rest.rstrip().endswith("}")
        if not self.reading.complete:
            self.reading.remark("broken", "the state is cut off: later records are not here")
        self.reading.steps.interval = self._logging_steps
        return [self.reading]

    def _scalars(self, text: str, line: int) -> None:
        for name, word in _SCALAR.findall(text):
            value = int(word)
            if name == "train_batch_size" and value:
                self.reading.state("batch.micro_batch", value, f"train_batch_size: {value}", line)
            elif name == "logging_steps" and value:
                self._logging_steps = value
            elif name == "num_input_tokens_seen" and not value:
                self.reading.remark("missing", "num_input_tokens_seen 0: tokens were not counted", line)
            elif value:
                self.reading.counters[name] = value


READERS = (HfTrainer, TrainerState)
