"""Logs of MLPerf Training to receipts: one a log, with what its place in the repository says of it.

A log that was submitted twice is one launch, by the records that it holds: under another system's name only those
differ that name the submission.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Final

from receipts.base.errors import Problem
from receipts.ingest import Contradiction, Options, assemble
from receipts.ingest.evidence import read
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source
from receipts.workflows.published.places import MARK, LogPath

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
    for item in _each(places, jobs):
        earlier = first.setdefault(item.launch, item.place.name)
        yield item if earlier == item.place.name else replace(item, copy_of=earlier)


def _each(places: Sequence[LogPath], jobs: int) -> Iterator[PublishedLog]:
    jobs = min(jobs, len(places) // CHUNK, 4 * (os.cpu_count() or 1))
    if jobs < 2:
        yield from map(import_log, places)
        return
    # Spawned and not forked: readers keep nothing that a child could share.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(import_log, places, chunksize=CHUNK)


def import_log(place: LogPath) -> PublishedLog:
    """Read one log beside its system's description."""
    launch = launch_of(place)
    log = read(place.path, place.name)
    own = next((reading for reading in log.readings if reading.source == "mlperf"), None)
    if own is None or "run.started" not in own.stated:
        problem = Problem("run.started", "no record with a time_ms can be read in it", "fetch the log again")
        return PublishedLog(place, launch, None, (problem,))
    evidence = [replace(log, readings=(*log.readings, _stated(place, launch, own)))]
    if (description := place.description) is not None:
        evidence.append(read(description, f"systems/{description.name}"))
    ingested = assemble(evidence, Options(lane=LANE if _closed(own) else "unlisted"))
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


def _stated(place: LogPath, launch: str, own: Reading) -> Reading:
    """What the place says: whose launch it is, and under which submission."""
    reading = Reading(SOURCE, records=1)
    reading.state("run.launch", launch, "digest of the log's records")
    reading.state("run.context", place.context, place.context)
    reading.state("run.label", f"{place.context.partition('/')[2] or place.name} {place.path.stem}", place.name)
    if place.benchmark and "model.name" not in own.stated:
        reading.state("model.name", place.benchmark, place.benchmark)
    if place.system and place.description is None:
        reading.remark("note", f"no systems/{place.system}.json describes the machine")
    return reading


def _closed(reading: Reading) -> bool:
    division = reading.stated.get("features.submission_division")
    return division is None or division.value == "closed"
