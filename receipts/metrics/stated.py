"""What a launch's own numbers make of its rate, by every statistic and window, with the reach of rounding.

A number is as exact as its last printed digit. Where its source text is not kept, its digits are all there is; a
round one may have been shortened, which is asked and not decided (`stated_loosely`).

A notebook states its windows in words: ``iters 3-6``, ``steps 3 to 6`` and ``hot (from step 3)`` of six steps are one
window. ``steps 3/4`` are two steps, and ``step 3/10`` is not a window. A text that names two stretches, or names no
stretch, is not read: it stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import orjson

from receipts.stats.distributions import median
from receipts.stats.rounding import Interval, half_of

if TYPE_CHECKING:
    from receipts.metrics.launch import Launch


Item = TypeVar("Item")


class Lazy(Generic[Item]):
    """What an iterator gives, kept: it can be gone through again, and by several at once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._kept: list[Item] = []
        self._rest = iter(items)

    def __iter__(self) -> Iterator[Item]:
        place = 0
        while True:
            if place == len(self._kept):
                try:
                    self._kept.append(next(self._rest))
                except StopIteration:
                    return
            yield self._kept[place]
            place += 1

    def __bool__(self) -> bool:
        return any(True for _ in self)


STATED = "measurement.stated"
TOTAL = f"{STATED}.tokens_per_second"
EACH = f"{STATED}.tokens_per_second_per_chip"
STEP = f"{STATED}.step_seconds"
# Digits of a number without source text that are always taken as meant: 98000 may be 98k, and never 100k.
MEANT_DIGITS = 2
# Steps that are looked at for the digits that a log prints: the rest of them is printed alike.
PRINTED_ALIKE = 32
SINGLE = "a single step"


class CandidateValue(NamedTuple):
    """One thing that a stated number may be: a statistic over some steps, or a product of other stated numbers."""

    name: str
    value: Interval


class Numbers:
    """The numbers of one launch, each made on first use: a dozen rules ask the same of its steps. `Launch.numbers`."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._stated: dict[str, Interval | None] = {}

    def __repr__(self) -> str:
        return f"Numbers({self._launch!r})"

    def stated(self, path: str) -> Interval | None:
        """A stated number ± half the last printed digit of its source text, or of itself; None if unstated."""
        if path not in self._stated:
            value, text = self._launch.stated.get(path), self._launch.stated.get(f"{path}_stated")
            number = None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
            self._stated[path] = None if number is None else Interval.around(number, half_of(number, text))
        return self._stated[path]

    def stated_loosely(self, path: str) -> Interval | None:
        """As `stated`, but a number without source text may have been rounded to its last digit that is not zero."""
        strict = self.stated(path)
        if strict is None or f"{path}_stated" in self._launch.stated:
            return strict
        value = float(self._launch.stated[path])
        half = half_of(value)
        if value:
            meant = math.floor(math.log10(abs(value))) - (MEANT_DIGITS - 1)
            half = max(half, 0.5 * 10.0 ** min(_last_place(value), meant))
        return Interval.around(value, half)

    @cached_property
    def tokens_a_step(self) -> tuple[int, ...]:
        """Tokens a step as stated, and as global batch times sequence length: a loader may drop a token a sequence."""
        batch, length = self._launch.stated.get("batch.global_batch"), self._launch.stated.get("batch.sequence_length")
        counts = [self._launch.stated.get("measurement.tokens_per_step")]
        counts.append(batch * length if batch is not None and length is not None else None)
        return tuple(dict.fromkeys(int(item) for item in counts if item))

    @cached_property
    def step_statistics(self) -> Lazy[CandidateValue]:
        """Step times by statistic, over the window and over the whole launch, with and without the flagged steps."""
        return Lazy(self._over_steps())

    def _over_steps(self) -> Iterator[CandidateValue]:
        for name, kept in self._selections():
            for statistic, value in self._statistics(kept):
                yield CandidateValue(f"{statistic} step of {name}", value)
        steps = self._launch.durations
        # Any one step, where the receipt says that its numbers are of one.
        if self._launch.timed and self._launch.stated.get(f"{STATED}.statistic") == "single_step":
            yield CandidateValue(SINGLE, Interval(min(steps), max(steps)))

    @cached_property
    def rate_statistics(self) -> Lazy[CandidateValue]:
        """Tokens/s of all chips by statistic over the kept steps; nothing without steps or tokens a step."""
        return Lazy(self._rates_over_steps())

    def _rates_over_steps(self) -> Iterator[CandidateValue]:
        amounts = self.tokens_a_step
        if not amounts:
            yield from self._printed_rates()
            return
        for step in self.step_statistics:
            for tokens in amounts:
                basis = f"{tokens:,} tokens over the {step.name}" if step.name != SINGLE else SINGLE
                yield CandidateValue(basis, tokens / step.value)
        for name, kept in self._selections():
            inverse = [1.0 / step for step in self._steps(kept)]
            for tokens in amounts:
                mean = Interval.exact(tokens * math.fsum(inverse) / len(kept))
                yield CandidateValue(f"the mean of rates over {name}", mean)
                # Of an even number of steps the median is a mean of two, and not the rate of the median step; it is as
                # exact as the digits of the steps that it is made of.
                if len(kept) % 2 == 0:
                    middle = median(inverse)
                    reach = Interval.around(middle, self._half_digit * middle**2)
                    yield CandidateValue(f"the median of rates over {name}", tokens * reach)

    def _printed_rates(self) -> Iterator[CandidateValue]:
        """Statistics over the tokens/s that a log prints of every step."""
        rates, segment = self._launch.rates, self._launch.segment
        for name, kept in (
            ("all steps", rates),
            ("the steps that count", segment.of(rates) if segment and rates else ()),
        ):
            if not kept:
                continue
            half = 0.5 * 10.0 ** _last_place_of(kept[:PRINTED_ALIKE])
            inverse = [1.0 / rate for rate in kept]
            values = {"median": median(kept), "mean": math.fsum(kept) / len(kept), "last": kept[-1], "best": max(kept)}
            values |= {"rate of the median": 1.0 / median(inverse), "rate of the mean": len(kept) / math.fsum(inverse)}
            for statistic, value in values.items():
                yield CandidateValue(
                    f"the {statistic} step of {name}, by the printed tokens/s", Interval.around(value, half)
                )

    @cached_property
    def rate_from_step_time(self) -> tuple[CandidateValue, ...]:
        """Tokens/s of all chips from the stated step time."""
        seconds = self.stated_loosely(STEP)
        if seconds is None:
            return ()
        return tuple(
            CandidateValue(f"{tokens:,} tokens over the stated {self._launch.stated[STEP]:g} s", tokens / seconds)
            for tokens in self.tokens_a_step
        )

    @cached_property
    def rates(self) -> tuple[CandidateValue, ...]:
        """Every tokens/s of all chips that the receipt carries: stated, over its steps, from its step time."""
        rates = [*self.rate_statistics, *self.rate_from_step_time]
        total, each = self.stated_loosely(TOTAL), self.stated_loosely(EACH)
        chips = self._launch.stated.get("hardware.chips")
        if total is not None:
            rates.append(CandidateValue("the stated tokens/s", total))
        if each is not None and chips is not None:
            rates.append(CandidateValue(f"the stated tokens/s a chip times {chips}", each * chips))
        return tuple(rates)

    def _selections(self) -> Iterator[tuple[str, Sequence[int]]]:
        """Positions of steps that a statistic may be over. Without a window or flags there are fewer, never others."""
        steps = self._launch.durations
        if not self._launch.timed:
            return
        window = self._launch.measurement.window
        first = (window.start or 0) if window else 0
        last = window.stop if window and window.stop is not None else len(steps)
        flagged = {index for positions in self._launch.flagged.values() for index in positions}
        selections: list[Sequence[int]] = []
        for name, inside in (("the window", range(first, min(last, len(steps)))), ("all steps", range(len(steps)))):
            for basis, left_out in ((name, frozenset[int]()), (f"{name} but those flagged", flagged)):
                kept = _without(inside, left_out)
                if kept and kept not in selections:
                    selections.append(kept)
                    yield basis, kept

    def _steps(self, kept: Sequence[int]) -> Sequence[float]:
        """The durations at some positions."""
        if isinstance(kept, range):
            return self._launch.durations[kept.start : kept.stop]
        return [self._launch.durations[i] for i in kept]

    @cached_property
    def _half_digit(self) -> float:
        """Half the last digit that the steps were printed with: a statistic over them is not more exact."""
        return 0.5 * 10.0 ** _last_place_of(self._launch.durations[:PRINTED_ALIKE])

    def _statistics(self, kept: Sequence[int]) -> Iterator[tuple[str, Interval]]:
        half, steps = self._half_digit, self._steps(kept)
        middle = self._launch.median(kept.start, kept.stop) if isinstance(kept, range) else median(steps)
        yield "median", Interval.around(middle, half)
        yield "mean", Interval.around(math.fsum(steps) / len(steps), half)
        yield "last", Interval.around(steps[-1], half)
        yield "best", Interval.around(min(steps), half)
        if walls := self._launch.walls:
            yield "wall time of a", Interval.around(math.fsum(walls[at] for at in kept) / len(steps), half)


def _last_place(value: float) -> int:
    """The power of ten of the last digit that is not zero: 98000 is 3, 2.34 is -2."""
    text = repr(value)
    if "e" not in text and not text.endswith(".0"):  # the common case, and ten times as quick
        return -len(text.partition(".")[2].rstrip("0"))
    exponent = Decimal(text).normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def nearest(value: float, candidates: Iterable[CandidateValue]) -> CandidateValue:
    """The candidate that comes closest to a value."""
    return min(candidates, key=lambda item: _gap(value, item.value))


def gap(value: float, candidates: Iterable[CandidateValue]) -> float:
    """How far the closest candidate is from a value, as a share of it."""
    return _gap(value, nearest(value, candidates).value) / abs(value) if value else math.inf


def _gap(value: float, other: Interval) -> float:
    return max(other.low - value, value - other.high, 0.0)


def _without(inside: range, left_out: Collection[int]) -> Sequence[int]:
    """Positions but some of them: a range wherever one holds them, so that equal positions are equal."""
    if not any(i in inside for i in left_out):
        return inside
    kept = [i for i in inside if i not in left_out]
    together = bool(kept) and kept[-1] - kept[0] == len(kept) - 1
    return range(kept[0], kept[-1] + 1) if together else kept


def _last_place_of(values: Sequence[float]) -> int:
    """The lowest `_last_place` of several numbers."""
    text = orjson.dumps(values)
    # The digits of a fraction stand behind the point, with no zero at their end: the common case, read at once.
    if b"e" not in text and b".0," not in text and not text.endswith(b".0]"):
        return 1 - max([len(item) - item.index(b".") for item in text[1:-1].split(b",")])
    return min(map(_last_place, values))


_STEP = r"(?:iteration|iter|step)s?"
_STRETCH = re.compile(rf"\b{_STEP}\s*(\d+)\s*(-|–|/|to)\s*(\d+)\b", re.IGNORECASE)
_ONWARD = re.compile(rf"\bfrom\s+{_STEP}\s*(\d+)\b|\b{_STEP}\s*(\d+)\s*\+", re.IGNORECASE)
_ANY = re.compile(r"\d+\s*[-–/]\s*\d+")
_COUNT = re.compile(rf"\bn\s*=\s*\d+|\b\d+\s+(?:{_STEP}|samples)\b", re.IGNORECASE)
_SOURCE = re.compile(r"^\w+:\s")
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_FILLING = frozenset({"a", "all", "each", "hot", "of", "on", "over", "the"})
_STATISTICS = {"mean": "mean", "average": "mean", "avg": "mean", "median": "median", "best": "best", "last": "last"}


class Stretch(NamedTuple):
    """Steps ``first`` to ``last``, both counted; the statistic over them where one is named; what else was said."""

    first: int
    last: int
    statistic: str | None
    beside: frozenset[str]

    def same_steps(self, other: Stretch) -> bool:
        """Whether both are over the same steps, and neither says anything else that the other does not."""
        return (self.first, self.last, self.beside) == (other.first, other.last, other.beside)


def read_window(text: str, steps: int | None) -> Stretch | None:
    """The one stretch that a text names; an open one ends with the run's ``steps``. None if it is not clear."""
    text = _SOURCE.sub("", text.strip())
    bounded, onward = _STRETCH.findall(text), _ONWARD.findall(text)
    if len(_ANY.findall(text)) > 1 or len(bounded) + len(onward) != 1:
        return None
    if bounded:
        first, last = int(bounded[0][0]), int(bounded[0][2])
        if bounded[0][1] == "/" and last != first + 1:
            return None
    elif steps is not None:
        first, last = int(next(filter(None, onward[0]))), steps
    else:
        return None
    if last < first:
        return None
    rest = _COUNT.sub(" ", _ONWARD.sub(" ", _STRETCH.sub(" ", text))).lower()
    words = frozenset(_WORD.findall(rest)) - _FILLING
    named = {_STATISTICS[word] for word in words if word in _STATISTICS}
    if len(named) > 1:
        return None
    return Stretch(first, last, next(iter(named), None), words - _STATISTICS.keys())
