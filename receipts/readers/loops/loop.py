"""Training loops that need no program: the ``record`` of a table beside this file describes the line.

A record is a line with cells (``loss: 2.5 | tps 9000``), or a head with the step and a line below it for each metric.
Tables of other folders may have a ``record``, too (`lightning.toml`).

CSV that a loop writes, and tables that it prints, have steps in columns below one head: ``step,loss,step_time_ms``, ``|
step | loss | time (ms) |``, ``step   loss   ms   tok/s``. A head names the step and a time or a rate with its unit, in
the words of `pytorch_loop.toml`; what it does not name is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product
from operator import lt
from typing import Any, ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Settings
from receipts.ingest.literals import FIGURE, integer, scaled
from receipts.ingest.literals import number as parse
from receipts.ingest.prefix import RANK
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, LineRecord, RecordRows
from receipts.ingest.record_reader import SIZES, STEP, RecordReader, slow_steps
from receipts.ingest.steps import ABSENT
from receipts.ingest.vocabulary import Label

_CELL: Final = rf"(?<![\w/.(-])(?P<label>[A-Za-z][\w/.-]{{0,80}})['\"]?(?: ?[:=] ?| )['\"]?(?P<word>{FIGURE})"
_METRIC: Final = r"^\s{1,20}(?P<label>[A-Za-z][^=:]{1,100}?)\s?[=:]\s?(?P<word>\S{1,40})\s*$"
_MAX_METRICS: Final = 2000
_MAX_RECORD: Final = 1000  # characters, of a line that may hold many
_NO_STEP: Final = -1
_SAME_RATIO: Final = 1e-3  # of two rates of one interval
_SURE_SHARE: Final = 0.01
_MIN_GROWING, _GROWN = 5, 2.0  # times that do nothing but grow, to so many times the first
_OF_OTHERS: Final = re.compile(r"(?i)\b(?:val|eval|test)")
_PER_SECOND: Final = re.compile(r"(?: per |/)s(?:ec(?:ond)?)?\b")


class LoopLog(RecordReader):
    """Reads the lines of one loop. ``mean``: its figures are means over the steps since the last record.

    ``spent``: its time is what these steps took together. The head may name the ``epoch`` from 0, or its ``nth`` from
    1, with how many steps an epoch is ``of``; a ``lap`` is an epoch that may count its steps anew or go on.
    ``window``: they are means over so many steps, whichever a record names. ``memory`` is the line that says, beside
    the steps, what a chip needed at most. ``starts_fresh``: its first record is a process's first.
    ``around``: figures may stand before the step, too (``loss=2.5 tok/s=9000 step=10``).
    ``remarks`` are what contradicts the figures of a record that is like a pattern; ``unless`` is the pattern of lines
    that only look like records.
    """

    rank = RANK
    mean: ClassVar[bool]
    spent: ClassVar[bool]
    window: ClassVar[int]
    memory: ClassVar[re.Pattern[str] | None]
    starts_fresh: ClassVar[bool]
    around: ClassVar[bool] = False
    remarks: ClassVar[Mapping[str, str]]
    unless: ClassVar[re.Pattern[str] | None]

    def __init__(self) -> None:
        super().__init__()
        self.fresh = self.starts_fresh
        self._laps: dict[int, int] = {}  # how many steps are before each
        self._last = 0, 0

    def label(self, word: str) -> Label | None:
        """What a label means, as it is printed or in plain words: `step-time sec` is `step time s`."""
        known = super().label(word)
        if known is not None:
            return known
        plain = _PER_SECOND.sub("/s", re.sub("[-_]", " ", word.lower()))
        return self.labels.get(re.sub(r" sec(?:ond)?s?$", " s", plain))

    def wants(self, text: str) -> bool:
        """Whether a line is a record, or says what a chip needs of memory; of a table any line may be."""
        return not self.forms or bool(self.find(text)) or bool(self.memory and self.memory.search(text))

    def find(self, text: str) -> list[LineRecord]:
        """The records on a line."""
        records = [] if self.unless is not None and self.unless.search(text) else super().find(text)
        if not self.around or len(records) != 1 or self.complete(records[0].spans):
            return records
        record = records[0]
        if _OF_OTHERS.search(text, 0, record.start):
            return records
        spans = dict(self.cells(text, 0, record.start, self.forms[0])) | record.spans
        start = min(begin for begin, _ in spans.values())
        return [replace(record, start=start, spans=spans)]

    def rows(self, rows: RecordRows) -> None:
        """Take records, with what is to be said of the first one."""
        for pattern, text in self.remarks.items():
            if re.search(pattern, rows.text[-_MAX_RECORD:]):
                self.reading.remark("contradiction", text, rows.lines[0])
        # The step is counted anew in each epoch.
        if epochs := rows.counts.get("epoch") or [nth - 1 for nth in rows.counts.get("nth", ())]:
            counts = zip(rows.steps, epochs, rows.counts["of"], strict=True)
            rows.steps = [epoch * of + step for step, epoch, of in counts]
        elif {"lap", "of"} <= rows.counts.keys():
            counts = zip(rows.steps, rows.counts["lap"], rows.counts["of"], strict=True)
            rows.steps = [self._onwards(step, lap, of) for step, lap, of in counts]
        # Tokens of a batch over tokens a second tell more digits than batches a second.
        if (batches := rows.figures.get("tokens_per_batch")) and (rates := rows.figures.get("tokens_per_second")):
            pairs = zip(batches, rates, strict=True)
            rows.figures["step_seconds"] = [batch / rate if rate > 0 else ABSENT for batch, rate in pairs]
        # Without its sign, an MFU below 1 may be a fraction or less than one percent.
        if self.starts_fresh and "mfu" in rows.figures and not any("%" in name for name in rows.columns.names):
            rows.figures["mfu"] = [share if share > _SURE_SHARE else ABSENT for share in rows.figures["mfu"]]
        self.put(rows)

    def _onwards(self, step: int, lap: int, of: int) -> int:
        """The step of all laps: one that begins with a smaller number than the last one counts anew."""
        before, last = self._last
        if lap not in self._laps and len(self._laps) < _MAX_METRICS:
            self._laps[lap] = self._laps.get(before, 0) + of * (lap > before and step < last)
        self._last = lap, step
        return step + self._laps.get(lap, 0)

    def other(self, text: str, number: int) -> None:
        """Take the line of memory; without a step the reading is none, and nor is it."""
        match = self.memory.search(text) if self.memory else None
        if match and (known := self.label(match["label"])) and (size := self.parse(match["word"])):
            self.peaks.keep(known.field, size / known.divisor, number)

    def finish(self) -> Reading | None:
        """The reading; how many steps a record averages over follows from the steps that have one."""
        reading = super().finish()
        numbers = reading.steps.numbers() if reading is not None else []
        if reading is not None and self.mean:
            gaps = Counter(after - before for before, after in pairwise(numbers))
            # Over how many steps one record alone is a mean is not known.
            every = reading.steps.interval = gaps.most_common(1)[0][0] if gaps else 0
            if self.spent:
                reading.steps.scale("step_seconds", 1 / every if every else None)
        times = reading.steps.column("step_seconds") if reading is not None and self.starts_fresh else []
        known = [time for time in times if time is not None]
        grows = len(known) >= _MIN_GROWING and all(map(lt, known, known[1:])) and known[-1] > _GROWN * known[0]
        if reading is not None and grows:
            reading.steps.scale("step_seconds", None)
            reading.remark("note", "the times grow with every line: they are since the start, and no step's")
        first = numbers[0] if numbers else 0
        late = self.starts_fresh and first > (numbers[1] - first if len(numbers) > 1 else 1)
        # An excerpt begins anywhere; a run that was resumed shows its start by the time of its first step.
        if reading is not None and late and first not in slow_steps(reading, [first]):
            reading.not_steady.pop(first, None)
        if reading is not None and self.window and any(reading.steps.column("step_seconds")):
            reading.steps.interval = self.window
            reading.remark("note", f"rates are means over a window of {self.window} batches unless set otherwise")
        return reading


class BlockLoop(LoopLog):
    """Reads heads, whose group is ``step``, and a line for each metric below one: ``label`` and ``word``.

    ``apart``: other lines stand between the metrics, so that a record ends at the next head. ``headless``: a block of
    metrics may stand without its head, as people paste it; its step is not known unless a metric names it.
    """

    forms = ()
    head: ClassVar[re.Pattern[str]]
    metric: ClassVar[re.Pattern[str]]
    settings: ClassVar[Settings]
    apart: ClassVar[bool]
    headless: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self._head: int | None = None
        self._begun = self._metrics = 0
        self._figures: dict[str, float] = {}

    def wants(self, text: str) -> bool:
        """Whether a line is a head, or may be a metric."""
        return self.headless or self._head is not None or self.head.search(text) is not None

    def inside(self) -> bool:
        """Whether the metrics of a step go on below."""
        return self._head is not None and not self.apart

    def other(self, text: str, number: int) -> None:
        """Take a head, or a metric on its line or below it; any other line ends the record."""
        head = self.head.search(text)
        if head:
            self._end()
            self._head, self._begun = int(head[STEP]), number
        elif (
            self._head is None and self.headless and (match := self.metric.search(text)) and self.label(match["label"])
        ):
            self._head, self._begun = _NO_STEP, number
        if self._head is None:
            return
        if (match := self.metric.search(text)) and self._metrics < _MAX_METRICS:
            self._metrics += 1
            label, value = (
                match["label"],
                parse(match["word"]) if match["word"][-1:].isdigit() else scaled(match["word"]),
            )
            if value is not None and (known := self.label(label)) is not None and known.field == STEP:
                self._head = int(value) if 0 <= value < 1e12 else self._head
            elif value is not None and known is not None:
                self._figures.setdefault(known.field, value / known.divisor)
            elif stated := self.settings.read(label, match["word"]):
                self.reading.state(*stated, f"{label}: {stated[1]}", number)
        elif not (head or self.apart):
            self._end()

    def finish(self) -> Reading | None:
        """The reading, with the last record."""
        self._end()
        reading = super().finish()
        return self.reading if reading is None and self.reading.records else reading

    def _end(self) -> None:
        """Take one record; the size of a batch follows from the samples and the batches before it."""
        step, figures = self._head, self._figures
        self._head, self._figures, self._metrics = None, {}, 0
        before, samples = figures.get("batches", 0.0), figures.get("samples", 0.0)
        if before > 0 and samples > 0 and samples % before == 0:
            figures["global_batch"] = samples / before
        each = figures.get("samples_per_second", 0.0) / (figures.get("steps_per_second") or 1.0)
        if each and abs(each - round(each)) < _SAME_RATIO * each:
            figures["global_batch"] = float(round(each))
        if step == _NO_STEP and figures:
            # State what a block without its head says of no step in particular.
            reading, line = self.reading, self._begun
            reading.records += 1
            if (rate := figures.get("steps_per_second", 0.0)) > 0:
                figures = {"step_seconds": 1 / rate, **figures}
            for field in (
                "step_seconds",
                "tokens_per_second",
                "tokens_per_second_per_chip",
                "tflops_per_second_per_chip",
            ):
                if (value := figures.get(field, 0.0)) > 0:
                    reading.state(f"measurement.stated.{field}", float(f"{value:.9g}"), f"{value:g}", line)
            if "loss" in figures:
                reading.state("measurement.loss.last", figures["loss"], f"{figures['loss']:g}", line)
            for name in SIZES:
                if (size := figures.get(name)) is not None:
                    self.peaks.keep(name, size, line)
            if share := figures.get("mfu"):
                tera = figures.get("tflops_per_second_per_chip")
                peak = f", which with its TFLOP/s divides by {tera / share:,.1f} TFLOP/s" if tera else ""
                reading.remark("note", f"an MFU of {share:.2%} is printed{peak}", line)
            reading.remark(
                "missing", "the line above a block of metrics is not here: of which step it is is not known", line
            )
        elif step is not None and step != _NO_STEP and self.needs <= figures.keys():
            self.step(step, figures, self._begun)


def reader(name: str) -> type[LoopLog]:
    """The reader of the loop that a table describes."""
    record: dict[str, Any] = vocabulary.table(name)["record"]
    settings: dict[str, Any] = {
        "source": vocabulary.source_of(name),
        "anchors": tuple(anchor.encode() for anchor in record["anchors"]),
        "labels": vocabulary.line(name),
        "needs": frozenset(record.get("needs", ("loss",))),
        "mean": record.get("mean", False),
        "spent": record.get("spent", False),
        "window": record.get("window", 0),
        "starts_fresh": record.get("starts", False),
        "around": record.get("around", False),
        "remarks": record.get("remarks", {}),
        "any_of": frozenset(record.get("any_of", ())),
        "unless": re.compile(record["unless"]) if "unless" in record else None,
    }
    head = re.compile(record["head"].replace("FIGURE", FIGURE))
    settings["memory"] = re.compile(record["memory"].replace("FIGURE", FIGURE)) if "memory" in record else None
    if record.get("below"):
        below = {"head": head, "metric": re.compile(record.get("metric", _METRIC)), "settings": Settings(name)}
        below |= {"apart": record.get("apart", False), "headless": record.get("headless", False)}
        return type(name, (BlockLoop,), settings | below)
    cells = record.get("cells", _CELL)
    patterns = [cells] if isinstance(cells, str) else cells
    compiled = tuple(re.compile(pattern.replace("FIGURE", FIGURE), re.IGNORECASE) for pattern in patterns)
    return type(name, (LoopLog,), settings | {"forms": (Form(head, compiled),)})


_SEPARATORS: Final = (",", ", ", ";", "\t", "|", " | ", *(" " * count for count in range(2, 9)))
_STEPS: Final = ("step", "global step", "iter", "iteration")
_MAX_CELLS: Final = 60
_RULE: Final = re.compile(r"[\s|+:=-]{3,}")


def _cells(text: str, separator: str) -> list[str]:
    parts = text.strip().strip("|").split(separator or None, _MAX_CELLS)
    return [part.strip().strip('"') for part in parts]


def _separator(text: str) -> str:
    """What stands between the cells of a head; nothing where these are blanks."""
    return next((sign for sign in ("|", "\t", ";", ",") if sign in text.strip()), "")


class ColumnLog(LoopLog):
    """Reads one table after the other; a table ends with the first line that is no row of it."""

    source: ClassVar[str] = "columns"
    anchors: ClassVar[tuple[bytes, ...]] = tuple(
        "".join(word).encode() for word in product(("tep", "iter"), _SEPARATORS, "lt")
    )
    labels = vocabulary.line("pytorch_loop")
    forms = ()
    needs = frozenset()
    any_of = frozenset({"step_seconds", "tokens_per_second", "tokens_per_second_per_chip"})
    mean = spent = False
    window = 0
    memory = unless = None
    remarks: ClassVar[dict[str, str]] = {}
    starts_fresh = True

    def __init__(self) -> None:
        super().__init__()
        self._separator = ""
        self._heads: list[str] = []

    def inside(self) -> bool:
        """Whether a table goes on below."""
        return bool(self._heads)

    def other(self, text: str, number: int) -> None:
        """Take a head, or a row below one."""
        if not self._heads:
            self._begin(text)
            return
        cells = _cells(text, self._separator)
        row = dict(zip(self._heads, cells, strict=False)) if len(cells) == len(self._heads) else {}
        step = next((integer(row[name]) for name in _STEPS if name in row), None)
        if step is not None and step >= 0:
            figures: dict[str, float] = {}
            for name, cell in row.items():
                if (known := self.label(name)) is not None and (value := parse(cell)) is not None:
                    figures.setdefault(known.field, value / known.divisor)
            self.step(step, figures, number)
        elif not _RULE.fullmatch(text):
            self._heads = []
            self._begin(text)

    def _begin(self, text: str) -> None:
        """Open a table where a line is its head."""
        separator = _separator(text)
        plain = re.sub(r" ?[(\[](\w{1,8}|%)[)\]]", r" \1", text.lower()).replace("_", " ")
        if not separator:
            plain = re.sub(r"(?<=\S) (?=\S)", "_", plain) if "  " in plain.strip() else plain
        heads = [head.replace("_", " ") for head in _cells(plain, separator)]
        known = {label.field for head in heads if (label := self.label(head)) is not None}
        evaluated = any(map(_OF_OTHERS.match, heads)) and "loss" not in known
        if (
            any(map(heads.__contains__, _STEPS))
            and known & self.any_of
            and not evaluated
            and len(heads) == len({*heads})
        ):
            self._separator, self._heads = separator, heads


READERS = (*map(reader, vocabulary.loops()), ColumnLog)
