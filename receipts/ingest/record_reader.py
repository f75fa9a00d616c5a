"""One line a step: a record is read from columns, whether they hold one row or thousands.

A reader says what its line looks like (`Form`) and what its labels mean. The engine finds the records on a line, of
which several may be glued together, joins one that goes on below, and turns words into columns of figures in SI units.
`RecordReader.rows` gets them, from one line or, by the line's shape, from thousands at once. What holds for all logs is
decided here: divergence, ranks, restarts, the first step after a start, rates that are placeholders.

`mark_not_steady` decides which steps must not enter a steady window: the start, what still carries it, and stalls. Step
logs of this family say little of why a step was slow, so times decide: the start is what is before the first step of
ordinary speed, and a stall is a step far outside the spread of the other steps.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from math import inf, isfinite
from statistics import median
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import number, scaled
from receipts.ingest.reader import LineReader, Spans
from receipts.ingest.reading import Peaks, Reading, Reason, of_each_chip
from receipts.ingest.record import Form, LineRecord, Pieces, RecordColumns, RecordRows
from receipts.ingest.steps import ABSENT, FIELDS, MAX_STEPS
from receipts.ingest.vocabulary import Label

STEP: Final = "step"
RANK: Final = "rank"
# Figures of memory that the engine keeps, in bytes.
SIZES: Final = ("peak_bytes", "peak_reserved_bytes", "bytes_used", "bytes_limit")
_FIELDS: Final = frozenset(FIELDS)
# Characters of a line before a record that tell whose it is: a line of thousands of records is read in one pass.
_BEFORE: Final = 10_000
_RATES: Final = _FIELDS - {"loss", "grad_norm", "global_batch"}


class RecordReader(LineReader):
    """Reads the lines of a training loop. ``table`` names the file of the vocabulary with its anchors and labels.

    ``goes_back_at_start`` says that a process begins where the numbers go back, as they also do where runs are quoted.
    ``finds_firsts`` says that the first steps of processes are marked here, and not by what the reader knows of times.
    ``placeholders`` says that a time or a rate of nothing, or of infinity, represents one that is not known.
    ``prefix`` is room for a program's name, a date and a rank: what is longer was glued before the record.
    ``needs`` are fields without which a line is no record, ``any_of`` those of which it has one.
    ``letters`` says that figures have letters of base 1000.
    ``fresh`` is to be set where the file shows that a process begins: the next record is its first, and ``first_step``
    why that one is not steady.
    """

    forms: ClassVar[tuple[Form, ...]]
    labels: ClassVar[Mapping[str, Label]]
    goes_back_at_start: ClassVar[bool] = False
    finds_firsts: ClassVar[bool] = True
    placeholders: ClassVar[bool] = True
    prefix: ClassVar[int] = 160
    first_step: Reason = "warmup"
    needs: ClassVar[frozenset[str]] = frozenset({"loss"})
    any_of: ClassVar[frozenset[str]] = frozenset()
    rank: ClassVar[re.Pattern[str] | None] = None
    letters: ClassVar[bool] = False

    def __init_subclass__(cls, table: str = "") -> None:
        """Take a framework's anchors and labels from its table, after which it is named unless it says otherwise."""
        super().__init_subclass__()
        if table:
            cls.anchors, cls.labels = vocabulary.anchors(table), vocabulary.line(table)
            cls.source = vars(cls).get("source", vocabulary.source_of(table))

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0
        self.fresh = False
        self.starts: set[int] = set()
        self._bad = self._good = False
        self._pieces = Pieces()
        self._width = 0
        self.peaks = Peaks(self.reading)
        self._validation: tuple[float, str, int] | None = None
        self._order = {label: at for at, label in enumerate(self.labels)}

    # What a reader adds.

    def other(self, text: str, number: int) -> None:
        """Take a line, or the beginning of one, that is no record."""

    def inside(self) -> bool:
        """Whether a block goes on below, so that the next line is wanted whatever it holds."""
        return False

    def partial(self, text: str) -> bool:
        """Whether a record whose end never came, or came behind the next one's head, is one of this source's."""
        return True

    def label(self, word: str) -> Label | None:
        """What a label means, in its own case or in small letters; None where nothing is kept."""
        return self.labels.get(word) or self.labels.get(word.lower())

    def parse(self, word: str) -> float | None:
        """The figure that a word is."""
        return scaled(word) if self.letters else number(word)

    def rows(self, rows: RecordRows) -> None:
        """Take records, one or many."""
        self.put(rows)

    # What the scanner calls.

    def line(self, text: str, number: int) -> bool:
        """Take one line; True while a record or a block goes on below."""
        joined = None
        if self._pieces:
            joined = self._pieces.join(text, self.find)
            if joined is None:
                self._close()
            else:
                text, number = joined, self._pieces.line
        records = self.find(text)
        if not records:
            self.other(text, number)
            return self.inside()
        if records[0].start > self.prefix:
            self.other(text[: records[0].start], number)
        held = (joined is not None or not records[-1].whole) and self._pieces.hold(
            text if len(records) == 1 else text[records[-1].start :], number
        )
        ended = records[: len(records) - held]
        rest = [record for record in ended if record.whole or self.partial(text[record.start : record.stop])]
        if ended and not any(self.complete(record.spans) for record in rest):
            self.other(text[records[0].start if records[0].start > self.prefix else 0 :], number)
        for record in rest:
            self._one(text, record, number)
        return held or self.inside()

    def spans(self, text: str) -> Spans:
        """Where the figures are on a line that is one whole record; nothing on any other line."""
        records = self.find(text)
        if len(records) != 1 or not records[0].whole or records[0].start > self.prefix:
            return {}
        return records[0].spans if self.complete(records[0].spans) else {}

    def many(self, columns: RecordColumns) -> bool:
        """Take records of a shape that `spans` described; False, and nothing taken, where a word is no number."""
        try:
            rows = self._rows(columns, columns.scaled if self.letters else columns.floats)
        except ValueError:
            return False
        self.rows(rows)
        return True

    def finish(self) -> Reading | None:
        """The reading, with what the records show of divergence and of the first steps of a process."""
        self._close(cut=True)
        reading = self.reading
        if self._validation is not None:
            reading.state("measurement.loss.validation", *self._validation)
        if not self.taken:
            return None
        reading.records += self.taken
        if self._bad or self._good:
            reading.diverged = self._bad
        if self.finds_firsts:
            # The first steps of processes, by their number and by what the file says.
            steps = reading.steps
            back = steps.begun if self.goes_back_at_start else slow_steps(reading, steps.begun)
            for step in sorted({0 if 0 in steps else 1, *self.starts, *back}):
                if step in steps:
                    reading.not_steady.setdefault(step, self.first_step)
        reading.not_steady = dict(sorted(reading.not_steady.items()))
        return reading

    # What a reader calls.

    def put(self, rows: RecordRows) -> None:
        """Record steps with their figures, as far as these are fields of `Steps`."""
        steps = rows.steps
        if not steps:
            return
        self.keep_memory(rows)
        if "step_seconds" not in rows.figures and (rates := rows.figures.get("steps_per_second")):
            rows.figures["step_seconds"] = [1 / rate if 0 < rate < inf else ABSENT for rate in rates]
        figures = rows.figures = {name: values for name, values in rows.figures.items() if name in _FIELDS}
        for field in _RATES & figures.keys() if self.placeholders else ():
            if min(figures[field]) <= 0.0 or not isfinite(sum(figures[field])):
                figures[field] = [value if 0.0 < value < inf else ABSENT for value in figures[field]]
        self.judge(rows)
        if self.fresh:
            self.starts.add(steps[0])
            self.fresh = False
        self.taken += len(steps)
        if len(self.reading.lines) <= MAX_STEPS:
            self.reading.numbered.extend(steps)
            self.reading.lines.extend(rows.lines)
        ranks = rows.counts.get(RANK)
        if ranks is None or ranks.count(ranks[0]) == len(ranks):
            self.reading.steps.extend(steps, figures, None if ranks is None else ranks[0])
        else:
            self.reading.steps.merge(steps, ranks, figures)

    def validated(self, loss: float, text: str, line: int) -> None:
        """Take the loss of an evaluation; the last one that is finite stands."""
        if isfinite(loss):
            self._validation = loss, text, line

    def step(self, step: int, figures: Mapping[str, float], line: int) -> None:
        """Take a record that is in no line of a `Form`, such as a table's row."""
        values = {field: [value] for field, value in figures.items()}
        self.rows(RecordRows([step], [line], {}, values, RecordColumns((line,), (line,), {})))

    def judge(self, rows: RecordRows) -> None:
        """Note whether losses and gradient norms show divergence, and where first."""
        losses, norms = rows.figures.get("loss", ()), rows.figures.get("grad_norm", ())
        if isfinite(sum(losses)) and isfinite(sum(norms)):
            self._good = self._good or bool(losses)
            return
        for step, line, loss, norm in zip(rows.steps, rows.lines, losses, norms or repeat(0.0), strict=False):
            if isfinite(loss) and norm == norm:
                self._good = self._good or loss != ABSENT
            elif not self._bad:
                self._bad = True
                what = "a gradient norm of NaN" if isfinite(loss) else "a loss that is not finite"
                self.reading.remark("note", f"step {step} prints {what}", line)

    def keep_memory(self, rows: RecordRows) -> None:
        """Keep for each rank the largest peaks that the records print, in bytes; without a peak the largest use."""
        names = [name for name in SIZES if name in rows.figures]
        ranks: Sequence[int | None] = rows.counts.get(RANK) or [None] * len(rows.lines)
        last = {name for name in names[1:] if name.startswith("bytes")}
        places = {name: of_each_chip(ranks, rows.figures[name], last=name in last) for name in names}
        for rank in dict.fromkeys(ranks) if names else ():
            for name in names:
                at = places[name][rank]
                step = rows.steps[at] if rows.steps else None
                self.peaks.keep(name, rows.figures[name][at], rows.lines[at], step, rank, last=name in last)

    def complete(self, names: Iterable[str]) -> bool:
        """Whether a record with these labels has what every record has."""
        fields = {known.field for name in names if (known := self.label(name)) is not None}
        return fields >= self.needs and not (self.any_of and fields.isdisjoint(self.any_of))

    def find(self, text: str) -> list[LineRecord]:
        """The records on a line, in order; each reaches up to the next one's head."""
        heads = sorted(
            ((head, form) for form in self.forms for head in form.head.finditer(text)), key=lambda item: item[0].start()
        )
        stops = [head.start() for head, _ in heads[1:]] + [len(text)]
        before, records = 0, []
        for (head, form), stop in zip(heads, stops, strict=False):
            spans = {name: head.span(name) for name in form.head.groupindex if head[name]}
            if self.rank is not None and (ranks := list(self.rank.finditer(text, before, head.start()))):
                spans[RANK] = ranks[-1].span(ranks[-1].lastindex or 0)
            for label, span in self.cells(text, head.end(), stop, form):
                spans.setdefault(label, span)
            whole = form.end is None or form.end.match(text, head.start(), stop) is not None
            records.append(LineRecord(head.start(), stop, spans, whole))
            before = head.end()
        return records

    def cells(self, text: str, start: int, stop: int, form: Form) -> Iterator[tuple[str, tuple[int, int]]]:
        """Known labels of a record, each with the place of its figure."""
        for pattern in form.cells:
            united = "unit" in pattern.groupindex
            for cell in pattern.finditer(text, start, stop):
                label = f"{cell['label']} {cell['unit']}" if united and cell["unit"] else cell["label"]
                if self.label(label) is not None and self.parse(cell["word"]) is not None:
                    yield label, cell.span("word")

    def _one(self, text: str, record: LineRecord, number: int) -> None:
        if not self.complete(record.spans):
            return
        words = {label: (text[start:stop].encode(),) for label, (start, stop) in record.spans.items()}
        columns = RecordColumns((number,), (number,), words, text[max(0, record.start - _BEFORE) : record.stop])
        self._width = len(words) if record.whole else self._width
        self.rows(self._rows(columns, lambda label: [self.parse(columns.words(label)[0].decode()) or 0.0]))

    def _rows(self, columns: RecordColumns, read: Callable[[str], list[float]]) -> RecordRows:
        counts: dict[str, list[int]] = {}
        figures: dict[str, list[float]] = {}
        # Of several labels of one field the one that is first in the table stands, and then the first on the line.
        for name in sorted(columns.names, key=lambda label: self._order.get(label, len(self._order))):
            known = self.label(name)
            if known is None:
                counts[name] = columns.whole(name)
            elif known.field not in figures:
                values = read(name)
                figures[known.field] = values if known.divisor == 1.0 else [value / known.divisor for value in values]
        return RecordRows(counts.pop(STEP, []), columns.lines, counts, figures, columns)

    def _close(self, *, cut: bool = False) -> None:
        """Take the record that was to go on below as it is.

        Where it has fewer figures than the record before it, the end of the file cut it, and perhaps its last figure.
        """
        text, line = self._pieces.take()
        records = self.find(text) if self.partial(text) else []
        if text and not any(self.complete(record.spans) for record in records):
            self.other(text, line)
        for record in records:
            if cut and not record.whole and len(record.spans) < self._width:
                end = len(text.rstrip())
                spans = {label: span for label, span in record.spans.items() if span[1] < end}
                record = replace(record, spans=spans)
            self._one(text, record, line)


# A start longer than this is a phase of its own: a ramp of the batch or of the sequence.
_MAX_START: Final = 10
_SETTLED: Final = 1.5
_STALL: Final = 2.5
_SIGMAS: Final = 5.0
_MIN_SPREAD: Final = 0.02
_MIN_STEPS: Final = 6


def mark_not_steady(reading: Reading, starts: Iterable[int], carrying: Iterable[int] = ()) -> None:
    """Fill ``not_steady`` from the steps' times.

    ``starts`` are the first records after the start of a process; ``carrying`` are records whose average still holds
    such a step, because the source did not reset its clock.
    """
    numbers = reading.steps.numbers()
    times = reading.steps.column("step_seconds")
    for step in starts:
        if step in reading.steps:
            reading.not_steady.setdefault(step, "warmup")
    for step in carrying:
        reading.not_steady.setdefault(step, "warmup")
    if numbers and reading.not_steady.get(numbers[0]) == "warmup":
        for step in _start_steps(numbers, times):
            reading.not_steady.setdefault(step, "warmup")
    for step in _stalled_steps(reading, numbers, times):
        reading.not_steady[step] = "stall"


def slow_steps(reading: Reading, steps: Iterable[int]) -> list[int]:
    """Those of some steps that took far longer than most of the file's."""
    known = [seconds for seconds in reading.steps.column("step_seconds") if seconds is not None]
    limit = _STALL * median(known) if known else math.inf
    return [step for step in steps if (reading.steps.get(step, "step_seconds") or 0.0) > limit]


def _start_steps(numbers: Sequence[int], times: Sequence[float | None]) -> list[int]:
    """The steps before the first of ordinary speed; empty where none of the first ten has it."""
    known = sorted(seconds for seconds in times if seconds is not None)
    if len(known) < 3:
        return []
    ordinary = _SETTLED * known[len(known) // 10]
    slow: list[int] = []
    for step, seconds in zip(numbers, times, strict=True):
        if seconds is None:
            continue
        if seconds <= ordinary:
            return slow
        slow.append(step)
        if len(slow) > _MAX_START:
            return []
    return []


def _stalled_steps(reading: Reading, numbers: Sequence[int], times: Sequence[float | None]) -> list[int]:
    marked = reading.not_steady
    known = array(
        "d", (time for step, time in zip(numbers, times, strict=True) if time is not None and step not in marked)
    )
    if len(known) < _MIN_STEPS:
        return []
    middle = median(known)
    if not math.isfinite(middle) or middle <= 0:
        return []
    spread = array("d", (abs(math.log(seconds / middle)) for seconds in known if seconds > 0))
    limit = max(math.log(_STALL), _SIGMAS * max(_MIN_SPREAD, 1.4826 * median(spread)))
    return [
        step
        for step, seconds in zip(numbers, times, strict=True)
        if seconds is not None and seconds > 0 and math.log(seconds / middle) > limit and step not in marked
    ]
