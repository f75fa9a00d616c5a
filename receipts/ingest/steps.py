"""Training steps as a log prints them: in columns, by the step that a line names, and in the tables that pages show.

`Steps` keeps columns, since a log of millions of lines must not become millions of objects. `step_of` reads the step
that a line of any loop names, for readers that place their own events among the steps: ``completed step: 19``,
``step:19/24``, ``Step 19 |``, ``step=19``, ``iteration 19/24 |``, and ``"step": 19`` of JSON. `StepTable` reads a table
of steps between bars as in Markdown, in HTML, or of a step and a loss between blanks: a notebook shows one below a
training (`NotebookProgressCallback`), a model card keeps one, and people make them of a log's lines.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from operator import lt
from typing import Final, NamedTuple

from receipts.ingest.literals import number

# Three times what a receipt may hold; about 60 MB.
MAX_STEPS: Final = 300_000
MAX_RANKS: Final = 65_536
MAX_BEGUN: Final = 10_000
FIELDS: Final = (
    "step_seconds",
    "tokens_per_second",
    "tokens_per_second_per_chip",
    "tflops_per_second_per_chip",
    "mfu",
    "loss",
    "grad_norm",
    "global_batch",
)
# Each rank prints its own.
_OF_A_RANK: Final = frozenset({"step_seconds", "tokens_per_second_per_chip", "tflops_per_second_per_chip", "mfu"})
# No figure of a log is this one; NaN is a value that logs really print.
ABSENT: Final = -1.7976931348623157e308


class Steps:
    """Distinct steps with what was printed for each: seconds, tokens/s, TFLOP/s, MFU as a fraction, loss, samples.

    The last record of a repeated step stands, as after a restart; `restarts` counts how often the numbers went back.
    Where several ranks print the same step, give the rank: the slowest one's time and rates stand, and `skew` keeps the
    fastest one's time.
    ``begun`` are the steps to which they went back, the first `MAX_BEGUN` of them.
    ``interval`` is the number of steps that a record averages over, where the source says that it averages, and
    ``digits`` how many significant digits it prints of every figure, where that is fixed: 22.8K is 228e2.
    """

    __slots__ = (
        *("_back", "_columns", "_fastest", "_last", "_rows", "_runs", "begun"),
        *("digits", "interval", "lost", "restarts"),
    )

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._columns = {name: array("d") for name in FIELDS}
        # The fastest rank's time of a step that several printed, and the run (as `restarts` counts) of a step's times.
        self._fastest = array("d")
        self._runs = array("l")
        # The last step of each rank with the run in which it was printed, and the step to which the last restart went.
        self._last: dict[int | None, tuple[int, int]] = {}
        self._back = 0
        self.begun: list[int] = []
        self.restarts = 0
        self.lost = 0
        self.interval: int | None = None
        self.digits: int | None = None

    def __len__(self) -> int:
        return len(self._rows) + self.lost

    def __iter__(self) -> Iterator[int]:
        """Step numbers in the order of their first record."""
        return iter(self._rows)

    def __contains__(self, step: int) -> bool:
        return step in self._rows

    def put(self, step: int, values: Mapping[str, float | None], rank: int | None = None) -> None:
        """Record what one line prints for a step; a name outside `FIELDS` is a KeyError.

        A rank that prints a step which another rank printed merges into it; the same rank again replaces its record,
        or adds to it where it printed it last and none of these figures.
        """
        last = self._before(rank)
        if last is not None and step < last:
            self.restarts += 1
            self._back = step
            if len(self.begun) < MAX_BEGUN:
                self.begun.append(step)
        if rank in self._last or len(self._last) < MAX_RANKS:
            self._last[rank] = step, self.restarts
        row = self._rows.get(step)
        if row is None:
            if len(self._rows) >= MAX_STEPS:
                self.lost += 1
                return
            row = len(self._rows)
            self._append((step,), {})
        elif rank is None and not (step == last and all(self._columns[name][row] == ABSENT for name in values)):
            for column in (*self._columns.values(), self._fastest):
                column[row] = ABSENT
        own = rank is not None and any(values.get(name) is not None for name in _OF_A_RANK)
        shared = own and self._shared(row, again=step == last)
        for name, value in values.items():
            if value is not None:
                self._columns[name][row] = self._slowest(row, name, value) if shared else value

    def extend(self, numbers: Sequence[int], columns: Mapping[str, Sequence[float]], rank: int | None = None) -> None:
        """Record many lines of one printer, a column for each figure: as `put` for one line after the other.

        What a line does not print is `ABSENT`; a name outside `FIELDS` is a KeyError.
        """
        if strange := columns.keys() - self._columns.keys():
            raise KeyError(*strange)
        last = self._before(rank)
        onwards = rising(numbers, -1 if last is None else last)
        if not onwards or not self.fresh(numbers):
            self._one_by_one(numbers, repeat(rank), columns)
            return
        if rank in self._last or len(self._last) < MAX_RANKS:
            self._last[rank] = numbers[-1], self.restarts
        room = max(0, MAX_STEPS - len(self._rows))
        self.lost += max(0, len(numbers) - room)
        if room >= len(numbers):
            self._append(numbers, columns)
        elif room:
            self._append(numbers[:room], {name: column[:room] for name, column in columns.items()})

    def merge(
        self, numbers: Sequence[int], ranks: Sequence[int | None], columns: Mapping[str, Sequence[float]]
    ) -> None:
        """Record many lines of several ranks: as `put` for one line after the other."""
        rows, last = self._rows, dict[int | None, int]()
        for rank, step in zip(ranks, numbers, strict=True):
            before = last[rank] if rank in last else self._before(rank)
            if before is not None and step <= before:
                break
            last[rank] = step
        else:
            new = [step for step in dict.fromkeys(numbers) if step not in rows]
            few = len(rows) + len(new) <= MAX_STEPS and len(self._last) + len(last) <= MAX_RANKS
            if None not in last and few:
                self._last.update((rank, (step, self.restarts)) for rank, step in last.items())
                self._append(new, {})
                self._fill([rows[step] for step in numbers], columns)
                return
        self._one_by_one(numbers, ranks, columns)

    def fresh(self, numbers: Sequence[int]) -> bool:
        """Whether none of some steps is known."""
        return self._rows.keys().isdisjoint(numbers)

    def add(self, step: int, values: Mapping[str, float | None]) -> None:
        """Add to what is known of a step, for sources that print one step over several lines."""
        row = self._rows.get(step)
        if row is None:
            self.put(step, values)
            return
        for name, value in values.items():
            if value is not None:
                self._columns[name][row] = value

    def scale(self, name: str, factor: float | None) -> None:
        """Multiply one figure of every step; without a factor it is not known."""
        column = self._columns[name]
        self._columns[name] = array(
            "d", (ABSENT if value == ABSENT or factor is None else value * factor for value in column)
        )

    def get(self, step: int, name: str) -> float | None:
        """One figure of one step, or None where it was not printed."""
        row = self._rows.get(step)
        if row is None:
            return None
        value = self._columns[name][row]
        return None if value == ABSENT else value

    def column(self, name: str) -> list[float | None]:
        """One figure of every step, in the order of the steps' numbers."""
        values = map(self._columns[name].__getitem__, map(self._rows.__getitem__, self.numbers()))
        return [None if value == ABSENT else value for value in values]

    def numbers(self) -> list[int]:
        """The steps' numbers, ascending."""
        return sorted(self._rows)

    def skew(self, step: int) -> float | None:
        """(slowest − fastest rank) / slowest of one step; None with fewer than two ranks' times."""
        row = self._rows.get(step)
        if row is None or self._fastest[row] == ABSENT:
            return None
        slowest = self._columns["step_seconds"][row]
        return (slowest - self._fastest[row]) / slowest if slowest > 0 else None

    def _before(self, rank: int | None) -> int | None:
        """The last step of a rank, as it has to be seen after a restart.

        A rank that another one's restart overtook has not gone back yet: its next record must not count as a second.
        """
        if rank not in self._last:
            return None
        last, run = self._last[rank]
        return last if run == self.restarts else min(last, self._back - 1)

    def _one_by_one(
        self, numbers: Sequence[int], ranks: Iterable[int | None], columns: Mapping[str, Sequence[float]]
    ) -> None:
        for at, (step, rank) in enumerate(zip(numbers, ranks, strict=False)):
            values = {name: column[at] for name, column in columns.items()}
            self.put(step, {name: value for name, value in values.items() if value != ABSENT}, rank)

    def _fill(self, rows: Sequence[int], columns: Mapping[str, Sequence[float]]) -> None:
        """Put figures of several ranks into rows; of a loss the last rank's stands."""
        timed = {row for name in _OF_A_RANK & columns.keys() for row, value in _known(rows, columns[name])}
        shared = {row for row in timed if self._shared(row, again=False)}
        for name, column in columns.items():
            target = self._columns[name]
            if name not in _OF_A_RANK:
                for row, value in dict(_known(rows, column)).items():
                    target[row] = value
                continue
            seen = set(shared)
            for row, value in _known(rows, column):
                target[row] = self._slowest(row, name, value) if row in seen else value
                seen.add(row)

    def _append(self, numbers: Sequence[int], columns: Mapping[str, Sequence[float]]) -> None:
        """Rows for new steps, with what is known of them."""
        self._rows.update(zip(numbers, range(len(self._rows), len(self._rows) + len(numbers)), strict=True))
        nothing = array("d", repeat(ABSENT, len(numbers)))
        for name, target in self._columns.items():
            target.extend(columns.get(name, nothing))
        self._fastest.extend(nothing)
        self._runs.extend(repeat(self.restarts, len(numbers)))

    def _shared(self, row: int, *, again: bool) -> bool:
        """Whether a step's figures are another rank's, of this run; those of another run are forgotten."""
        if self._runs[row] == self.restarts and not (again and self._fastest[row] == ABSENT):
            return True
        self._runs[row] = self.restarts
        self._fastest[row] = ABSENT
        return False

    def _slowest(self, row: int, name: str, value: float) -> float:
        """A figure of the slowest rank once one more rank's is known."""
        known = self._columns[name][row]
        if known == ABSENT or name not in _OF_A_RANK:
            return value
        if name != "step_seconds":
            return min(known, value)
        fastest = self._fastest[row]
        self._fastest[row] = min(known if fastest == ABSENT else fastest, value)
        return max(known, value)


def rising(numbers: Sequence[int], above: int) -> bool:
    """Whether each number is greater than the one before it, and the first one than ``above``."""
    return not numbers or (numbers[0] > above and all(map(lt, numbers, islice(numbers, 1, None))))


def _known(rows: Sequence[int], column: Sequence[float]) -> Iterable[tuple[int, float]]:
    """Rows with their figures, where one was printed."""
    pairs = zip(rows, column, strict=True)
    return (pair for pair in pairs if pair[1] != ABSENT) if ABSENT in column else pairs


# Of the lines of other sources, those that may name a step.
STEP_ANCHORS: Final = (
    *(b"step:", b"Step:", b"step=", b"Step=", b"step = ", b"step ", b"Step ", b'"step":', b"'step':"),
    *(b"iter ", b"iter:", b"iteration ", b"iteration:", b"Iteration "),
)
_NAMED_STEP: Final = re.compile(r"""(?:^|[^\w/])(?:[Ss]tep(?P<key>["']?)|[Ii]ter(?:ation)?)[ :=]{1,12}(\d{1,12})\b""")
# Steps of an evaluation have numbers of their own; where a checkpoint is, no step has ended.
_NO_STEP: Final = re.compile(r"(?i)\b(?:eval|valid|test|checkpoint|load|resum|restor)")
# Figures of an evaluation; a line with none of training beside them repeats the number of a step that has ended.
_EVALUATED: Final = re.compile(r"(?i)(?<![a-z])(?:eval|val(?:id(?:ation)?)?|test)[_/ ]\w*")
_TRAINED: Final = re.compile(r"(?i)loss|step_(?:time|sec|ms)|tok")


def step_of(text: str) -> int | None:
    """The number of the training step that a line names; None where it names none."""
    match = _NAMED_STEP.search(text)
    if match is None or (not match["key"] and _NO_STEP.search(text[: match.start()])):
        return None
    rest = _EVALUATED.sub("", text)
    return int(match[2]) if rest == text or _TRAINED.search(rest) else None


STEP_COLUMN: Final = "step"
_NOTES: Final = frozenset({"note", "notes", "comment", "comments", "remark", "remarks"})
_PLAIN_HEAD: Final = re.compile(r"^[\s>#]*Step\s+Training Loss\b")
_PLAIN_ROW: Final = re.compile(r"^[\s>#]*(\d{1,12})\s+([\d.]{1,24}|nan|No log)(?=\s|$)")
_TAG: Final = re.compile(r"<(th|td|/tr|/table)\b[^>]{0,200}>\s{0,20}([^<]{0,60})", re.IGNORECASE)
_BLANKS: Final = re.compile(r"\\n|\s+")
# Lines of a page without a tag, after which its table is over.
_MAX_BARE: Final = 8
_MAX_CELLS: Final = 100
# What a page puts before the lines that it quotes.
_TABLE_MARGIN: Final = " \t>#"


class StepRow(NamedTuple):
    """One step of a table: figures by field, and what the column of notes says, in small letters."""

    step: int
    figures: dict[str, float]
    note: str


class StepTable:
    """One table at a time, line by line. ``columns`` are fields by their heads, in small letters and without blanks.

    A head names a step and at least so many (``fewest``) of the columns.
    """

    def __init__(self, columns: Mapping[str, str], fewest: int = 1) -> None:
        self.open = False
        self._columns = columns
        self._fewest = fewest
        self._heads: list[str] = []
        self._row: list[str] | None = None
        self._bare = 0

    def begin(self, text: str) -> list[StepRow]:
        """Open a table where a line is its head; rows that stand on the same line."""
        self._heads, self._row, self._bare = [], None, 0
        if _PLAIN_HEAD.match(text):
            self._heads = [STEP_COLUMN, "trainingloss"]
        elif ">Step<" in text:
            self._row, self.open = [], True
            return self._tags(text)
        elif "|" in text:
            self._heads = [_BLANKS.sub("", cell.lower()) for cell in _split(text)]
        self.open = self._known()
        return []

    def take(self, text: str) -> list[StepRow]:
        """Rows of one more line; `open` says whether the table goes on."""
        if self._row is not None:
            return self._tags(text)
        match = _PLAIN_ROW.match(text) if self._heads == [STEP_COLUMN, "trainingloss"] else None
        cells = list(match.groups()) if match else _split(text) if "|" in text else []
        if text.lstrip(_TABLE_MARGIN).startswith("|"):
            # In Markdown a row may have fewer cells than the head, or more, which do not count.
            cells = (cells + [""] * len(self._heads))[: len(self._heads)]
        self.open = len(cells) == len(self._heads)
        return self._cells(cells)

    def _known(self) -> bool:
        return STEP_COLUMN in self._heads and sum(name in self._columns for name in self._heads) >= self._fewest

    def _tags(self, text: str) -> list[StepRow]:
        rows: list[StepRow] = []
        row = self._row = self._row or []
        self._bare = 0 if "<" in text else self._bare + 1
        for tag, word in _TAG.findall(text):
            name, cell = tag.lower(), word.replace("\\n", " ").strip(' ",')
            if name == "/table":
                self.open = False
            elif name == "/tr":
                self.open &= self._known()
                rows += self._cells(row)
                row.clear()
            elif name == "th" and len(self._heads) < _MAX_CELLS:
                self._heads.append(_BLANKS.sub("", cell.lower()))
            elif len(row) < _MAX_CELLS:
                row.append(cell)
        self.open &= self._bare < _MAX_BARE
        return rows

    def _cells(self, cells: list[str]) -> list[StepRow]:
        row = dict(zip(self._heads, cells, strict=False)) if len(cells) == len(self._heads) else {}
        step = number(row.get(STEP_COLUMN, ""))
        if step is None or not 0 <= step < 1e15 or step != int(step):
            return []
        named = ((self._columns[head], cell) for head, cell in row.items() if head in self._columns)
        figures = {field: value for field, cell in named if (value := _figure(field, cell)) is not None}
        note = next((cell.lower() for head, cell in row.items() if head in _NOTES), "")
        return [StepRow(int(step), figures, note)]


def _figure(field: str, cell: str) -> float | None:
    """The figure of a cell, with or without its unit. An MFU above 1 is per cent, whatever its head says."""
    value = number(cell.rstrip(" %s"))
    return value * 0.01 if field == "mfu" and value is not None and (value > 1 or "%" in cell) else value


def _split(text: str) -> list[str]:
    """The cells of a line between bars."""
    return [cell.strip().strip("*`_ ") for cell in text.strip().strip("|").split("|", _MAX_CELLS)][:_MAX_CELLS]
