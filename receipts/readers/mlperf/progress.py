"""How far a launch is at each record, and the series of step times that follows: single steps, or means over intervals.

Records count samples, steps or tokens, whatever the count is called. What a count counts follows from the clock: the
steps that a printed step time or throughput makes of the time between two records. Where neither is printed, it
follows from the name and from what divides the counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from receipts.ingest.reading import IntervalMeans

NEAR: Final = 1.25  # how far a count may be from what the clock makes of it: means leave out what is between steps
LONGER: Final = 1.001  # than the clock's time: beyond what a record's millisecond explains
MAX_MARKS: Final = 100_000
MIN_MEANS: Final = 10  # means that make a sample
PRINTED: Final = "framework log"
CLOCK: Final = "mllog time_ms"
WHOLE_BLOCK: Final = "block with its evaluation"


class BlockRecord(NamedTuple):
    """One record of a block: its count, by which name, and its clock in seconds; NaN where it has none."""

    name: str
    total: int
    at: float


class StepTime(NamedTuple):
    """What a record prints: the seconds of a step, or samples a second; in which block."""

    mark: BlockRecord
    block: int
    seconds: float | None = None
    rate: float | None = None


class Work(NamedTuple):
    """What a step is: samples, and tokens a sample where the log says it; ``by_tokens`` where rules count tokens."""

    batch: int | None
    length: int | None
    by_tokens: bool

    @property
    def tokens(self) -> int:
        """Tokens a step; 0 where unknown."""
        return (self.batch or 0) * (self.length or 0)


class Blocks:
    """Collects marks by block: what lies between evaluations. Times across an evaluation are none of steps.

    A record may count twice, as samples and as steps; the first count is its own where both advance as often.
    """

    def __init__(self) -> None:
        self.blocks: list[list[tuple[BlockRecord, ...]]] = []
        self.times: list[StepTime] = []
        self.evaluates_inside = False
        self.evaluated: set[int] = set()  # counts of the evaluations
        self._open = False
        self._marks = 0
        self._reached: dict[str, int] = {}

    def restart(self) -> None:
        """Training begins anew: what came before is an attempt that was given up."""
        self._reached.clear()
        self.blocks.clear()
        self.times.clear()
        self._open = False

    def begin(self, marks: tuple[BlockRecord, ...]) -> BlockRecord:
        """A block begins where training is, and never before: some submissions print its length, or count steps."""
        block = tuple(mark._replace(total=max(mark.total, self._reached.get(mark.name, 0))) for mark in marks)
        self.blocks.append([block])
        self._open = True
        return block[0]

    def end(self, marks: tuple[BlockRecord, ...]) -> None:
        """It ends; at a count where the record names one. An evaluation that starts says where training is."""
        self.add(marks)
        self._reach(marks)
        self._open = False

    def add(self, marks: tuple[BlockRecord, ...]) -> None:
        """A record within a block; one outside of any is of none."""
        self._marks += 1
        if not marks or not self._open or self._marks > MAX_MARKS:
            return
        block = self.blocks[-1]
        if len(block) == 1:
            block[0] = tuple(self._not_after(start, marks) for start in block[0])
        self._reach(marks)
        block.append(marks)

    def _reach(self, marks: tuple[BlockRecord, ...]) -> None:
        for mark in marks:
            if mark.name != "epoch":  # an end by epochs is the start and a length that may not be kept
                self._reached[mark.name] = max(mark.total, self._reached.get(mark.name, 0))

    def _not_after(self, start: BlockRecord, marks: tuple[BlockRecord, ...]) -> BlockRecord:
        """A start beyond the first record of its block is a length: the block begins at what was reached."""
        reached = self._reached.get(start.name, 0)
        later = next((mark.total for mark in marks if mark.name == start.name), start.total)
        return start._replace(total=reached) if reached < later < start.total else start

    def timed(self, mark: BlockRecord, *, seconds: float | None = None, rate: float | None = None) -> None:
        """A record with a printed time of a step, or a rate."""
        if len(self.times) < MAX_MARKS:
            self.times.append(StepTime(mark, len(self.blocks) - 1 if self._open else -1, seconds, rate))

    def unit(self, name: str, work: Work) -> int | None:
        """How many of a name's counts a step has; None where the log does not show it, or its clock says neither.

        A name decides only where no clock does: image models print the number of an epoch as ``step``.
        """
        seen = self._by_clock(name, work)
        if seen is not None:
            # The unit that is nearest to what was seen: a step, its samples, or its tokens; None where none is near.
            known = [unit for unit in {1, work.batch or 1, work.tokens or 1} if seen / NEAR <= unit <= seen * NEAR]
            return min(known, key=lambda unit: abs(math.log(unit / seen)), default=None)
        marks = [mark.total for block in self.blocks for marks in block for mark in marks if mark.name == name]
        counts = marks + [item.mark.total for item in self.times if item.mark.name == name]
        samples = {count * (work.batch or 0) for count in counts}
        # Evaluations that count samples, each at the end of a block, say that blocks count steps.
        steps = name == "epoch" and self.evaluated and self.evaluated <= samples
        return 1 if steps else _by_name(name, counts, work)

    def series(self, work: Work) -> IntervalMeans | None:
        """The times that the log prints; its clock's where it prints too few, or only of steps that log a loss."""
        printed, clocked = self._printed(work), self._clocked(work)
        if printed is None or clocked is None:
            return printed or clocked
        enough = len(printed.steps) >= min(MIN_MEANS, len(clocked.steps))
        return printed if enough and sum(printed.steps) * NEAR >= sum(clocked.steps) else clocked

    def _by_clock(self, name: str, work: Work) -> float | None:
        """Counts a step, as printed times or rates make it of the clock, within a block."""
        seen: list[float] = []
        before: StepTime | None = None
        for item in self.times:
            since = self._since(item, before)
            counted = item.mark.total - since.total
            if item.mark.name != name or counted <= 0:
                continue  # a mean over a block counts the block's own samples
            spent = item.mark.at - since.at
            before = item
            if spent > 0:
                steps = spent / item.seconds if item.seconds else spent * (item.rate or 0.0) / (work.batch or math.inf)
                seen += [counted / steps] if steps > 0 else []
        return median(seen) if seen else None

    def _since(self, item: StepTime, before: StepTime | None) -> BlockRecord:
        """Where the stretch that a record is over began: at the record before, or with its block."""
        if before is not None and before.block == item.block:
            return before.mark
        total = before.mark.total if before else 0
        start = self.blocks[item.block][0] if item.block >= 0 else (BlockRecord(item.mark.name, total, math.nan),)
        same = next((mark for mark in start if mark.name == item.mark.name), None)
        return same or BlockRecord(item.mark.name, total, start[0].at)

    def _printed(self, work: Work) -> IntervalMeans | None:
        """Printed step times with the steps since the record before."""
        times = [item for item in self.times if item.seconds is not None and item.seconds > 0]
        unit = self.unit(times[0].mark.name, work) if times else None
        if unit is None or any(item.mark.name != times[0].mark.name for item in times) or self._single(times, unit):
            return None
        seconds, steps = [], []
        before: StepTime | None = None
        count = self._start(work) * unit
        for item in times:
            counted, rest = divmod(item.mark.total - count, unit)
            since = self._since(item, before)
            if before and since.total > count and counted * (item.seconds or 0.0) > (item.mark.at - since.at) * NEAR:
                counted, rest = divmod(item.mark.total - since.total, unit)  # the mean is over its own block
            # What is before the first record is known where the clock agrees.
            if counted > 0 and not rest and (before or self._agrees(item, counted)):
                seconds.append(float(item.seconds or 0.0))
                steps.append(counted)
            before, count = item, max(count, item.mark.total)
        return IntervalMeans(seconds, steps, PRINTED) if seconds else None

    def _single(self, times: Sequence[StepTime], unit: int) -> bool:
        """Whether times beside records of several steps are those of one step each: no mean is longer than the clock.

        Some submissions print every 32nd step's own time, and a tenth of these are longer than the mean by chance.
        """
        longer: list[bool] = []
        for before, item in pairwise(times):
            steps = (item.mark.total - before.mark.total) / unit
            if item.block == before.block and steps > 1:
                longer.append(steps * (item.seconds or 0.0) > (item.mark.at - before.mark.at) * LONGER)
        return len(longer) >= MIN_MEANS and sum(longer) * MIN_MEANS > len(longer)

    def _start(self, work: Work) -> int:
        """The step at which the first block begins; 0 where its count is of an unknown unit."""
        if not self.blocks:
            return 0
        begin = self.blocks[0][0][0]
        unit = self.unit(begin.name, work)
        return begin.total // unit if unit else 0

    def _agrees(self, item: StepTime, steps: int) -> bool:
        spent, claimed = item.mark.at - self._since(item, None).at, steps * (item.seconds or 0.0)
        return steps == 1 or not math.isfinite(spent) or claimed / NEAR <= spent <= claimed * NEAR

    def _clocked(self, work: Work) -> IntervalMeans | None:
        """Time between records of one block, over the steps between them."""
        seconds: list[float] = []
        steps: list[int] = []
        names = {mark.name for block in self.blocks for marks in block for mark in marks}
        units = {name: self.unit(name, work) for name in names}
        for block in self.blocks:
            first, last = (_intervals([marks[which] for marks in block], units) for which in (0, -1))
            for count, spent in last if len(last) > len(first) else first:
                steps.append(count)
                seconds.append(round(spent, 3) / count)  # the clock counts milliseconds
        region = WHOLE_BLOCK if self.evaluates_inside else ""
        return IntervalMeans(seconds, steps, CLOCK, region) if seconds else None


def _intervals(marks: Sequence[BlockRecord], units: Mapping[str, int | None]) -> list[tuple[int, float]]:
    """Steps and seconds between marks that count on; of the units that are known."""
    intervals: list[tuple[int, float]] = []
    before: tuple[float, float] | None = None
    for mark in marks:
        unit = units[mark.name]
        if not unit or not math.isfinite(mark.at):
            continue
        count = mark.total / unit
        if before is None:
            before = count, mark.at
        elif count > before[0] and mark.at > before[1] and (count - before[0]).is_integer():
            intervals.append((int(count - before[0]), mark.at - before[1]))
            before = count, mark.at
    return intervals


def _by_name(name: str, counts: Sequence[int], work: Work) -> int | None:
    """The unit by the count's name, and by what divides the counts."""
    tokens, batch = work.tokens, work.batch
    if work.by_tokens and tokens and all(count % tokens == 0 for count in counts):
        return tokens
    if name in ("step", "step_num", "iteration"):
        divided = sum(count % batch == 0 for count in counts) if batch else 0
        samples = batch and any(count >= batch for count in counts) and divided * 2 >= len(counts)
        return batch if samples else 1
    if not batch:
        return None
    if name == "samples_count":
        return batch
    # Epochs of a data set are small numbers; of language models they are samples.
    return batch if max(counts, default=0) >= batch and all(count % batch == 0 for count in counts) else None
