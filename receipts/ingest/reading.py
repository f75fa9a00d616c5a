"""What one reader found in one file: values in SI units, each with the line that shows it.

A reading holds what the file *says*. Whether two files agree, and what follows for a receipt, is decided when the
receipt is put together; whether what was seen is what was meant is the rules' question. `Peaks` keeps the memory that a
loop prints again and again: for each chip the largest peaks, and what was last in use. `Tally` counts by name what a
hostile file cannot fill.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from receipts.emit.launch_values import text_of
from receipts.ingest.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from receipts.ingest.arguments import Launch


Level = Literal["intent", "backend", "kernels"]
Reason = Literal["compile", "warmup", "profile", "impossible", "stall", "eval", "checkpoint", "skipped"]
MAX_REMARKS = 200
MAX_TIMERS = 1000
MAX_ROWS = 100_000
MAX_TEXT = 400
MAX_VALUES = 4
MAX_RESOLVED = 2000
LOST = 0.02  # a log of single steps may lose a line
TRANSFERS = "path.witnessed.host_transfers_per_step"
# A function that is run uncompiled, where its name is not said.
UNNAMED_FUNCTION = "torch.compile:recompile_limit"
# The source of the reading of progress bars.
BAR = "progress-bar"
# A cause that ends in a line of the program.
LINE = re.compile(r":\d+\)?$")


def alike(cause: str) -> str:
    """A cause without its numbers: shapes that change at every step are one cause."""
    return re.sub(r"\d+", "#", cause)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is: a line (from 1), or a record of a file that has no lines (`traceEvents[17]`)."""

    line: int = 0
    record: str = ""

    def __str__(self) -> str:
        return self.record or (f"line {self.line}" if self.line else "")


@dataclass(frozen=True, slots=True)
class StatedValue:
    """The value of a receipt's leaf, with the words it was printed in."""

    value: Any
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation of the path: ``leaf`` of `path.witnessed` (attention, gemm, …), and what it was.

    ``level`` says how much it proves: an argument is intent, a backend's own line is backend, a kernel, an optimised
    program's instruction or a counter of executed operators is kernels. ``count`` is how often it was seen.
    """

    leaf: str
    value: str
    level: Level
    place: Place
    count: int = 1
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """Memory of one chip as one line tells it, in bytes; ``chip`` is the runtime's ordinal, None where unnamed.

    ``phase`` is a phase of the receipt's `memory.chips`, None where the line does not show it.
    """

    place: Place
    chip: int | None = None
    phase: str | None = None
    step: int | None = None
    bytes_used: int | None = None
    bytes_limit: int | None = None
    peak_bytes: int | None = None
    peak_reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """A timer of a report: how often it was taken, and the seconds it adds up to (None where not printed)."""

    samples: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class AllocationFailure:
    """One failed allocation (or what looks like one): the leaves of the receipt's `failure`, bytes and words.

    ``is_oom`` is None where the text may come from memory or from another error (a library that cannot make its
    handle). ``fatal`` is False where the text itself says that the run went on.
    """

    place: Place
    is_oom: bool | None
    class_: str
    phase: str = "unknown"
    requested_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    limit_bytes: int | None = None
    operator: str | None = None
    message: str = ""
    chip: int | None = None
    rank: int | None = None
    step: int | None = None
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person should know about the file: `missing`, `contradiction`, `broken` input, or a `note`."""

    kind: Literal["missing", "contradiction", "broken", "note"]
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class CompileSpan:
    """Compiles in a stretch of a run: after ``after`` steps had ended, and before ``before`` had (None: not shown).

    ``why`` is the cause in the words of the file.
    """

    count: int
    after: int = 0
    before: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of a process so far, when ``steps`` steps had ended; ``programs`` are executed in a step.

    ``reads`` are reads of tensors by the host; None where the report does not show them.
    """

    steps: int
    compiles: int
    reads: int | None = None
    programs: int = 1


@dataclass(slots=True)
class CompileEvent:
    """One compile, and why; empty where the file does not say."""

    why: str = ""


@dataclass(slots=True)
class CompileCounts:
    """What compiling did and cost; None is unknown, zero is a statement of the file.

    ``compiles`` are real compilations by a backend: a persistent-cache hit is none. ``spans`` place them among the
    ``steps`` that the file shows (None: it shows none); those after the last step are in no span. ``after_warmup`` is
    what the file itself counts after a warm-up of its own: where that ends, `receipts.ingest.warmup` decides.

    ``unplaced`` are compiles of a file that shows no steps, ``versions`` the most programs it shows of one function.
    """

    compiles: int | None = None
    spans: list[CompileSpan] | None = None
    steps: int | None = None
    after_warmup: int | None = None
    cache_hits: int | None = None
    cache_misses: int | None = None
    graph_breaks: int | None = None
    seconds: float | None = None
    program_digest: str | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    temp_bytes: int | None = None
    unplaced: list[CompileEvent] = field(default_factory=list)
    versions: int | None = None


class IntervalMeans(NamedTuple):
    """Means over intervals of steps, in seconds a step, and how many each is over; the timer, and what it times.

    A log prints them that times every n-th step, or a block. A mean is no step.
    """

    seconds: list[float]
    steps: list[int]
    timer: str
    region: str = ""

    @property
    def single(self) -> bool:
        """Whether each is the time of one step, lost lines aside."""
        return sum(count != 1 for count in self.steps) <= LOST * len(self.steps)


@dataclass(slots=True)
class Reading:
    """All that one reader found in one file. Readers fill it; nobody changes it afterwards.

    ``numbered`` are the steps of its records in order, and ``lines`` the lines that they stand on; both are empty where
    the file was not read as it lies.
    ``predicted`` are the bytes of one chip that a program expected to need, by surface in its own words: no measure.
    ``others`` are values of stated leaves that differ from the first, `MAX_VALUES` in all.
    ``causes`` say by leaf why it has its value, each with how often the file says so. ``means`` are times over
    intervals of steps, ``ended`` that the run says that it has. ``between`` is when its first and
    last event began, in seconds since 1970, ``lasts`` the seconds from first to last where no clock says when,
    ``queries`` are shapes of attention, sequence and width of a head, in ``query_types``, and ``host`` is the machine's
    name. ``launch`` is the line that started it, ``resolved`` are settings as the program itself printed them.
    ``marks``: the steps that it covers are ends of programs that were marked, of which a step may have several.
    ``extracts`` are what plugins make of the file and the store keeps, by their names.
    """

    source: str
    version: str | None = None
    records: int = 0
    steps: Steps = field(default_factory=Steps)
    numbered: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    stated: dict[str, StatedValue] = field(default_factory=dict)
    others: dict[str, list[StatedValue]] = field(default_factory=dict)
    not_steady: dict[int, Reason] = field(default_factory=dict)
    diverged: bool | None = None
    memory: list[MemoryRow] = field(default_factory=list)
    memory_unavailable: str | None = None
    predicted: dict[str, int] = field(default_factory=dict)
    compile: CompileCounts = field(default_factory=CompileCounts)
    counters: dict[str, int] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    seen: list[Observation] = field(default_factory=list)
    fallbacks: dict[str, int] | None = None
    host_transfers: int | None = None
    steps_covered: int | None = None
    marks: bool = False
    reports: list[Report] = field(default_factory=list)
    complete: bool = False
    ended: bool = False
    means: IntervalMeans | None = None
    between: tuple[float, float] | None = None
    lasts: float | None = None
    queries: set[tuple[int, int]] = field(default_factory=set)
    query_types: set[str] = field(default_factory=set)
    host: str = ""
    processes: set[int] = field(default_factory=set)
    causes: dict[str, dict[str, int]] = field(default_factory=dict)
    launch: Launch | None = None
    resolved: dict[str, str] = field(default_factory=dict)
    failures: list[AllocationFailure] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    extracts: dict[str, bytes] = field(default_factory=dict)

    @property
    def trains(self) -> bool:
        """Whether it holds records of training, be they with or without the numbers of their steps."""
        return len(self.steps) > 0 or self.diverged is not None

    def state(self, path: str, value: Any, text: str = "", line: int = 0, record: str = "") -> None:
        """State a leaf of the receipt; of a million values that differ a few are kept."""
        stated = StatedValue(value, (text or str(value))[:MAX_TEXT], Place(line, record))
        first = self.stated.setdefault(path, stated)
        if first.value != value:
            others = self.others.setdefault(path, [])
            if len(others) < MAX_VALUES - 1 and all(other.value != value for other in others):
                others.append(stated)

    def resolve(self, settings: Mapping[str, Any]) -> None:
        """Keep settings that a program printed of itself, by their dotted keys; one in pairs has its line behind it."""
        for name, value in settings.items():
            printed = value[0] if isinstance(value, tuple) else value
            # What is nested further may be endless when it is written out.
            items = printed if type(printed) is list else [printed]
            if not all(isinstance(item, str | int | float | None) for item in items):
                continue
            text = text_of(printed).strip()
            if len(self.resolved) < MAX_RESOLVED and 0 < len(name) <= 200 and len(text) <= MAX_TEXT:
                self.resolved.setdefault(name, text)

    def see(
        self, leaf: str, value: str, level: Level, line: int = 0, *, rank: int | None = None, count: int = 1
    ) -> None:
        """Note an observation of the path; the same one on the same rank is counted, with its first place."""
        for at, seen in enumerate(self.seen):
            if (seen.leaf, seen.value, seen.level, seen.rank) == (leaf, value, level, rank):
                self.seen[at] = Observation(leaf, value, level, seen.place, seen.count + count, rank)
                return
        self.seen.append(Observation(leaf, value, level, Place(line), count, rank))

    def count(self, name: str, more: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + more

    def fall_back(self, name: str, times: int) -> None:
        """Count an operator that left the path."""
        self.fallbacks = self.fallbacks or {}
        self.fallbacks[name] = self.fallbacks.get(name, 0) + times

    def time(self, name: str, seconds: float | None, samples: int = 1) -> None:
        """Add seconds to a timer, unless there are `MAX_TIMERS`; None is no time."""
        if seconds is not None and (name in self.timings or len(self.timings) < MAX_TIMERS):
            earlier = self.timings.get(name, Timing(0, 0.0))
            self.timings[name] = Timing(earlier.samples + samples, (earlier.seconds or 0.0) + seconds)

    def remember(self, row: MemoryRow) -> None:
        """Keep a row of memory, unless there are `MAX_ROWS`."""
        self.records += 1
        if len(self.memory) < MAX_ROWS:
            self.memory.append(row)

    def blame(self, leaf: str, cause: str, count: int = 1) -> None:
        """Note why a leaf has its value: the argument that changed, the operator, the line. An empty cause is none."""
        known = self.causes.setdefault(leaf, {}) if cause else {}
        if cause in known or len(known) < MAX_REMARKS:
            known[cause] = known.get(cause, 0) + count

    def remark(self, kind: Literal["missing", "contradiction", "broken", "note"], text: str, line: int = 0) -> None:
        """Say something about the file, once; a flood of remarks is cut at `MAX_REMARKS`."""
        if len(self.remarks) < MAX_REMARKS and not any(remark.text == text for remark in self.remarks):
            self.remarks.append(Remark(kind, text, Place(line)))


def first_cause(failures: Iterable[AllocationFailure]) -> AllocationFailure | None:
    """The failure that started it: of many ranks' and of what follows from it, the first one that ended the run.

    One that is certain goes before one that may be something else, one that ended the run before one that did not.
    """
    order = {True: 0, None: 1, False: 2}
    return min(failures, key=lambda item: (order[item.is_oom], not item.fatal, item.place.line), default=None)


_MAX_PEAK: Final = 1e18


class Peaks:
    """One row of a reading for each chip, with the line and the step of what grew last."""

    def __init__(self, reading: Reading, phase: str | None = "steady") -> None:
        self._reading = reading
        self._phase = phase
        self._rows: dict[int | None, int] = {}

    def keep(
        self, name: str, size: float, line: int, step: int | None = None, chip: int | None = None, *, last: bool = False
    ) -> None:
        """Keep bytes of one figure, if it is larger than before; with ``last`` whatever it was."""
        memory = self._reading.memory
        if not 0 < size < _MAX_PEAK or (chip not in self._rows and len(memory) >= MAX_ROWS):
            return
        at = self._rows.setdefault(chip, len(memory))
        if at == len(memory):
            memory.append(MemoryRow(Place(line), chip, self._phase, step))
        changed: dict[str, Any] = {name: round(size)}
        if not last and size > (getattr(memory[at], name) or 0):
            changed |= {"place": Place(line), "step": memory[at].step if step is None else step}
        elif not last:
            return
        memory[at] = replace(memory[at], **changed)


def of_each_chip(chips: Sequence[int | None], sizes: Sequence[float], *, last: bool) -> dict[int | None, int]:
    """The place of each chip's first largest size, or with ``last`` of its last one above zero."""
    places: dict[int | None, int] = {}
    for at, (chip, size) in enumerate(zip(chips, sizes, strict=True)):
        if chip not in places or (size > 0 if last else size > sizes[places[chip]]):
            places[chip] = at
    return places


K = TypeVar("K", bound=Hashable)


class Tally(Counter[K]):
    """Of more than ``most`` names the others count as ``rest``, where that is given. ``first`` is by name."""

    def __init__(self, most: int = 10_000, rest: K | None = None) -> None:
        super().__init__()
        self.first: dict[K, int] = {}
        self._most, self._rest = most, rest

    def add(self, name: K, at: int = 0, times: int = 1) -> int:
        """Count a name, and give its count from now on; 0 where there is no room for another name."""
        if name not in self and len(self) >= self._most:
            if self._rest is None:
                return 0
            name = self._rest
        self[name] += times
        self.first.setdefault(name, at)
        return self[name]
