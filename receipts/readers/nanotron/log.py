"""nanotron's log: iteration lines of every version, memory lines, the start line and the printed configuration.

Sources: `src/nanotron/trainer.py` (`train_step_logs`), `logging/base.py` (`human_format`, `log_memory`). Since 2024 the
figures have three significant digits and a letter of base 1000; ``global_batch_size`` counts samples before 2025-03-26
and tokens since; ``grad_norm`` and ``lr`` stand wherever the version and the pipeline put them. The time is of one
iteration, behind a barrier. ``Peak allocated`` is reset by every line that prints it.

What nanotron prints before it trains: the start line, its configuration as dataclasses, versions. The configuration
is a `pprint` of nested dataclasses, one argument a line, each line behind the logger's prefix. The ranks in that
prefix (``DP=0|PP=0|TP=0``) are ranks and say nothing of degrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from math import ceil
from typing import Final

from receipts.base.units import MIB
from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.literals import FIGURE, number
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Peaks, Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT

_SETTINGS: Final = Settings("nanotron")
_STATEMENTS: Final = Statements("nanotron")
_BLOCKS: Final = ("ParallelismArgs(", "TokensArgs(", "OptimizerArgs(", "GeneralArgs(", "LlamaConfig(", "Qwen2Config(")
_ARGUMENT = re.compile(r"(?<![\w.])(\w{1,60})=([\w.+'\"-]{1,80})")
_PREFIX = re.compile(r"^.{0,120}?\[(?:INFO|WARNING|DEBUG)[^\]]{0,120}\]:\s?")
_SECTION = re.compile(r"^( {0,40})(?:parallelism|tokens|model):\s*$")
_SETTING = re.compile(r"^( {1,60})(\w{1,60}):\s*([\w.+-]{1,80})\s*$")
_CELL = re.compile(r"(\w{1,40}): (\d{1,18})(?= \||\s*$)")
_MAX_BLOCK: Final = 200


class NanotronConfig:
    """Takes the lines before the first iteration; ``inside`` while a dataclass is being printed."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.records = 0
        self.started = False
        self.first_step: int | None = None
        self.inside = 0
        self._depth = 0
        self._yaml = False
        self._margin = 0

    def line(self, text: str, line: int) -> bool:
        """Take one line; True while a dataclass goes on below."""
        text = _PREFIX.sub("", text)
        if self._yaml or _SECTION.match(text):
            # A line of the configuration file: a section, or one of the settings that stand deeper below it.
            match = _SETTING.match(text)
            if match is not None and len(match[1]) > self._margin:
                self._setting(match[2], match[3], match[0].strip(), line)
            if (section := _SECTION.match(text)) is not None:
                self._margin = len(section[1])
            self.inside += 1
            deeper = len(text) - len(text.lstrip(" ")) > self._margin
            self._yaml = self.inside < _MAX_BLOCK and (deeper or section is not None)
            if not self._yaml:
                self.leave()
            return self._yaml
        if self.inside or any(name in text for name in _BLOCKS):
            # Arguments of one line; the block ends with its bracket, or after `_MAX_BLOCK` lines.
            if "ParallelismArgs(" in text:
                self.records += 1
                self.started = True
            for name, word in _ARGUMENT.findall(text):
                self._setting(name, word, f"{name}={word}", line)
            self._depth += text.count("(") - text.count(")")
            self.inside += 1
            if self._depth <= 0 or self.inside > _MAX_BLOCK:
                self.leave()
            return bool(self.inside)
        if "[Start training]" in text:
            self.records += 1
            self.started = True
            cells = {name: int(value) for name, value in _CELL.findall(text)}
            for name, value in cells.items():
                self._setting(name, value, f"{name}: {value}", line)
            if "start_iteration_step" in cells:
                self.first_step = cells["start_iteration_step"] + 1
        else:
            _STATEMENTS.take(self.reading, text, line)
        return False

    def leave(self) -> None:
        """End the dataclass that is being printed."""
        self.inside = self._depth = 0
        self._yaml = False

    def _setting(self, name: str, value: str | int, text: str, line: int) -> None:
        if stated := _SETTINGS.read(name, value):
            self.reading.state(*stated, text, line)


# Where a line of the logger begins: behind another that lacks its end, too.
_LOGGED = re.compile(r"(?:\[default\d{1,4}\]:\s?)?\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d \[[A-Z]{4,8}[|\]]")
_MEMORY = re.compile(
    r"Memory usage: (?P<bytes_used>[\d.]{1,15})MiB\.?\s*Peak allocated:? (?P<peak_bytes>[\d.]{1,15})MiB\.?\s*"
    r"(?:Peak reserved:? (?P<peak_reserved_bytes>[\d.]{1,15})MiB)?"
)
_START: Final = "Clearing the previous training stage"
_BEYOND: Final = ("iteration: ", "Peak allocated", "[Start training]", "Total number of parameters: ")
# One of these is on every record, and on no other program's.
_OWN: Final = frozenset({"consumed_tokens", "time_per_iteration_ms", "elapsed_time_per_iteration_ms", "tokens_per_sec"})
_DIGITS: Final = 3
# The last digit may be off by half of one in a hundred.
_ROUNDING: Final = 1.0051
# Records whose two rates bound the number of chips.
_ENOUGH: Final = 1000
_MAX_TOTALS: Final = 100


class Nanotron(RecordReader, table="nanotron"):
    """Reads nanotron's lines."""

    letters = True
    forms = (
        Form(
            re.compile(r"(?<![A-Za-z_])iteration: (?P<step>\d{1,12}) / (?P<total>\d{1,12})"),
            (
                re.compile(
                    rf"\| {{1,4}}(?P<label>\w{{1,40}}): {{1,2}}(?P<word>{FIGURE}[KMGBT]?)(?=[\s|`]|iteration:|$)"
                ),
            ),
            end=re.compile(r"(?=.*\b(?:lm_)?loss: ?\S).*: ?[^|:]*\w[` ]*$"),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._config = NanotronConfig(self.reading)
        self.reading.steps.digits = _DIGITS
        self._totals: set[int] = set()
        self._switched = False
        self._samples: set[int] = set()
        self._chips: tuple[float, float] = (0.0, float("inf"))
        self._built = Peaks(self.reading, "post_init")

    def line(self, text: str, number: int) -> bool:
        """Take one line, of which several of the logger's may be glued together."""
        starts = [0, *(match.start() for match in _LOGGED.finditer(text) if match.start())]
        for start, stop in pairwise([*starts, len(text)]):
            more = super().line(text[start:stop], number)
        return more

    def spans(self, text: str) -> Spans:
        """The places of a record's figures, on a line of the logger."""
        return {} if len(_LOGGED.findall(text)) > 1 else super().spans(text)

    def complete(self, names: Iterable[str]) -> bool:
        """Whether a record is nanotron's."""
        return not _OWN.isdisjoint(names)

    def inside(self) -> bool:
        """Whether a printed configuration goes on."""
        return bool(self._config.inside)

    def rows(self, rows: RecordRows) -> None:
        """Take records; the batch counts samples or tokens, which the rates tell."""
        if self._config.inside:
            # Lines were left out of the printed configuration: its brackets never close.
            self._config.leave()
        self._totals.update(rows.counts.pop("total")[: _MAX_TOTALS - len(self._totals)])
        figures = rows.figures
        figures.pop("consumed", None)
        # The two rates of a record narrow down the number of chips.
        room = max(0, _ENOUGH - self.taken)
        pairs = zip(rows.values("tokens_per_second")[:room], rows.values("tokens_per_second_per_chip"), strict=False)
        for rate, per_chip in pairs:
            if 0 < per_chip < 1e30 and 0 < rate < 1e30:
                low, high = self._chips
                ratio = rate / per_chip
                self._chips = (max(low, ratio / _ROUNDING**2), min(high, ratio * _ROUNDING**2))
        if (batches := figures.pop("batch", None)) is not None:
            rates, seconds = rows.values("tokens_per_second"), rows.values("step_seconds")
            figures["global_batch"] = list(map(self._batch, rates, seconds, batches))
        if self._switched:
            self._switched = False
            self.reading.not_steady[rows.steps[0]] = "stall"
        self.put(rows)

    def other(self, text: str, line: int) -> None:
        """Take a line of the configuration, of memory, or of a change of stages."""
        if self._config.inside:
            if not any(word in text for word in _BEYOND):
                self._config.line(text, line)
                return
            self._config.leave()
        if "Peak allocated" in text:
            match = _MEMORY.search(text)
            if match is None:
                return
            self._config.records += 1
            built = "After model building" in text
            for name, word in match.groupdict().items():
                # What is in use between two steps is none of a step.
                if word and (built or name != "bytes_used") and (size := number(word)) is not None:
                    (self._built if built else self.peaks).keep(name, size * MIB, line)
        elif _START in text:
            self._switched = bool(self.taken)
        else:
            self._config.line(text, line)

    def finish(self) -> Reading | None:
        """The reading; chips follow from the two rates, samples from what their product says."""
        if self._config.first_step is not None:
            self.starts.add(self._config.first_step)
        super().finish()
        reading = self.reading
        reading.records += self._config.records
        version = reading.stated.get("wheels.nanotron")
        if not reading.records and not self._config.started and version is None:
            return None
        reading.version = None if version is None else version.value
        low, high = self._chips
        if 0 < low <= high < 1e6 and "hardware.chips" not in self.reading.stated:
            first = ceil(low)
            if first == int(high):
                self.reading.state("hardware.chips", first, "tokens_per_sec / tokens_per_sec_per_gpu")
        if len(self._samples) == 1 and "batch.global_batch" not in self.reading.stated:
            batch = next(iter(self._samples))
            self.reading.state("batch.global_batch", batch, f"global_batch_size: {batch}")
        if len(self._totals) > 1:
            totals = ", ".join(str(total) for total in sorted(self._totals)[:5])
            reading.remark("note", f"iterations are counted towards different totals ({totals}): several runs")
        return reading

    def _batch(self, rate: float, seconds: float, batch: float) -> float:
        """The batch in samples; `ABSENT` where it counts the tokens of a step, or its time is not known."""
        if not 0 < batch < 2**53 or rate <= 0 or seconds <= 0 or 0.9 < rate * seconds / batch < 1.1:
            return ABSENT
        if len(self._samples) < 3:
            self._samples.add(round(batch))
        return batch


READERS = (Nanotron,)
