"""The steps of one launch, out of every file that prints them: ranks side by side, attempts one after the other.

`state_walls` gives their wall time by the clock of a log's lines: what lies between two records is paid for, too.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from math import floor, log10
from statistics import median
from typing import Any, Final

from receipts.ingest.clock import DAY_SECONDS, first_stamp, lead, seconds_on, stamp
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Reading, Reason
from receipts.ingest.resolve import readings
from receipts.ingest.source import Source
from receipts.ingest.step_map import MAPPED
from receipts.ingest.steps import ABSENT, FIELDS, Steps
from receipts.stats.rounding import half_of

# Ranks of one launch start together; attempts and other launches do not.
TOGETHER_SECONDS: Final = 180.0
# Ranks print a step within about its time; clocks of hosts differ, and a process needs longer to begin anew.
_SAME_MOMENT: Final = 10.0
_STEPS_APART: Final = 1.5
_CLOCKED_STEPS: Final = 3
_SAME_STEPS: Final = 0.5
_TIMES_AGREE: Final = 0.05
_LOSS_AGREES: Final = 0.02
_MAX_RUNS: Final = 5  # in one file: more often epochs count their steps anew, or ranks are mixed


@dataclass(frozen=True)
class Track:
    """The steps of one source in one file."""

    file: FileEvidence
    reading: Reading

    @cached_property
    def started(self) -> datetime | None:
        """The first time that the file prints."""
        stamp = first_stamp(self.file)
        return stamp.time if stamp else None

    @property
    def where(self) -> Where:
        """The file, for people."""
        return Where(self.file.name)

    def clocks(self, steps: Sequence[int]) -> dict[int, tuple[str, float]]:
        """The clocks that begin the lines of some steps, by step, with their kinds."""
        own = self.reading
        wanted = {line: step for step, line in zip(own.numbered, own.lines, strict=False) if step in steps}
        clocks: dict[int, tuple[str, float]] = {}
        last = max(wanted, default=0)
        for number, text in Source(self.file.path, self.file.name).lines():
            if number > last:
                break
            clock = seconds_on(text, american=own.source == "nanotron") if number in wanted else None
            if clock is not None:
                clocks[wanted[number]] = clock
        return clocks


@dataclass
class StepSeries:
    """Steps in order with their figures. ``interval`` is how many steps a record averages over, None
    for one step, 0 where that is not known.

    ``stride`` is the distance of the records. ``outrun`` names the files of earlier attempts. ``beside`` are steps of
    another source that prints losses, where this one prints none.
    """

    track: Track
    numbers: list[int]
    columns: dict[str, array[float]]
    not_steady: dict[int, Reason] = field(default_factory=dict)
    skews: list[float] = field(default_factory=list)
    stride: int = 1
    interval: int | None = None
    outrun: frozenset[str] = frozenset()
    beside: StepSeries | None = None

    @property
    def averaged(self) -> bool:
        """Whether each record is a mean over several steps; their number may not be known (0)."""
        return self.interval is not None and self.interval != 1

    @property
    def where(self) -> Where:
        """The file that prints them, for people."""
        return self.track.where

    def column(self, name: str) -> list[float | None]:
        """One figure of every step."""
        return [None if value == ABSENT else value for value in self.columns[name]]

    def half(self, value: float) -> float:
        """How far a printed figure may be from the true one: half its last digit."""
        digits = self.track.reading.steps.digits
        return half_of(value) if digits is None or value <= 0 else 0.5 * 10.0 ** (floor(log10(value)) - digits + 1)

    def at(self, name: str, row: int) -> float | None:
        """One figure of one step, by its place in the order."""
        value = self.columns[name][row]
        return None if value == ABSENT else value

    def known(self, name: str, rows: Iterable[int] | None = None) -> list[float]:
        """One figure of the steps that have it: of all, or of those at some places in the order."""
        column = self.columns[name]
        values = column if rows is None else map(column.__getitem__, rows)
        return [value for value in values if value != ABSENT]


def series(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> StepSeries | None:
    """The steps of the launch, or None where no file prints any. Says what was lost and what does not agree."""
    tracks = [Track(file, reading) for file, reading in readings(files) if len(reading.steps)]
    if not tracks:
        return None

    def worth(track: Track) -> tuple[bool, bool, bool, int]:
        """A person's map before all, step times before rates, then the number of steps."""
        steps = track.reading.steps
        timed = any(value is not None for value in steps.column("step_seconds"))
        rated = any(value is not None for value in steps.column("tokens_per_second_per_chip"))
        return track.reading.source == MAPPED, timed, rated, len(steps)

    source = max(tracks, key=worth).reading.source
    chosen = [track for track in tracks if track.reading.source == source]
    result = _several(draft, chosen) if len(chosen) > 1 else _ranks(draft, chosen)
    for track in chosen:
        steps = track.reading.steps
        if steps.restarts:
            times = "once" if steps.restarts == 1 else f"{steps.restarts} times"
            anew = bool(steps.begun) and min(steps.begun) <= steps.numbers()[0]
            if anew and steps.restarts <= _MAX_RUNS and len(steps) > 1:
                begins = f"{track.file.name} begins at step {min(steps.begun)} more than once"
                what = f"{begins}: two runs, or one that began anew"
                draft.contradict("run.launch", what, "the last record of each step")
            text = f"the step numbers go back {times}; of repeated steps the last record stands"
            draft.tell("note", text, track.where)
        if steps.lost:
            text = f"{steps.lost:,} steps beyond what is kept in memory were counted and not read"
            draft.tell("note", text, track.where)
    for track in tracks:
        if track.reading.source != source:
            _compare(draft, result, track)
            if result.beside is None and not result.known("loss") and any(track.reading.steps.column("loss")):
                result.beside = _one(track, track.reading.steps, {})
    return result


def _one(track: Track, steps: Steps, not_steady: Mapping[int, Reason]) -> StepSeries:
    numbers = steps.numbers()
    # Figures without an object each: there may be hundreds of thousands of them.
    columns = {name: array("d", (ABSENT if x is None else x for x in steps.column(name))) for name in FIELDS}
    skews = [skew for number in numbers if (skew := steps.skew(number)) is not None]
    own = track.reading.steps
    gaps = Counter(b - a for a, b in pairwise(own.numbers()))
    stride = max(gaps, key=lambda gap: (gaps[gap], gap)) if gaps else 1
    return StepSeries(track, numbers, columns, dict(not_steady), skews, stride, own.interval)


def _several(draft: ReceiptDraft, tracks: list[Track]) -> StepSeries:
    """Several files of one source: ranks of one attempt are merged by step, attempts replace one another."""
    attempts: list[list[Track]] = []
    for track in sorted(tracks, key=_begun):
        group = next((group for group in attempts if _beside(group[0], track)), None)
        if group is None:
            attempts.append([track])
        else:
            group.append(track)
    merged = [_ranks(draft, group) for group in attempts]
    if len(merged) > 1:
        parts: list[dict[str, Any]] = []
        for attempt in merged:
            # Its first step, and what its file says that ran.
            stated = [item for reading in attempt.track.file.readings for item in reading.stated.items()]
            configured: dict[str, Any] = {}
            for path, claim in stated:
                if path.startswith(("wheels.", "code.", "flags.")) and isinstance(claim.value, str | int | float):
                    configured.setdefault(path, claim.value)
            part = {"start_step": attempt.numbers[0], "launch": attempt.track.file.name}
            parts.append(part | ({"ran": configured} if configured else {}))
        draft.put("run.parts", parts, Where(merged[0].track.file.name), "steps")
    whole = merged[0]
    for later in merged[1:]:
        whole = _after(draft, whole, later)
    whole.outrun = frozenset(track.file.name for group in attempts[:-1] for track in group)
    return whole


def _begun(track: Track) -> tuple[bool, float]:
    """What orders attempts: the first time that a file prints, else the clock of its first step."""
    if track.started is not None:
        return True, track.started.timestamp()
    clocks = track.clocks(track.reading.steps.numbers()[:1])
    return bool(clocks), next((seconds for _, seconds in clocks.values()), 0.0)


def _beside(a: Track, b: Track) -> bool:
    """Whether two files are ranks of one attempt: they print the same steps, and each of them at the same time.

    Without a clock on their lines they start together, and their losses are near each other.
    """
    first, second = set(a.reading.steps), set(b.reading.steps)
    common = sorted(first & second)
    if len(common) < _SAME_STEPS * min(len(first), len(second)):
        return False
    apart = _apart(a, b, common[:_CLOCKED_STEPS])
    if apart is not None:
        times = [seconds for track in (a, b) for seconds in track.reading.steps.column("step_seconds") if seconds]
        return apart <= max(_SAME_MOMENT, _STEPS_APART * median(times) if times else 0.0)
    if a.started and b.started and abs((a.started - b.started).total_seconds()) > TOGETHER_SECONDS:
        return False
    # Whether most losses of the same steps differ: every rank prints the loss of all, or its own near it.
    pairs = [(a.reading.steps.get(step, "loss"), b.reading.steps.get(step, "loss")) for step in common[:200]]
    known = [(x, y) for x, y in pairs if x is not None and y is not None and x == x and y == y]
    differ = sum(abs(x - y) > _LOSS_AGREES * max(abs(x), abs(y)) for x, y in known)
    return not known or differ <= len(known) / 2


def _apart(a: Track, b: Track, steps: Sequence[int]) -> float | None:
    """How many seconds apart two files print the same steps, by the clocks that begin their lines; None without."""
    one, other = a.clocks(steps), b.clocks(steps)
    gaps = []
    for step in one.keys() & other.keys():
        (kind, first), (same, second) = one[step], other[step]
        if kind == same:
            gap = abs(first - second)
            gaps.append(min(gap, DAY_SECONDS - gap) if kind == "dayless" else gap)
    return median(gaps) if gaps else None


def _ranks(draft: ReceiptDraft, tracks: list[Track]) -> StepSeries:
    """Ranks of one attempt: the slowest one's time and rates stand, other figures are the first file's."""
    if len(tracks) == 1:
        return _one(tracks[0], tracks[0].reading.steps, tracks[0].reading.not_steady)
    merged, flagged = Steps(), dict[int, Reason]()
    for rank, track in reversed(list(enumerate(tracks))):
        steps = track.reading.steps
        for number in steps.numbers():
            merged.put(number, {name: steps.get(number, name) for name in FIELDS}, rank)
        flagged |= track.reading.not_steady
    names = ", ".join(track.file.name for track in tracks[:4])
    draft.tell("note", f"{len(tracks)} files print the same steps and are read as ranks: {names}")
    return _one(tracks[0], merged, flagged)


def _after(draft: ReceiptDraft, earlier: StepSeries, later: StepSeries) -> StepSeries:
    """A later attempt: from its first step on, its records stand."""
    first = later.numbers[0]
    kept = sum(number < first for number in earlier.numbers)
    lost = len(earlier.numbers) - kept
    before, after = earlier.track.file.name, later.track.file.name
    if kept == 0:
        apart = _apart(earlier.track, later.track, sorted({*earlier.numbers} & {*later.numbers})[:_CLOCKED_STEPS])
        how = f"{apart:,.0f} s apart" if apart is not None else "at other times or with other losses"
        draft.contradict(
            "run.launch",
            f"{before} and {after} both begin at step {first}, {how}: two launches, or one that began anew "
            f"and lost {lost:,} step{'s' * (lost > 1)}",
            f"the steps of {after}",
        )
    elif lost:
        draft.tell("note", f"{after} goes on from step {first}: {lost} later steps of {before} were lost and left out")
    columns = {name: earlier.columns[name][:kept] + later.columns[name] for name in FIELDS}
    flagged = {number: why for number, why in earlier.not_steady.items() if number < first} | later.not_steady
    numbers = [*earlier.numbers[:kept], *later.numbers]
    return StepSeries(
        later.track, numbers, columns, flagged, [*earlier.skews, *later.skews], later.stride, later.interval
    )


def _compare(draft: ReceiptDraft, main: StepSeries, other: Track) -> None:
    """Say where another source prints other step times or losses for the same steps."""
    mine: Mapping[int, int] = {number: row for row, number in enumerate(main.numbers)}
    for name, word, tolerance in (("step_seconds", "step times", _TIMES_AGREE), ("loss", "losses", _LOSS_AGREES)):
        ratios = []
        for number in other.reading.steps:
            row = mine.get(number)
            a = main.at(name, row) if row is not None else None
            b = other.reading.steps.get(number, name)
            if a is not None and b is not None and a > 0 and b > 0:
                ratios.append(b / a)
        if ratios and abs(median(ratios) - 1) > tolerance:
            path = "measurement.step_durations_seconds" if name == "step_seconds" else "measurement.loss"
            what = (
                f"{word} of {other.file.name} by {other.reading.source} are {median(ratios):.3g} times those "
                f"of {main.track.file.name} by {main.track.reading.source}"
            )
            draft.contradict(path, what, f"those by {main.track.reading.source}")


WALLS: Final = "measurement.step_wall_seconds"
# A clock that counts seconds tells the time of ten steps badly, and that of an hour well enough.
_FINE_CLOCK: Final = 0.002
_MAX_APART: Final = 0.5  # of the steps: other work between them
_MIN_PACED, _PACED_SECONDS = 5, 10.0  # lines, and seconds between the first and the last, that show a pace
_MAX_SHORTER: Final = 0.02  # than the steps, at most: the record of a step is printed a little after its end
# What is no step's: a line that says so stands between two records.
_BETWEEN_STEPS: Final = re.compile(
    r"\b(?:valid(?:at\w+)?|eval\w*|sav(?:ed?|ing)|(?:check|ck)p\w*|profil\w*|trac(?:es?|ing))\b", re.I
)


def state_walls(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int], durations: Sequence[float]) -> None:
    """State the wall time of the steps at ``rows``, where the line of each has a clock that is fine enough for all."""
    reading, numbers = steps.track.reading, [steps.numbers[row] for row in rows]
    places = dict(zip(reading.numbered, reading.lines, strict=True))
    lines = [places.get(number, 0) for number in numbers]
    if len(lines) < 2 or not all(before < after for before, after in pairwise([0, *lines])):
        return
    read = _clocked(steps.track.file, lines, american=reading.source == "nanotron")
    if read is None:
        return
    times, apart = read
    if len(apart) > _MAX_APART * len(times):
        apart = {}  # what a program does before most of its steps is a part of them
    walls = [durations[0]]
    for at in range(1, len(times)):
        whole = numbers[at] - numbers[at - 1] == 1 and at not in apart
        walls.append(round((times[at] - times[at - 1]).total_seconds(), 6) if whole else durations[at])
    span = (times[-1] - times[0]).total_seconds()
    resolution = 1.0 if not any(time.microsecond for time in times) else 0.001
    if min(walls) < 0.0 or resolution > _FINE_CLOCK * span or sum(walls) < (1.0 - _MAX_SHORTER) * sum(durations):
        return
    draft.put(WALLS, walls, steps.where, reading.source, f"{len(walls):,} steps by the clock of their lines")


def paced(steps: StepSeries, rows: Sequence[int]) -> tuple[float, float] | None:
    """The median and the mean seconds a step by the clock of the lines at ``rows``; None where too few have one.

    Output that was buffered is printed in bursts, of which the mean knows nothing.
    """
    places = dict(zip(steps.track.reading.numbered, steps.track.reading.lines, strict=True))
    shown = [(places[number], number) for row in rows if (number := steps.numbers[row]) in places]
    lines = [line for line, _ in shown]
    if len(lines) < _MIN_PACED or any(before >= after for before, after in pairwise(lines)):
        return None
    read = _clocked(steps.track.file, lines, american=steps.track.reading.source == "nanotron")
    if read is None or (read[0][-1] - read[0][0]).total_seconds() < _PACED_SECONDS:
        return None
    each = [
        (time - before).total_seconds() / (number - last)
        for (before, time), (last, number) in zip(pairwise(read[0]), pairwise(n for _, n in shown), strict=True)
        if number > last
    ]
    whole = (read[0][-1] - read[0][0]).total_seconds() / max(1, shown[-1][1] - shown[0][1])
    return (median(each), whole) if each else None


def _clocked(
    file: FileEvidence, wanted: Sequence[int], *, american: bool
) -> tuple[list[datetime], Mapping[int, str]] | None:
    """The time of each wanted line, and before which of them something else was done; None where one has no time."""
    times: list[datetime] = []
    apart: dict[int, str] = {}
    for number, text in Source(file.path, file.name).lines():
        if number == wanted[len(times)]:
            moment = stamp(lead(text), american=american)
            if moment is None:
                return None
            times.append(moment.time)
            if len(times) == len(wanted):
                return times, apart
        elif times and _BETWEEN_STEPS.search(text):
            apart[len(times)] = text
    return None
