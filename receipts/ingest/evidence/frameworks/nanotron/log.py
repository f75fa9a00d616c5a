"""nanotron's log: iteration lines of every version, memory lines, the start line and the printed configuration.

Sources: `src/nanotron/trainer.py` (`train_step_logs`), `logging/base.py` (`human_format`, `log_memory`). Since 2024 the
figures have three significant digits and a letter of base 1000; ``global_batch_size`` counts samples before 2025-03-26
and tokens since; ``grad_norm`` and ``lr`` stand wherever the version and the pipeline put them. The time is of one
iteration, behind a barrier. ``Peak allocated`` is reset by every line that prints it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from math import ceil, isfinite
from typing import ClassVar, Final

from receipts.ingest.evidence.frameworks.nanotron.configuration import NanotronConfig
from receipts.ingest.evidence.numbers import scaled
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT

_ITERATION = re.compile(r"iteration: (\d{1,12}) / (\d{1,12})")
# A record with the logger's prefix, if it has one: what stands before it was glued to it.
_RECORD = re.compile(
    r"(?:\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d \[[A-Z]{4,8}[^\]]{0,100}\]:? {0,4})?iteration: (?=\d{1,12} / \d)"
)
# Where a line of the logger begins: behind another that lacks its end, too.
_LOGGED = re.compile(r"(?:\[default\d{1,4}\]:\s?)?\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d \[[A-Z]{4,8}[|\]]")
_MEMORY = re.compile(
    r"Memory usage: ([\d.]{1,15})MiB\.?\s*Peak allocated:? ([\d.]{1,15})MiB\.?\s*(?:Peak reserved:? ([\d.]{1,15})MiB)?"
)
_START: Final = "Clearing the previous training stage"
_BEYOND: Final = ("iteration: ", "Peak allocated", "[Start training]", "Total number of parameters: ")
_COLUMNS: Final = {
    "tokens_per_sec": "tokens_per_second",
    "tokens_per_sec_per_gpu": "tokens_per_second_per_chip",
    "model_tflops_per_gpu": "tflops_per_second_per_chip",
    "lm_loss": "loss",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "time_per_iteration_ms": "milliseconds",
    "elapsed_time_per_iteration_ms": "milliseconds",
    "global_batch_size": "batch",
}
_PRINTED: Final = frozenset(
    (*_COLUMNS, "consumed_tokens", "lr", "hardware_tflops_per_gpu", "cuda_memory_allocated", "cuda_max_memory_reserved")
)
# Three significant digits: the last may be off by half of one in a hundred.
_ROUNDING: Final = 1.0051
_MAX_CELLS: Final = 60
# Lines that a terminal's width makes of one record.
_MAX_JOINED: Final = 6
# Records whose two rates bound the number of chips.
_ENOUGH: Final = 1000


class Nanotron(LineReader):
    """Reads nanotron's lines."""

    source: ClassVar[str] = "nanotron"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"time_per_iteration_ms: ",
        b"iteration: ",
        b"Peak allocated",
        b"[Start training] datetime",
        b"Clearing the previous training stage",
        b"ParallelismArgs(",
        b"TokensArgs(",
        b"OptimizerArgs(",
        b"GeneralArgs(",
        b"Qwen2Config(",
        b"LlamaConfig(",
        b"Total number of parameters: ",
        b"nanotron version: ",
        b"torch version: ",
        b"flash-attn version: ",
        b"parallelism:",
        b"tokens:",
    )

    def __init__(self) -> None:
        super().__init__()
        self._config = NanotronConfig(self.reading)
        self._lines = 0
        self._wrapped = ""
        self._wrapped_line = self._joined = self._width = self._length = 0
        self._totals: set[int] = set()
        self._switched = False
        self._samples: set[int] = set()
        self._chips: tuple[float, float] = (0.0, float("inf"))
        self._peaks: dict[str, int] = {}
        self._memory_step: int | None = None
        self._memory_line = 0
        self._built: MemoryRow | None = None
        self._bad = self._good = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; True within a printed configuration and after a record that was wrapped."""
        self._length = len(text)
        if self._wrapped:
            before, at = self._wrapped, self._wrapped_line
            self._wrapped = ""
            if _ITERATION.search(text) is None:
                self._joined += 1
                more = len(text) == self._width or " | " in text
                whole = _joined(before, text.strip())
                return self._iteration(whole, at, wrapped=self._joined >= _MAX_JOINED or not more, width=len(text))
            self._iteration(before, at, wrapped=True)
        starts = [match.start() for match in _LOGGED.finditer(text)][1:]
        for start, end in pairwise([0, *starts]):
            self._part(text[start:end], number, glued=True)
        return self._part(text[starts[-1] :] if starts else text, number)

    def _part(self, text: str, number: int, *, glued: bool = False) -> bool:
        """One line of the logger; ``glued`` where the next one follows without a break."""
        if self._config.inside:
            if not any(word in text for word in _BEYOND):
                return self._config.line(text, number)
            # Lines were left out of the printed configuration: its brackets never close.
            self._config.leave()
        if "iteration: " in text:
            cut = _LOGGED.search(text) and _ITERATION.search(text)
            if cut or "per_iteration_ms" in text or "tokens_per_sec" in text or "consumed_" in text:
                self._joined = 0
                starts = [match.start() for match in _RECORD.finditer(text)] or [0]
                for start, end in pairwise(starts):
                    self._iteration(text[start:end], number, wrapped=True)
                return self._iteration(text[starts[-1] :], number, wrapped=glued)
            return False
        if "Peak allocated" in text:
            self._usage(text, number)
            return False
        if _START in text:
            self._switched = True
            return False
        return self._config.line(text, number)

    def spans(self, text: str) -> Spans:
        """Step, total and figures of one whole iteration line; memory has to be read."""
        heads = list(_ITERATION.finditer(text))
        if len(heads) != 1 or not text.rstrip()[-1].isalnum() or len(_LOGGED.findall(text)) > 1:
            return {}
        found = {"step": heads[0].span(1), "total": heads[0].span(2)}
        at = heads[0].end()
        for cell in text[at:].split(" | ")[:_MAX_CELLS]:
            label, _, word = cell.partition(": ")
            name = label.strip(" |")
            column = _COLUMNS.get(name)
            if name.startswith("cuda_") or column in found:
                return {}
            if column is not None:
                if scaled(word.strip()) is None:
                    return {}
                place = at + cell.rindex(word.strip())
                found[column] = place, place + len(word.strip())
            at += len(cell) + 3
        return found if "loss" in found else {}

    def many(self, columns: Columns) -> bool:
        """Take iterations, of which none is the first after a start or after a switch of stages."""
        try:
            steps, totals = columns.whole("step"), set(columns.whole("total"))
            figures = {name: columns.scaled(name) for name in columns.names if name not in {"step", "total"}}
        except ValueError:
            return False
        if self._switched or 1 in steps or self._config.first_step in steps or len(self._totals | totals) > 100:
            return False
        self._totals |= totals
        self._ratios(figures)
        self._lines += len(steps)
        milliseconds, batches = figures.pop("milliseconds", None), figures.pop("batch", None)
        if milliseconds is not None:
            figures["step_seconds"] = [time / 1e3 for time in milliseconds]
            if batches is not None and (rates := figures.get("tokens_per_second")) is not None:
                figures["global_batch"] = list(map(self._batch, rates, milliseconds, batches))
        self._judge(figures)
        self.reading.steps.extend(steps, figures)
        return True

    def finish(self) -> Reading | None:
        """The reading; chips follow from the two rates, samples from what their product says."""
        if self._wrapped:
            # The file ends within a record: its last cell may be cut.
            self._iteration(self._wrapped.rstrip("| ").rpartition(" | ")[0], self._wrapped_line, wrapped=True)
        reading = self.reading
        reading.records = self._lines + self._config.records
        if not self._lines and not self._config.started:
            return None
        if self._bad or self._good:
            reading.diverged = self._bad
        self._state()
        if self._peaks:
            reading.memory.append(
                MemoryRow(
                    Place(self._memory_line),
                    phase="steady",
                    step=self._memory_step,
                    bytes_used=self._peaks.get("bytes_used"),
                    peak_bytes=self._peaks.get("peak_bytes"),
                    peak_reserved_bytes=self._peaks.get("peak_reserved_bytes"),
                )
            )
        if self._built is not None:
            reading.memory.append(self._built)
        if len(self._totals) > 1:
            totals = ", ".join(str(total) for total in sorted(self._totals)[:5])
            reading.remark("note", f"iterations are counted towards different totals ({totals}): several runs")
        return reading

    def _state(self) -> None:
        low, high = self._chips
        if 0 < low <= high < 1e6 and "hardware.chips" not in self.reading.stated:
            first = ceil(low)
            if first == int(high):
                self.reading.state("hardware.chips", first, "tokens_per_sec / tokens_per_sec_per_gpu")
        if len(self._samples) == 1 and "batch.global_batch" not in self.reading.stated:
            batch = next(iter(self._samples))
            self.reading.state("batch.global_batch", batch, f"global_batch_size: {batch}")

    def _iteration(self, text: str, line: int, *, wrapped: bool = False, width: int = 0) -> bool:
        """One record; ``width`` is of its last piece, where it has several."""
        head = _ITERATION.search(text)
        if head is None:
            return False
        cells = [cell.partition(": ") for cell in text[head.end() :].split(" | ")[:_MAX_CELLS]]
        names = [name.strip(" |") for name, _, _ in cells]
        # A piece as long as the first one is of a terminal's width, and goes on below.
        open_ = "lm_loss" not in names or not cells[-1][1] or not text.rstrip(" `")[-1].isalnum()
        if not wrapped and (open_ or 0 < width == self._width):
            self._wrapped, self._wrapped_line = text.rstrip(), line
            self._width = self._width if width else self._length
            return True
        values = {}
        for name, (_, _, word) in zip(names, cells, strict=True):
            if (column := _COLUMNS.get(name)) is not None:
                values[column] = scaled(word.strip(" |`"))
            elif name.startswith("cuda_"):
                self._cuda(name, word, int(head[1]), line)
        self._record(int(head[1]), int(head[2]), values, line)
        return False

    def _record(self, step: int, total: int, values: dict[str, float | None], line: int) -> None:
        self._lines += 1
        milliseconds = values.pop("milliseconds", None)
        batch = values.pop("batch", None)
        rate = values.get("tokens_per_second")
        if milliseconds is not None:
            values["step_seconds"] = milliseconds / 1e3
            if batch and rate and (samples := self._batch(rate, milliseconds, batch)) != ABSENT:
                values["global_batch"] = samples
        per_chip = values.get("tokens_per_second_per_chip")
        if self._lines < _ENOUGH and rate and per_chip:
            self._ratio(rate, per_chip)
        self.reading.steps.put(step, values)
        if len(self._totals) < 100:
            self._totals.add(total)
        if self._switched:
            self._switched = False
            self.reading.not_steady[step] = "stall"
        elif step == 1 or step == self._config.first_step:
            self.reading.not_steady[step] = "warmup"
        loss, norm = values.get("loss"), values.get("grad_norm")
        if loss is not None:
            self._judge({"loss": [loss], "grad_norm": [0.0 if norm is None else norm]})

    def _batch(self, rate: float, milliseconds: float, batch: float) -> float:
        """The batch in samples; `ABSENT` where it counts the tokens of a step."""
        if not batch or not rate or 0.9 < rate * milliseconds / 1e3 / batch < 1.1:
            return ABSENT
        if len(self._samples) < 3 and 0 < batch < 2**53:
            self._samples.add(round(batch))
        return batch

    def _ratios(self, figures: Mapping[str, list[float]]) -> None:
        rates, shares = figures.get("tokens_per_second", []), figures.get("tokens_per_second_per_chip", [])
        for rate, per_chip in zip(rates[: max(0, _ENOUGH - 1 - self._lines)], shares, strict=False):
            if rate and per_chip:
                self._ratio(rate, per_chip)

    def _ratio(self, rate: float, per_chip: float) -> None:
        """Narrow down the number of chips by the two rates of a line."""
        if 0 < per_chip < 1e30 and rate < 1e30:
            low, high = self._chips
            ratio = rate / per_chip
            self._chips = (max(low, ratio / _ROUNDING**2), min(high, ratio * _ROUNDING**2))

    def _judge(self, figures: Mapping[str, list[float]]) -> None:
        losses = figures.get("loss", [])
        norms = figures.get("grad_norm", [0.0] * len(losses))
        bad = [not isfinite(loss) or norm != norm for loss, norm in zip(losses, norms, strict=True)]
        self._bad |= any(bad)
        self._good |= not all(bad)

    def _cuda(self, name: str, word: str, step: int, line: int) -> None:
        value = scaled(word.strip(" |`"))
        if value is None or not 0 <= value < 1e16:
            return
        if name == "cuda_memory_allocated":
            self._peaks["bytes_used"] = round(value)
            self._memory_step, self._memory_line = step, line
        elif name == "cuda_max_memory_reserved":
            self._peak("peak_reserved_bytes", round(value), line)

    def _usage(self, text: str, line: int) -> None:
        match = _MEMORY.search(text)
        if match is None:
            return
        self._lines += 1
        used, peak, reserved = (scaled(word) if word else None for word in match.groups())
        if used is None or peak is None or not max(used, peak, reserved or 0.0) < 1e10:
            return
        if "After model building" in text:
            self._built = MemoryRow(
                Place(line),
                phase="post_init",
                bytes_used=round(used * 2**20),
                peak_bytes=round(peak * 2**20),
                peak_reserved_bytes=None if reserved is None else round(reserved * 2**20),
            )
            return
        self._peak("peak_bytes", round(peak * 2**20), line)
        if reserved is not None:
            self._peak("peak_reserved_bytes", round(reserved * 2**20), line)

    def _peak(self, name: str, size: int, line: int) -> None:
        if size > self._peaks.get(name, -1):
            self._peaks[name] = size
            self._memory_line = line


def _joined(record: str, rest: str) -> str:
    """A record and its next piece: broken at a column, within a word or a figure, or between words."""
    together, apart = record + rest, f"{record} {rest}"
    return together if _figures(together) > _figures(apart) else apart


def _figures(record: str) -> int:
    cells = [cell.partition(": ") for cell in record.split(" | ")[:_MAX_CELLS]]
    return sum(1 for name, _, word in cells if name.strip() in _PRINTED and scaled(word.strip(" |`")) is not None)


READERS = (Nanotron,)
