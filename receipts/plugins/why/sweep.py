"""The partition of a device's time: windows of steps, and one owner for each nanosecond in them.

A window reaches from the first activity that was launched in one step to the first that was launched in the next;
windows tile the time. The last step has no end, and no window. Of activities that run together the one of the first
class owns the time (the order of ``classes.toml``), within a class the one that began first, then the lower stream,
then the name, so that the order of events in a file decides nothing. Gaps are laid to what the host did meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import median
from typing import Final, NamedTuple

from receipts.ingest.spans import Activities, SpanTrace, in_order
from receipts.plugins.why.classes import COMPILE, DATA, GAP, LAUNCH, OUTSIDE, QUEUED, SYNC

# A step that is longer than so many medians is set aside, by name; on both sides by the same rule.
LONG: Final = 1.25


class Window(NamedTuple):
    """A step: its number, its begin and end on the device, and why it is set aside (empty: it is kept)."""

    number: int
    begin: int
    end: int
    aside: str


class Owned(NamedTuple):
    """A span with its owner, a row of the activities; of a gap there is none, and ``next`` is what ended it."""

    begin: int
    end: int
    row: int
    next: int


def marks_of(trace: SpanTrace, device: str = "") -> list[tuple[int, int, int]]:
    """The marks of steps in their order; of several with one number (other threads, a nested mark) the first."""
    marks: dict[int, tuple[int, int, int]] = {}
    for mark in sorted(trace.device_marks.get(device) or trace.marks, key=lambda item: (item[1], -item[2], item[0])):
        marks.setdefault(mark[0], mark)
    return sorted(marks.values(), key=lambda item: item[1])


def windows(trace: SpanTrace, work: Activities, *, host: bool, device: str = "") -> list[Window]:
    """The windows of a device; none without marks, or where no activity can be laid to a step."""
    marks = marks_of(trace, device)
    begins = [mark[1] for mark in marks]
    host = host or (trace.tiled and device in trace.device_marks)  # the marks are of the clock of the activities
    starts: list[int | None] = list(begins) if host else [None] * len(marks)
    if not host and begins:
        for begin, launched in zip(work.begin, work.launched, strict=True):
            step = bisect_right(begins, launched) - 1
            if launched >= 0 and step >= 0 and ((known := starts[step]) is None or begin < known):
                starts[step] = begin
        # An activity of a later step that runs ahead begins the earlier windows no later than itself.
        for step in range(len(starts) - 2, -1, -1):
            later = starts[step + 1]
            if later is not None and ((own := starts[step]) is None or own > later):
                starts[step] = later
    compiling = [(begin, end) for kind, begin, end in trace.host if kind == COMPILE]
    spans = [
        (mark, begin, end)
        for mark, begin, end in zip(marks, starts, starts[1:], strict=False)
        if begin is not None and end is not None and end > begin
    ]
    usual = median(end - begin for _, begin, end in spans) if spans else 0

    def aside(mark: tuple[int, int, int], length: int) -> str:
        if any(begin < mark[2] and end > mark[1] for begin, end in compiling):
            return "compiles"
        return "long" if length > LONG * usual else ""

    return [Window(mark[0], begin, end, aside(mark, end - begin)) for mark, begin, end in spans]


def owners(work: Activities, ranks: Sequence[int], names: Sequence[str]) -> Iterator[Owned]:
    """The owner of every nanosecond from the first activity on. ``ranks`` say the order of the rows' classes."""
    begin, end, lane, name = work.begin, work.end, work.lane, work.name

    def tie(row: int) -> tuple[int, int, str]:
        return end[row], lane[row], names[name[row]]

    now: int | None = None
    active: list[tuple[int, int, int, str, int, int]] = []
    for row in in_order(begin, tie):
        start = begin[row]
        now = start if now is None else now
        while active and now < start:
            last = active[0]
            if last[4] <= now:
                heappop(active)
                continue
            until = min(last[4], start)
            yield Owned(now, until, last[5], -1)
            now = until
        if now < start:
            yield Owned(now, start, -1, row)
            now = start
        if end[row] > start:
            heappush(active, (ranks[row], start, lane[row], names[name[row]], end[row], row))
    while active and now is not None:
        last = heappop(active)
        if last[4] > now:
            yield Owned(now, last[4], last[5], -1)
            now = last[4]


def union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that do not touch, over the same time; ``spans`` come by their begin."""
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > begin:
            joined.append((begin, end))
    return joined


@dataclass(frozen=True, slots=True)
class HostTimes:
    """When the host compiled, waited for data, and was held by a call that waits for the device."""

    compiling: list[tuple[int, int]]
    data: list[tuple[int, int]]
    syncs: list[tuple[int, int]]  # end, begin

    @classmethod
    def of(cls, trace: SpanTrace) -> HostTimes:
        """Those of a trace."""

        def spans(kind: str) -> list[tuple[int, int]]:
            return [(begin, end) for name, begin, end in trace.host if name == kind]

        return cls(
            union(sorted(spans(COMPILE))),
            union(sorted(spans(DATA))),
            sorted((end, begin) for begin, end in spans(SYNC)),
        )

    def causes(self, begin: int, end: int, launched: int) -> Iterator[tuple[int, int, str]]:
        """A gap in parts, each with its cause. ``launched`` is when the host launched what ended it; -1: unknown."""
        if launched < 0:
            yield begin, end, GAP
            return
        late = min(max(launched, begin), end)
        at = bisect_left(self.syncs, (begin,))
        held = False
        while at < len(self.syncs) and self.syncs[at][0] <= late and not held:
            held, at = self.syncs[at][1] <= begin, at + 1
        rest = SYNC if held else LAUNCH
        for start, stop, compiles in _within(self.compiling, begin, late):
            if compiles:
                yield start, stop, COMPILE
                continue
            for left, right, waits in _within(self.data, start, stop):
                yield left, right, DATA if waits else rest
        if late < end:
            yield late, end, QUEUED


def _within(spans: list[tuple[int, int]], begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The time between two moments in parts: whether it lies within the spans."""
    at = max(0, bisect_right(spans, (begin,)) - 1)
    now = begin
    while now < end:
        if at >= len(spans) or spans[at][0] >= end:
            yield now, end, False
            return
        start, stop = spans[at]
        if stop <= now:
            at += 1
        elif start > now:
            yield now, start, False
            now = start
        else:
            yield now, min(stop, end), True
            now = min(stop, end)


def partition(
    trace: SpanTrace, work: Activities, ranks: Sequence[int], steps: Sequence[Window], *, host: bool
) -> Iterator[tuple[int, int, int, str]]:
    """Each window in spans: its place in ``steps``, the length, and the row that owns it, or -1 and the cause of a gap.

    The spans of a window add up to it, to the nanosecond.
    """
    if not (steps and len(work)):
        return
    times = HostTimes.of(trace)
    rest = OUTSIDE if host else GAP

    def parts() -> Iterator[tuple[int, int, int, str]]:
        last = min(work.begin)
        yield steps[0].begin, last, -1, rest
        for begin, end, row, following in owners(work, ranks, trace.names.texts):
            last = end
            if row >= 0 or host:
                yield begin, end, row, "" if row >= 0 else OUTSIDE
            else:
                for left, right, cause in times.causes(begin, end, work.launched[following]):
                    yield left, right, -1, cause
        yield last, steps[-1].end, -1, rest

    at = 0
    for begin, end, row, cause in parts():
        while at < len(steps) and steps[at].end <= begin:
            at += 1
        for place in range(at, len(steps)):
            step = steps[place]
            if step.begin >= end:
                break
            if (length := min(end, step.end) - max(begin, step.begin)) > 0:
                yield place, length, row, cause
