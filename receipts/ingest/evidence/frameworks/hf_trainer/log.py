"""The Hugging Face Trainer on a console: dictionaries of every version, banner, progress bar, metric tables.

A console dictionary is a Python repr: ``nan`` and ``inf`` are bare words, and since transformers 5 the numbers are
quoted. It carries no step. The step is told by the progress bar that `tqdm.write` draws again below the dictionary, by
a line of the script's own right above it, by a key that some forks add, or it follows from ``logging_steps``; else the
record has none.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from receipts.ingest.evidence.frameworks.hf_trainer.banner import Banner
from receipts.ingest.evidence.frameworks.hf_trainer.block import Block
from receipts.ingest.evidence.frameworks.hf_trainer.history import TrainerRecords
from receipts.ingest.evidence.frameworks.hf_trainer.profile import ProfileEvents
from receipts.ingest.evidence.frameworks.hf_trainer.tables import StepTable
from receipts.ingest.evidence.literal import integer, literal
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.shapes import Columns

_DICT = re.compile(r"\{[^{}]{0,20000}\}")
_FIGURE = re.compile(
    r"['\"](loss|grad_norm|step|global_step|current_steps)['\"]:\s{0,4}['\"]?([^'\",}\s]{1,30})['\"]?\s{0,4}[,}]"
)
# LLaMA-Factory says a record before the Trainer does.
_ECHO = re.compile(r"callbacks(?:\.py)?:\d{1,5}[^{}]{0,40}(?:>>|&gt;&gt;)\s*$")
_BAR = re.compile(r"%\|[^|]{0,400}\|\s*(\d{1,12})/(\d{1,12})\s*\[")
# A bar whose steps take so long that it was drawn anew after each of them: tqdm draws ten times a second.
_SLOW_BAR = re.compile(
    r"(?<!\d)\d{1,3}%\|[^|]{0,400}\|\s*(\d{1,12})/(\d{1,12})\s*"
    r"\[[^\]]{0,60},\s*(?:[\d.]{1,12}s/it|[0-4]\.\d{1,4}it/s)\]\s*$"
)
_TITLE = re.compile(r"([A-Za-z][\w ]{2,40}):\s*$")
_HINT = re.compile(r"\b(?:global_)?step[=: ]+(\d{1,12})(?:\s*/\s*(\d{1,12}))?")
_ARGUMENT = re.compile(r"\b(logging_steps|logging_first_step)['\"]?\s*[=:]\s*(\w{1,12})\s*[,}]?")
_METRIC = re.compile(r"(?:^|\s)([A-Za-z]\w{2,60})\s+=\s+(\S(?:.{0,60}\S)?)\s*$")
_STEPS: Final = ("step", "global_step", "current_steps", "global_step/max_steps")
_NAMES: Final = ("loss", "grad_norm", *_STEPS[:3])
# Lines that would give the record below them a step, in a file of which none is a record.
_MAX_HINTS: Final = 1000
_MAX_BLOCK: Final = 80


class HfTrainer(LineReader):
    """Reads what the Trainer prints."""

    source: ClassVar[str] = "hf-trainer"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"'loss': ",
        b'"loss": ',
        b"'eval_loss'",
        b"'eval_runtime'",
        b"'train_runtime'",
        b'"train_runtime"',
        b"_mem_gpu_",
        b"it/s",
        b"s/it",
        b"train metrics *****",
        b"unning training *****",
        b"atch size per device",
        b"atch size per gpu",
        b"atch size per GPU",
        b"otal train batch size",
        b"otal batch size",
        b"radient accumulation steps",
        b"radient Accumulation steps",
        b"otal optimization steps",
        b"logging_steps",
        b"logging_first_step",
        b"ontinuing training from",
        b"Training Loss",
        b">Step<",
        b"- train_batch_size: ",
        b"- total_train_batch_size: ",
        b"- gradient_accumulation_steps: ",
        b"Event Metadata Name:",
        b"Line ID:",
    )
    companions: ClassVar[tuple[bytes, ...]] = (b"] step=",)

    def __init__(self) -> None:
        super().__init__()
        self._records = TrainerRecords(self.reading)
        self._banner = Banner(self.reading)
        self._pending: tuple[dict[str, Any], int] | None = None
        self._echoed = False
        self._placed: int | None = None
        self._hint: tuple[int, int] | None = None
        self._above: tuple[int, str] = (0, "")
        self._rows = StepTable()
        self._block = Block()
        self._events = ProfileEvents(self.reading)
        self._table: dict[str, Any] | None = None
        self._table_line = 0
        self._logging_steps: int | None = None
        self._resumed = self._started = False
        self._first_logged = False
        self._hints = 0

    def line(self, text: str, number: int) -> bool:
        """Take one line; True within a dictionary or a table that goes on below."""
        if self._block:
            if self._block.more(text):
                return True
            self._dictionary(self._block.take(), None, self._block.line)
            return False
        if self._table is not None:
            if self._row(text):
                return True
            self._end_table()
        if self._rows.open:
            self._train_rows(self._rows.take(text), number)
            if self._rows.open:
                return True
        took = False
        if "'" in text or '"' in text:
            took = self._dictionaries(text, number)
            if self._block:
                return True
        if not took and "%|" in text:
            self._bar(text)
            self._above = (number, text)
        elif not took:
            return self._other(text, number)
        return False

    def spans(self, text: str) -> Spans:
        """Figures, and the step where there is one, of a line with one dictionary of training and no progress bar."""
        found = list(_DICT.finditer(text))
        if len(found) != 1 or "%|" in text or "mem" in text or "callbacks" in text or _HINT.search(text):
            return {}
        values = literal(found[0][0])
        if not isinstance(values, dict) or not {"learning_rate", "epoch", "lr"} & values.keys():
            return {}
        cells = {cell[1]: cell.span(2) for cell in _FIGURE.finditer(text, found[0].start())}
        named = [name for name in _STEPS if values.get(name) is not None]
        figures = {name for name in ("loss", "grad_norm", *named[:1]) if name in values}
        if "loss" not in values or not figures <= cells.keys() or len(cells) != len(values.keys() & set(_NAMES)):
            return {}
        return {"step" if name in named else name: cells[name] for name in figures}

    def many(self, columns: Columns) -> bool:
        """Take records that no line above them gives a step."""
        first, last = columns.lines[0], columns.lines[-1]
        if (self._hint is not None and first - self._hint[0] <= 1) or first - self._above[0] == 1 or not self.follows:
            return False
        try:
            steps = columns.whole("step") if "step" in columns else []
            losses = columns.floats("loss")
            norms = columns.floats("grad_norm") if "grad_norm" in columns else []
        except ValueError:
            return False
        self._settle(None)
        self._placed = steps[-1] if steps else None
        if steps:
            self._records.many(losses, norms, steps, columns.lines)
            return True
        # What stands below the last one may give it a step.
        self._records.many(losses[:-1], norms[:-1], (), columns.lines[:-1])
        self._pending = {"loss": losses[-1], "grad_norm": norms[-1] if norms else None}, last
        return True

    def finish(self) -> Reading | None:
        """The reading; steps by ``logging_steps`` only where the whole run stands in the file."""
        self._dictionary(self._block.take(), None, self._block.line)
        self._end_table()
        self._settle(None)
        records = self._records
        if not records.records and not self._events.records and "global" not in self._banner.sizes:
            return None
        self._banner.state()
        follows = self._started and not self._resumed and not self._first_logged
        records.finish(self._logging_steps if follows else None)
        self.reading.records = records.records + self._events.records + len(self._banner.sizes)
        self.reading.steps.interval = self._logging_steps
        return self.reading

    def _dictionaries(self, text: str, line: int) -> bool:
        took = False
        at = 0
        for match in _DICT.finditer(text):
            bars = _BAR.findall(text, at, match.start())
            step = int(bars[-1][0]) if bars else None
            if step is None and (hint := _HINT.search(text, at, match.start())):
                step = int(hint[1])
            if _ECHO.search(text, max(at, match.start() - 80), match.start()):
                took |= self._echo(literal(match[0]), line)
            else:
                took |= self._dictionary(literal(match[0]), step, line)
            at = match.end()
        if took:
            if "%|" in (rest := text[at:]):
                self._bar(rest)
            elif hint := _HINT.search(rest):
                self._hint = (line, int(hint[1]))
            return True
        if "_runtime'" in text or '_runtime"' in text or "'loss'" in text or "_mem_gpu_" in text:
            return self._dictionary(self._block.begin(text, line), None, line)
        return False

    def _dictionary(self, values: Any, bar: int | None, line: int) -> bool:
        """One dictionary; whether the Trainer (or one of its forks) wrote it."""
        if not isinstance(values, dict):
            return False
        if "loss" in values and ("learning_rate" in values or "epoch" in values or "lr" in values):
            if self._echoed and self._pending is not None and _same(self._pending[0], values):
                self._pending = None
            self._settle(None)
            self._hints, self.follows = 0, True
            step = self._own_step(values)
            if step is None:
                step = bar
            if step is None and self._hint is not None and 0 <= line - self._hint[0] <= 1:
                step = self._hint[1]
            if step is None and line - self._above[0] == 1:
                step = self._bar_above()
            if step is None:
                self._pending = (values, line)
            else:
                self._placed = step
                self._records.train(values, step, line)
            return True
        if "train_runtime" in values or any("_mem_gpu_" in str(name) for name in values):
            self._settle(None)
            self._records.summary(values, line)
            return True
        if "eval_runtime" in values or "eval_loss" in values:
            self._records.evaluation(values, line)
            return True
        return False

    def _echo(self, values: Any, line: int) -> bool:
        """A record that the Trainer prints as well, as a rule: it waits for that, and for a bar."""
        if not isinstance(values, dict) or "loss" not in values:
            return False
        self._settle(None)
        self._pending, self._echoed = (values, line), True
        return True

    def _own_step(self, values: dict[str, Any]) -> int | None:
        for name in _STEPS:
            if (value := values.get(name)) is not None:
                word = str(value).partition("/")[0]
                return integer(word)
        return None

    def _bar(self, text: str) -> None:
        """A progress bar below a record tells its step, where it is the bar of the training."""
        bars = _BAR.findall(text) if self._pending is not None else []
        if bars:
            step, total = int(bars[0][0]), int(bars[0][1])
            if total == (self._banner.steps or total) and 0 < step <= total:
                self._settle(step)

    def _bar_above(self) -> int | None:
        """The step of the bar right above a record, where its steps are slow enough for it to be the record's own."""
        text = self._above[1].rpartition("\r")[2]
        match = _SLOW_BAR.search(text)
        if match is None or (self._banner.steps is not None and int(match[2]) != self._banner.steps):
            return None
        title = _TITLE.search(text, max(0, match.start() - 60), match.start())
        if title is not None and not title[1].startswith("Train"):
            return None
        # One that was drawn again below a record is none of the next record's.
        step = int(match[1])
        return step if 0 < step <= int(match[2]) and step != self._placed else None

    def _train_rows(self, rows: list[tuple[int, str]], line: int) -> None:
        """Rows of the table that a notebook or a model card shows."""
        for step, loss in rows:
            self._records.train({"loss": loss}, step, line)

    def _settle(self, step: int | None) -> None:
        pending, self._pending, self._echoed = self._pending, None, False
        if pending is not None:
            self._placed = step
            self._records.train(pending[0], step, pending[1])

    def _other(self, text: str, line: int) -> bool:
        if self._banner.take(text, line):
            return False
        if "Training Loss" in text or ">Step<" in text:
            self._train_rows(self._rows.begin(text), line)
            return self._rows.open
        elif "train metrics *****" in text:
            self._settle(None)
            self._table, self._table_line = {}, line
            return True
        elif "unning training *****" in text:
            self._started = True
        elif "ontinuing training from" in text:
            self._resumed = True
        elif match := _ARGUMENT.search(text):
            self._argument(match)
        elif self._events.take(text):
            return False
        elif match := _HINT.search(text):
            self._hint = (line, int(match[1]))
            self._hints += 1
            self.follows = self._hints < _MAX_HINTS
        return False

    def _argument(self, match: re.Match[str]) -> None:
        value = integer(match[2])
        if match[1] == "logging_steps" and value is not None and value >= 1:
            self._logging_steps = value
        elif match[1] == "logging_first_step" and match[2].lower() == "true":
            self._first_logged = True

    def _row(self, text: str) -> bool:
        match = _METRIC.search(text)
        if match is None or self._table is None or len(self._table) >= _MAX_BLOCK:
            return False
        self._table[match[1].lower()] = match[2]
        return True

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table:
            self._records.summary(table, self._table_line)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("loss", "epoch"))


READERS = (HfTrainer,)
