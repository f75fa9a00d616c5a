"""Published results: logs of MLPerf Training to receipts, and submissions side by side.

A results repository holds ``SUBMITTER/results/SYSTEM/BENCHMARK/result_N.txt`` (mlcommons/training_policies,
submission rules). Any folder of a repository will do: what is above it in the path still says whose results they are.
A log that was submitted twice is one launch, by the records that it holds: under another system's name only those
differ that name the submission.

A submission is what shares one context: a system and a benchmark of one round. Its launches differ in their seeds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, Final

from receipts.axes.difference import Difference, difference_under
from receipts.axes.lane import Lane
from receipts.axes.replicates import distinct_steps
from receipts.base.errors import Problem, UsageError
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Contradiction, Options
from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.source import BROKEN, Source
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.stats import effect as effects
from receipts.stats.equivalence import Effect

MARK: Final = b":::MLLOG"
# Power meters write records of the same form; a launch initializes, or names its benchmark.
_LAUNCH: Final = (b'"init_start"', b'"run_start"', b'"submission_benchmark"')
_NAMES: Final = (".txt", ".log", ".out", ".txt.gz", ".log.gz", ".txt.xz", ".txt.bz2")
_PASSED_BY: Final = frozenset({".git", "power", "systems", "benchmarks", "documentation"})
_ROUND: Final = re.compile(r"(?:training_results_|mlperf[-_]training[-_]|^)v(\d{1,2}\.\d)(?:$|[-_.])")
MAX_HEAD: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class LogPath:
    """One log; submitter, system, benchmark and round are empty if the path does not say them."""

    path: Path
    name: str
    submitter: str = ""
    system: str = ""
    benchmark: str = ""
    round: str = ""

    @property
    def description(self) -> Path | None:
        """The system's description beside the results; None if there is none."""
        for above in self.path.parents[2:5]:
            file = above / "systems" / f"{self.system}.json"
            if self.system and file.is_file():
                return file
        return None

    @property
    def context(self) -> str:
        """The submission that the launch belongs to: what neither of its launches states is equal in both."""
        whole = "-".join(filter(None, ("mlperf-training", self.round)))
        return "/".join(filter(None, (whole, self.submitter, self.system, self.benchmark)))


def find_logs(
    root: Path, submitter: str = "*", system: str = "*", benchmark: str = "*", round_: str = ""
) -> list[LogPath]:
    """Every launch's log below a folder, or the one file, whose place fits the patterns, in the order of their paths.

    Raises UsageError if there is no such folder, or no log of MLPerf in it.
    """
    if not root.exists():
        raise UsageError(f"{root}: there is no such folder; name a results repository, or a folder of it")
    files = [root] if root.is_file() else []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in _PASSED_BY]
        files += (Path(folder) / name for name in names if name.lower().endswith(_NAMES))
    places = [_log_place(path, root, round_) for path in sorted(files) if _is_log(path)]
    if not places:
        raise UsageError(f"{root}: no file holds {MARK.decode()} records of a launch; name a results repository")
    kept = [
        place
        for place in places
        if fnmatchcase(place.submitter.lower(), submitter.lower())
        and fnmatchcase(place.system.lower(), system.lower())
        and fnmatchcase(place.benchmark.lower(), benchmark.lower())
    ]
    if not kept:
        listed = ", ".join(sorted({place.context for place in places})[:4])
        raise UsageError(f"{root}: none of {len(places)} logs fits; there are {listed}")
    return kept


def _is_log(path: Path) -> bool:
    try:
        with Source(path, path.name).open() as stream:
            head = stream.read(MAX_HEAD)
    except (*BROKEN, UsageError):
        return False
    return MARK in head and any(word in head for word in _LAUNCH)


def _log_place(path: Path, root: Path, round_: str) -> LogPath:
    parts = path.absolute().parts
    name = path.relative_to(root).as_posix() if path != root else path.name
    at = next((i for i in range(len(parts) - 4, -1, -1) if parts[i] == "results"), None)
    stated = next((f"v{match[1]}" for part in reversed(parts) if (match := _ROUND.search(part))), "")
    if at is None or at == 0:
        return LogPath(path, name, round=round_ or stated)
    return LogPath(path, name, parts[at - 1], parts[at + 1], parts[at + 2], round_ or stated)


LANE: Final = "mlperf-closed"
SOURCE: Final = "mlperf-place"
_NAMES_SUBMISSION: Final = b'"submission_'
MAX_LINE: Final = 1 << 20
CHUNK: Final = 8


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """One log's receipt, or the problems that keep it from being one. ``copy_of`` names the log that it repeats."""

    place: LogPath
    launch: str
    raw: bytes | None
    problems: tuple[Problem, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    copy_of: str = ""


def import_logs(places: Sequence[LogPath], jobs: int = 1) -> Iterator[PublishedLog]:
    """The receipt of every log, in their order; by several processes where ``jobs`` says so."""
    first: dict[str, str] = {}
    jobs = min(jobs, len(places) // CHUNK, 4 * (os.cpu_count() or 1))
    # Spawned and not forked: readers keep nothing that a child could share.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else nullcontext() as pool:
        for item in map(import_log, places) if pool is None else pool.map(import_log, places, chunksize=CHUNK):
            earlier = first.setdefault(item.launch, item.place.name)
            yield item if earlier == item.place.name else replace(item, copy_of=earlier)


def import_log(place: LogPath) -> PublishedLog:
    """Read one log beside its system's description."""
    launch = launch_of(place)
    log = read(place.path, place.name)
    own = next((reading for reading in log.readings if reading.source == "mlperf"), None)
    if own is None or "run.started" not in own.stated:
        problem = Problem("run.started", "no record with a time_ms can be read in it", "fetch the log again")
        return PublishedLog(place, launch, None, (problem,))
    # What the place says: whose launch it is, and under which submission.
    location = Reading(SOURCE, records=1)
    location.state("run.launch", launch, "digest of the log's records")
    location.state("run.context", place.context, place.context)
    label = f"{place.context.partition('/')[2] or place.name} {place.path.stem}"
    location.state("run.label", label, place.name)
    if place.benchmark and "model.name" not in own.stated:
        location.state("model.name", place.benchmark, place.benchmark)
    if place.system and place.description is None:
        location.remark("note", f"no systems/{place.system}.json describes the machine")
    evidence = [replace(log, readings=(*log.readings, location))]
    if (description := place.description) is not None:
        evidence.append(read(description, f"systems/{description.name}"))
    readings = [reading for item in evidence for reading in item.readings]
    stated = {path: value.value for reading in readings for path, value in reading.stated.items()}
    if (power := _power(place, stated)) is not None:
        evidence[0] = replace(evidence[0], readings=(*evidence[0].readings, power))
    division = own.stated.get("features.submission_division")
    closed = division is None or division.value == "closed"
    ingested = assemble(evidence, Options(lane=LANE if closed else "unlisted"))
    raw = None if ingested.problems else ingested.raw
    return PublishedLog(place, launch, raw, ingested.problems, ingested.contradictions)


def launch_of(place: LogPath) -> str:
    """The digest of a log's records, without those that name the submission: copies have the same."""
    digest = hashlib.sha256()
    with Source(place.path, place.name).open() as stream:
        for line in iter(lambda: stream.readline(MAX_LINE), b""):
            mark = line.find(MARK)
            if mark >= 0 and _NAMES_SUBMISSION not in line:
                digest.update(line[mark:].strip() + b"\n")
    return digest.hexdigest()


MAX_METERS: Final = 100_000


def _power(place: LogPath, stated: Mapping[str, Any]) -> Reading | None:
    """Mean power over the run, of every node's meter and every switch; None without ``power/LOG/node_*.txt``.

    A meter's record holds from the record before to its own time, and needs every node. Source:
    mlcommons/logging (result_summarizer).
    """
    folder = place.path.parent / "power" / place.path.name.partition(".")[0]
    nodes = [meter for file in sorted(folder.glob("node_*.txt"))[:MAX_METERS] if (meter := _meter(file)) is not None]
    if not nodes:
        return None
    reading = Reading("mlperf-power", records=sum(samples for _, _, samples in nodes))
    chips, hosts = stated.get("hardware.chips"), stated.get("hardware.hosts", len(nodes))
    if chips is None or hosts != len(nodes):
        reading.remark("note", f"{folder.name}: {len(nodes)} nodes are metered, and not all of the machine")
        return reading
    watts = sum(power for power, _, _ in nodes)
    # What each switch is estimated to take.
    switches = ({key: value for _, key, value in reversed(_records(file))} for file in folder.glob("sw_*.txt"))
    watts += sum(values.get("interconnect_power_est", 0.0) * values.get("conversion_eff", 1.0) for values in switches)
    reading.state("measurement.energy.watts_per_chip", watts / chips, f"{watts:,.0f} W of {len(nodes)} nodes")
    reading.state("measurement.energy.seconds", min(seconds for _, seconds, _ in nodes), "power_measurement_stop")
    reading.state("measurement.energy.samples", min(samples for _, _, samples in nodes), "power_reading")
    reading.state("measurement.energy.meter", "node", folder.name)
    return reading


def _records(file: Path) -> list[tuple[float, str, float]]:
    """Seconds, key and value of a meter's records, by time."""
    rows: list[tuple[float, str, float]] = []
    with Source(file, file.name).open() as stream:
        for line in iter(lambda: stream.readline(MAX_LINE), b""):
            try:
                record = json.loads(line[line.index(MARK) + len(MARK) :])
                value = record["value"]["value"] if isinstance(record["value"], dict) else record["value"]
                rows.append((record["time_ms"] / 1e3, record["key"], float(value or 0.0)))
            except (ValueError, KeyError, TypeError):
                continue
    return sorted(rows, key=lambda row: row[0])


def _meter(file: Path) -> tuple[float, float, int] | None:
    """Mean watts, seconds and readings of a node's meter; None without a start and a reading."""
    joules, samples, efficiency, start, last = 0.0, 0, 1.0, None, 0.0
    for at, key, value in _records(file):
        if key == "conversion_eff":
            efficiency = value
        elif key == "power_measurement_start":
            start = last = at
        elif key == "power_reading" and start is not None:
            joules, samples, last = joules + value * (at - last), samples + 1, at
        elif key == "power_measurement_stop":
            break
    seconds = last - start if start is not None else 0.0
    return (efficiency * joules / seconds, seconds, samples) if seconds > 0 else None


MIN_LAUNCHES = 3  # launches of a side whose own spread gives an interval


@dataclass(frozen=True)
class SubmissionSpread:
    """Launches of one submission, and the step time of each in seconds; those without one are counted only."""

    context: str
    launches: tuple[Parsed, ...]
    seconds: tuple[float, ...]

    @property
    def like(self) -> Parsed:
        """The launch that represents the others: their settings are the same."""
        return self.launches[0]

    @property
    def benchmark(self) -> str:
        """The benchmark's name; empty if no launch states it."""
        return str(self.like.stated.get("model.name", ""))

    @property
    def accelerator(self) -> str:
        """The registry's key of its accelerator, else its name as stated."""
        name = str(self.like.stated.get("hardware.accelerator", ""))
        machine = find_accelerator(name)
        return machine.key if machine is not None else name or "~"

    @cached_property
    def location(self) -> float | None:
        """The median launch, in seconds a step."""
        return median(self.seconds) if self.seconds else None

    @cached_property
    def spread(self) -> float | None:
        """The standard deviation of launches over their mean; None for fewer than two."""
        return stdev(self.seconds) / fmean(self.seconds) if len(self.seconds) > 1 else None


@dataclass(frozen=True)
class SubmissionPair:
    """Two submissions of one benchmark: what differs between them, and the effect of B's launches against A's."""

    a: SubmissionSpread
    b: SubmissionSpread
    apart: Difference
    effect: Effect | None

    @property
    def one_axis(self) -> bool:
        """Whether one stated axis differs, and each is stated by both or by neither."""
        return len(self.apart.changed) == 1 and not self.lopsided

    @property
    def lopsided(self) -> tuple[str, ...]:
        """Axes that one of the two states and the other does not: each may be the one that differs."""
        return tuple(sorted({item.axis for item in self.apart.unknown if item.missing != "both"}))


def submissions(launches: Iterable[Parsed], lane: Lane) -> list[SubmissionSpread]:
    """Launches by submission, in the order of benchmark, accelerator, size and name; a copy counts once."""
    groups: defaultdict[str, list[Parsed]] = defaultdict(list)
    seen: set[object] = set()
    for parsed in launches:
        run = parsed.receipt.run
        names = {run.launch, *distinct_steps(parsed)}
        if run.outcome != "ok" or names & seen:
            continue
        seen |= names
        groups[run.context or run.label or parsed.id].append(parsed)
    listed = [
        SubmissionSpread(
            context,
            tuple(group),
            tuple(time for parsed in group if (time := Launch(parsed, lane).step_seconds) is not None),
        )
        for context, group in groups.items()
    ]

    def order(item: SubmissionSpread) -> tuple[str, str, int, str]:
        return item.benchmark, item.accelerator, int(item.like.stated.get("hardware.chips") or 0), item.context

    return sorted(listed, key=order)


def pairs(listed: Sequence[SubmissionSpread], lane: Lane) -> Iterator[SubmissionPair]:
    """Every two submissions of one benchmark, those that differ in the fewest axes first."""
    compared = [
        pair_of(a, b, lane)
        for a, b in combinations(listed, 2)
        if a.benchmark == b.benchmark and a.accelerator == b.accelerator
    ]
    yield from sorted(compared, key=lambda item: (len(item.lopsided) + len(item.apart.changed), item.a.context))


def pair_of(a: SubmissionSpread, b: SubmissionSpread, lane: Lane) -> SubmissionPair:
    """What differs between two submissions; their effect where both have launches enough."""
    enough = min(len(a.seconds), len(b.seconds)) >= MIN_LAUNCHES
    effect = effects.compare(a.seconds, b.seconds, better="lower") if enough else None
    return SubmissionPair(a, b, difference_under(lane, a.like, b.like), effect)
