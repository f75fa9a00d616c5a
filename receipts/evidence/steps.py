"""Training steps as a log prints them, in columns: a log of millions of lines must not become millions of objects."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Final

# Three times what a receipt may hold; about 60 MB.
MAX_STEPS: Final = 300_000
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
# No figure of a log is this one; NaN is a value that logs really print.
ABSENT: Final = -1.7976931348623157e308


class Steps:
    """Distinct steps with what was printed for each: seconds, tokens/s, TFLOP/s, MFU as a fraction, loss, samples.

    The last record of a repeated step stands, as after a restart; `restarts` counts how often the numbers went back.
    Where several ranks print the same step, give the rank: the slowest rank's time stands and `skew` keeps the fastest.
    ``interval`` is the number of steps that a record averages over, where the source says that it averages.
    """

    __slots__ = ("_columns", "_fastest", "_last", "_rows", "interval", "lost", "restarts")

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._columns = {name: array("d") for name in FIELDS}
        self._fastest: dict[int, dict[int, float]] = {}
        self._last: dict[int | None, int] = {}
        self.restarts = 0
        self.lost = 0
        self.interval: int | None = None

    def __len__(self) -> int:
        return len(self._rows) + self.lost

    def __iter__(self) -> Iterator[int]:
        """Step numbers in the order of their first record."""
        return iter(self._rows)

    def __contains__(self, step: object) -> bool:
        return step in self._rows

    def put(self, step: int, values: Mapping[str, float | None], rank: int | None = None) -> None:
        """Record what one line prints for a step; a name outside `FIELDS` is a KeyError.

        A rank that prints a step which another rank printed merges into it; the same rank again replaces its record.
        """
        last = self._last.get(rank)
        if last is not None and step < last:
            self.restarts += 1
            self._forget_after(step)
        self._last[rank] = step
        row = self._rows.get(step)
        if row is None:
            if len(self._rows) >= MAX_STEPS:
                self.lost += 1
                return
            row = self._rows[step] = len(self._columns["loss"])
            for column in self._columns.values():
                column.append(ABSENT)
        elif rank is None:
            for column in self._columns.values():
                column[row] = ABSENT
        for name, value in values.items():
            if value is not None:
                self._columns[name][row] = value
        if rank is not None and (seconds := values.get("step_seconds")) is not None:
            self._times(step, row, rank, seconds)

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
        column = self._columns[name]
        return [None if column[row] == ABSENT else column[row] for _, row in sorted(self._rows.items())]

    def numbers(self) -> list[int]:
        """The steps' numbers, ascending."""
        return sorted(self._rows)

    def skew(self, step: int) -> float | None:
        """(slowest − fastest rank) / slowest of one step; None with fewer than two ranks' times."""
        times = self._fastest.get(step)
        if times is None or len(times) < 2:
            return None
        slowest = max(times.values())
        return (slowest - min(times.values())) / slowest if slowest > 0 else None

    def _times(self, step: int, row: int, rank: int, seconds: float) -> None:
        times = self._fastest.setdefault(step, {})
        times[rank] = seconds
        self._columns["step_seconds"][row] = max(times.values())

    def _forget_after(self, step: int) -> None:
        # Other ranks have not gone back yet: their next record must not count as a second restart.
        self._last = {rank: min(last, step) for rank, last in self._last.items()}
