"""NeMo: the progress printer of NeMo 2, and the progress bar of NeMo 1 and 2.

Sources: nemo/lightning/pytorch/callbacks/progress_printer.py and progress_bar.py, nemo/utils/timers. Figures have four
significant digits; ``iteration`` counts within an epoch, ``global_step`` over all from zero; ``val_loss`` repeats the
last validation on every later line and is no figure of the step.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import ClassVar, Final

from receipts.ingest.evidence import steady as megatron_steady
from receipts.ingest.evidence.frameworks.megatron import launch as megatron_launch
from receipts.ingest.evidence.frameworks.megatron.block import Block
from receipts.ingest.evidence.frameworks.megatron.memory import MAX_ROWS, Parameters
from receipts.ingest.evidence.frameworks.nemo import configuration as nemo_config
from receipts.ingest.evidence.frameworks.nemo.formula import Formula
from receipts.ingest.evidence.frameworks.nemo.layout import Layout
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.rows import rising
from receipts.ingest.evidence.shapes import Columns

_PRINTED: Final = re.compile(r"Training epoch (\d{1,9}), iteration (\d{1,12})/(\d{1,12})")
_BAR: Final = re.compile(r"Epoch (\d{1,9}): [^\[]{0,200}?(?:(\d{1,12})/(\d{1,12}|\?)|(\d{1,12})it) \[")
# The last cell of a record, or what is left of it.
_BARE: Final = re.compile(r"[\w ]{0,40}:? ?[-+.\deE]{1,24}\s*")
_DELTA: Final = re.compile(r"Step (\d{1,12}): train_step_timing in s ?[=:] ?([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_PAIR: Final = re.compile(
    r"([A-Za-z_][\w/ \-\[\].]{0,60}?) ?[=:] ?([-+]?[0-9][\w.+\-]{0,30}|[-+]?(?:nan|inf))(?:\.0)?(?=$|[\s,|\]])"
)
_FIELDS: Final = {
    "train_step_timing in s": "step_seconds",
    "train_step_timing": "step_seconds",
    "reduced_train_loss": "loss",
    "grad_norm": "grad_norm",
    "global_batch_size": "global_batch",
    "TFLOPS_per_GPU": "tflops_per_second_per_chip",
    "tflops_per_sec_per_gpu": "tflops_per_second_per_chip",
    "tokens_per_sec_per_gpu": "tokens_per_second_per_chip",
    "tps_per_gpu": "tokens_per_second_per_chip",
    "tokens_per_sec": "tokens_per_second",
}
_MAX_BAR: Final = 20_000
_STEP: Final = "global_step"
_MAX_CELLS: Final = 100
_LOSSES: Final = ("train_loss", "loss")
# By the recipes' callback, and by the one of the performance scripts.
_MEMORY: Final = {
    "peak_memory_usage": "peak_bytes",
    "max_memory_allocated": "peak_bytes",
    "max_memory_reserved": "peak_reserved_bytes",
    "memory_allocated": "bytes_used",
}
_MAX_PIECES: Final = 8
_WHOLE_CELLS: Final = ("reduced_train_loss", "train_step_timing in s")


class Nemo(LineReader):
    """Steps of NeMo's printer or bar, and the layout and configuration that stand around them."""

    source: ClassVar[str] = "nemo"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"Training epoch ",
        b"train_step_timing in s",
        b"reduced_train_loss=",
        b"Experiment configuration *",
        b" parallel group",
        b"All distributed processes registered",
        b"GLOBAL_RANK: ",
        b"Padded vocab_size: ",
        b"number of parameters on",
        b"OptimizerConfig(",
        b"tensor_model_parallel_size=",
        b"Restored all states from",
        b"Trainer.fit` stopped",
        b"nproc_per_node ",
        b"max_nodes ",
        b"min_nodes ",
        b"(sequence length) * (global batch size)",
    )

    def __init__(self) -> None:
        super().__init__()
        self._block = Block()
        self._elastic = megatron_launch.Elastic()
        self._parameters = Parameters()
        self._formula = Formula()
        self._layout = Layout(self.reading)
        self._epoch = self._base = 0
        self._last: int | None = None
        self._starts: set[int] = set()
        self._restored = False
        self._finite = self._diverged = False
        self._highest: MemoryRow | None = None
        self._partial, self._partial_line, self._pieces = "", 0, 0

    def line(self, text: str, number: int) -> bool:
        """Take one line; True while a wrapped record, a configuration dump or the README's formula goes on."""
        if self._partial:
            if self._continues(text):
                return True
            self._close()
        if _cut(text):
            self._partial, self._partial_line, self._pieces = text, number, 1
            return True
        if "train_step_timing" in text or "Training epoch " in text or "reduced_train_loss" in text:
            self._steps(text, number)
            return self._block.open or self._formula.open
        if self._block.open:
            return self._block.take(text, number)
        if self._formula.open:
            return self._formula.take(text, number)
        if "Experiment configuration *" in text:
            self._block.begin(text[: text.find("*")])
            return True
        if "(sequence length) * (global batch size)" in text:
            return self._formula.begin()
        self._small(text, number)
        return False

    def spans(self, text: str) -> Spans:
        """Step and figures of one line of the printer; memory has to be read."""
        heads = list(_PRINTED.finditer(text))
        if len(heads) != 1:
            return {}
        found: dict[str, tuple[int, int]] = {}
        at = heads[0].end()
        for cell in text[at:].split(" | ")[:_MAX_CELLS]:
            label, _, rest = cell.partition(":")
            key = label.strip(" |")
            name = _STEP if key == _STEP else _FIELDS.get(key) or _MEMORY.get(key)
            if name in found:
                return {}
            if name is not None and (word := rest.strip()):
                place = text.index(word, at + len(label) + 1)
                found[name] = place, place + len(word)
            at += len(cell) + 3
        return found if {_STEP, "loss"} <= found.keys() else {}

    def many(self, columns: Columns) -> bool:
        """Take steps that follow on the last one."""
        try:
            steps = columns.whole(_STEP)
            memory = {name: columns.whole(name) for name in columns.names if name in _MEMORY.values()}
            figures = {name: columns.floats(name) for name in columns.names if name != _STEP and name not in memory}
        except ValueError:
            return False
        if self._last is None or self._restored or not rising(steps, self._last):
            return False
        finite = list(map(math.isfinite, figures["loss"]))
        if not (self._diverged or all(finite)):
            return False
        if any(not _positive(column) for name, column in figures.items() if name not in {"loss", "grad_norm"}):
            return False
        self._finite |= any(finite)
        self._last = steps[-1]
        self.reading.steps.extend(steps, figures)
        for at in range(len(steps) if memory else 0):
            self._row(steps[at], {name: sizes[at] for name, sizes in memory.items()}, columns.lines[at])
        return True

    def finish(self) -> Reading | None:
        """The reading, or None where no step of NeMo stands in the file."""
        self._close()
        reading = self.reading
        if not reading.steps:
            return None
        reading.records = len(reading.steps) + reading.steps.restarts
        reading.see("framework", "nemo", "backend")
        if self._highest is not None and self._highest not in reading.memory:
            reading.memory.append(self._highest)
        self._configure()
        self._formula.state(reading)
        if self._diverged or self._finite:
            reading.diverged = self._diverged
        numbers = reading.steps.numbers()
        gaps = {later - step for step, later in pairwise(numbers)}
        if len(gaps) == 1:
            reading.steps.interval = gap = gaps.pop()
            if numbers[0] in {gap - 1, gap}:
                self._starts.add(numbers[0])
        megatron_steady.mark(reading, self._starts)
        return reading

    def _steps(self, text: str, number: int) -> None:
        heads = list(_PRINTED.finditer(text))
        stops = [*(match.start() for match in heads[1:]), len(text)]
        for head, stop in zip(heads, stops, strict=False):
            self._printed(head, text[head.end() : stop], number)
        if heads:
            return
        bar = _BAR.search(text, 0, _MAX_BAR)
        if bar is not None:
            self._bar(bar, text[bar.end() : bar.end() + 4_000], number)
            return
        delta = _DELTA.search(text)
        if delta is not None:
            self._keep(int(delta[1]), {"step_seconds": float(delta[2])}, add=True)

    def _printed(self, head: re.Match[str], rest: str, number: int) -> None:
        pairs: dict[str, str] = {}
        for cell in rest.split(" | ")[:_MAX_CELLS]:
            key, colon, value = cell.partition(":")
            if colon and value.strip():
                pairs.setdefault(key.strip(" |"), value.split()[0])
        epoch, iteration = int(head[1]), int(head[2])
        step = _whole(pairs.get("global_step"))
        if step is None:
            step = self._counted(pairs)
        if step is None:
            if epoch != self._epoch:
                self._epoch, self._base = epoch, (self._last or 0) + 1 - iteration
            step = self._base + iteration
        self._record(step, pairs, number)

    def _bar(self, bar: re.Match[str], rest: str, number: int) -> None:
        pairs = {key.strip(): value for key, value in _PAIR.findall(rest.split("]")[0])}
        step = _whole(pairs.get("global_step"))
        done = bar[2] or bar[4]
        if step is None and done is not None and "e" in pairs.get("global_step", "e"):
            # Six thousand and more are printed as 6.02e+3: the bar's own count is exact.
            step = max(0, int(done) - 1)
        if step is not None and any(key in pairs for key in _FIELDS):
            self._record(step, pairs, number)

    def _counted(self, pairs: dict[str, str]) -> int | None:
        """The step by the samples consumed up to it, where the global step is not printed."""
        consumed, batch = _whole(pairs.get("consumed_samples")), _whole(pairs.get("global_batch_size"))
        return consumed // batch - 1 if consumed and batch and consumed % batch == 0 else None

    def _record(self, step: int, pairs: dict[str, str], line: int) -> None:
        values: dict[str, float] = {}
        for key, value in pairs.items():
            name = _FIELDS.get(key)
            figure = number(value) if name else None
            if name is None or figure is None:
                continue
            if name in {"loss", "grad_norm"} or (math.isfinite(figure) and figure > 0):
                values[name] = figure
        if "loss" not in values:
            other = next((number(pairs[key]) for key in _LOSSES if key in pairs), None)
            if other is not None:
                values["loss"] = other
        loss = values.get("loss")
        if loss is not None:
            self._finite |= math.isfinite(loss)
            if not math.isfinite(loss):
                if not self._diverged:
                    self.reading.remark("note", f"step {step} prints a loss that is not finite", line)
                self._diverged = True
        self._memory(step, pairs, line)
        self._keep(step, values)

    def _keep(self, step: int, values: dict[str, float], *, add: bool = False) -> None:
        last = self._last
        if self._restored or step == 0 or (last is not None and step < last):
            self._starts.add(step)
        self._restored = False
        if add:
            self.reading.steps.add(step, values)
        else:
            self.reading.steps.put(step, values)
        self._last = step

    def _memory(self, step: int, pairs: dict[str, str], line: int) -> None:
        sizes = {_MEMORY[key]: size for key in _MEMORY if (size := _bytes(pairs.get(key))) is not None}
        if sizes:
            self._row(step, sizes, line)

    def _row(self, step: int, sizes: dict[str, int], line: int) -> None:
        """Keep the memory of one step; past a bound, only the highest peak."""
        best, rows = self._highest, self.reading.memory
        higher = best is None or sizes.get("peak_bytes", 0) > (best.peak_bytes or 0)
        if not higher and len(rows) >= MAX_ROWS:
            return
        row = MemoryRow(Place(line), None, None, step, **sizes)
        if len(rows) < MAX_ROWS:
            rows.append(row)
        if higher:
            self._highest = row

    # A record that a page or a terminal wrapped.

    def _continues(self, text: str) -> bool:
        """Take the line after a cut one; False where it is no piece of it."""
        piece = text.lstrip(" #>")
        strange = "|" not in text and _BARE.fullmatch(piece) is None
        if "Training epoch " in text or strange or len(text) > _MAX_BAR or self._pieces >= _MAX_PIECES:
            return False
        apart = self._partial + (piece if self._partial.endswith(("|", " ")) else f" {piece}")
        # A terminal breaks within a word or a figure, an editor between words.
        self._partial = max(self._partial + text, apart, key=_figures)
        self._pieces += 1
        return True

    def _close(self) -> None:
        text, self._partial = self._partial, ""
        if text:
            self._steps(text, self._partial_line)

    def _small(self, text: str, number: int) -> None:
        self._layout.take(text, number)
        self._restored |= "Restored all states from" in text
        self.reading.complete |= "Trainer.fit` stopped" in text
        self._parameters.take(text, number)
        self._elastic.take(text, number)

    def _configure(self) -> None:
        reading = self.reading
        if self._block.found:
            nemo_config.configure(reading, self._block)
        self._layout.state(besides=self._block.leaf())
        self._elastic.state(reading)
        degrees = [reading.stated.get(f"parallelism.{name}") for name in ("tensor", "pipeline")]
        self._parameters.state(reading, whole_model=all(leaf is not None and leaf.value == 1 for leaf in degrees))
        batches = {value for value in reading.steps.column("global_batch") if value is not None}
        if len(batches) == 1 and "batch.global_batch" not in reading.stated and 0 < (size := batches.pop()) < 1e12:
            reading.state("batch.global_batch", int(size), f"global_batch_size: {int(size)}")


def _cut(text: str) -> bool:
    """Whether a line ends within a record: it ends with a bar or lacks what every record has."""
    at = text.rfind("Training epoch ")
    if at < 0 or len(text) > _MAX_BAR or _PRINTED.match(text, at) is None or "|" not in text[at:]:
        return False
    return text.rstrip().endswith("|") or not all(words in text[at:] for words in _WHOLE_CELLS)


def _figures(text: str) -> int:
    """How many known cells of a record have a figure."""
    cells = [cell.partition(":") for cell in text.split(" | ")[:_MAX_CELLS]]
    return sum(1 for key, _, value in cells if key.strip(" |") in _FIELDS and number(value.strip()) is not None)


def _positive(figures: list[float]) -> bool:
    return min(figures) > 0 and math.isfinite(sum(figures))


def _whole(text: str | None) -> int | None:
    """A whole number as a progress line prints it: ``19``, ``19.0``, ``5.000``; None for ``2e+3``."""
    if text is None or "e" in text.lower() or len(text) > 24:
        return None
    found = number(text)
    return int(found) if found is not None and math.isfinite(found) and found == int(found) and found >= 0 else None


def _bytes(text: str | None) -> int | None:
    found = number(text) if text is not None else None
    return round(found) if found is not None and 0 < found < 1e18 else None


READERS = (Nemo,)
