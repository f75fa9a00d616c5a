"""Training steps as a log prints them, in columns: a log of millions of lines must not become millions of objects."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from operator import lt
from typing import Final

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
