"""The SQLite export of Nsight Systems, opened read-only.

Source: "SQLite Schema Reference" in the Nsight Systems user guide. Times are nanoseconds after the session's start, of
which `TARGET_INFO_SESSION_START_TIME` says when it was; names are numbers of `StringIds`; `copyKind` 2 is device to
host; bits 24 to 47 of a `globalPid` are the process.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote

from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source
from receipts.ingest.evidence.witnesses.kernels_histogram import Histogram
from receipts.ingest.evidence.witnesses.torch_trace_timeline import Timeline

KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MAX_TEXT: Final = 1 << 24  # bytes of one name in the file
_NANO: Final = 1e-9
_YEAR_2001: Final = 10**18  # nanoseconds since 1970
# Steps of SQLite's virtual machine, a thousand at a time: some minutes of work, which no export of a profile needs.
_MAX_WORK: Final = 20_000_000
_TO_HOST: Final = 2
# Scalars, counts and flags; an operator that works on the host needs its tensors there.
_SMALL_COPY: Final = 1 << 16
_STEP = re.compile(r"(?:ProfilerStep#|iteration |iteration_|step |step_|Step )(\d{1,9})")


def read_database(reading: Reading, source: Source) -> None:
    """Read kernels, copies, graph launches, devices and step marks; a remark where the file cannot be read."""
    if source.packing:
        reading.remark("broken", f"an export packed with {source.packing} cannot be read in place; unpack it first")
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(source.path))}?mode=ro&immutable=1", uri=True)) as database:
            _guard(database)
            _read(_Export(database, reading))
    except (sqlite3.Error, OverflowError) as error:
        reading.remark("broken", f"the export cannot be read to its end: {str(error)[:120]}")


def _guard(database: sqlite3.Connection) -> None:
    """A file must not make this run for ever, nor run functions of its own."""
    database.execute("PRAGMA trusted_schema=OFF")
    # SQLite holds a whole text in memory, and Python a second time.
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    work = iter(range(_MAX_WORK))
    database.set_progress_handler(lambda: next(work, None) is None, 1000)


class _Export:
    def __init__(self, database: sqlite3.Connection, reading: Reading) -> None:
        self.database = database
        self.reading = reading
        self.histogram = Histogram()
        self.large_copies: int | None = 0
        # Tables only: a view may hold any query.
        self.tables = {str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self.database.execute(f"PRAGMA table_info({table})")}

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        return iter(self.database.execute(query))


def _read(export: _Export) -> None:
    devices = _devices(export)
    if {KERNELS, "StringIds"} <= export.tables:
        _kernels(export)
    else:
        export.reading.remark("missing", f"the export has no table {KERNELS}: no kernel was traced")
    _bind(export)
    _graphs(export)
    _copies(export)
    steps = _steps(export)
    export.histogram.write(export.reading, arch=devices)
    export.reading.complete = export.reading.records > 0
    export.reading.steps_covered = len(steps) or None
    if not (export.histogram.kernels and steps):
        return
    if export.large_copies:
        what = f"{export.large_copies} copies of more than {_SMALL_COPY >> 10} KiB went to the host"
        export.reading.remark("missing", f"{what}: that an operator ran there is not excluded")
    elif export.large_copies is not None:
        export.reading.fallbacks = {}


def _kernels(export: _Export) -> None:
    name = "demangledName" if "demangledName" in export.columns(KERNELS) else "shortName"
    communicating: list[int] = []
    query = (
        f"SELECT k.{name}, s.value, COUNT(*), SUM(k.end - k.start) FROM {KERNELS} k "
        f"LEFT JOIN StringIds s ON s.id = k.{name} GROUP BY k.{name}"
    )
    for identity, value, count, nanoseconds in export.rows(query):
        if not isinstance(value, str) or not isinstance(count, int):
            continue
        export.reading.records += 1
        seconds = nanoseconds * _NANO if isinstance(nanoseconds, int | float) else 0.0
        if export.histogram.kernel(value, count, max(seconds, 0.0)).work == "communication":
            communicating.append(int(identity))
    if communicating:
        _exposed(export, name, set(communicating))


def _bind(export: _Export) -> None:
    """Host, processes, and when the kernels ran."""
    reading, known = export.reading, export.columns(KERNELS) if KERNELS in export.tables else set()
    if "TARGET_INFO_SYSTEM_ENV" in export.tables:
        for (value,) in export.rows("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname' LIMIT 1"):
            reading.host = str(value or "")[:200]
    if "globalPid" in known:
        rows = export.rows(f"SELECT DISTINCT globalPid FROM {KERNELS} LIMIT 4096")
        reading.processes = {(item >> 24) & 0xFFFFFF for (item,) in rows if isinstance(item, int)} - {0}
    start = "TARGET_INFO_SESSION_START_TIME"
    if {"start", "end"} <= known and start in export.tables and "utcEpochNs" in export.columns(start):
        query = f"SELECT s.utcEpochNs, MIN(k.start), MAX(k.start) FROM {start} s, {KERNELS} k"
        for times in export.rows(query):
            if all(isinstance(item, int) for item in times) and times[0] > _YEAR_2001:
                reading.between = (times[0] + times[1]) * _NANO, (times[0] + times[2]) * _NANO


def _exposed(export: _Export, name: str, communicating: set[int]) -> None:
    timeline = Timeline()
    for device, begin, end, identity in export.rows(f"SELECT deviceId, start, end, {name} FROM {KERNELS}"):
        if isinstance(begin, int) and isinstance(end, int):
            where = device if isinstance(device, int) else 0
            timeline.add(where, float(begin), float(end - begin), communicates=identity in communicating)
    if timeline.lost:
        export.reading.remark("missing", "too many kernels to tell exposed communication")
        return
    for device, time in sorted(timeline.exposed().items())[:64]:
        what = f"device {device}: {time * _NANO:.6g} s in which only communication ran"
        export.reading.remark("note", what)


def _devices(export: _Export) -> int | None:
    table = "TARGET_INFO_GPU"
    if table not in export.tables or not {"name", "computeMajor", "computeMinor"} <= export.columns(table):
        return None
    rows = list(export.rows(f"SELECT name, computeMajor, computeMinor FROM {table} LIMIT 1000"))
    names = sorted({str(row[0])[:100] for row in rows if row[0]})
    if len(names) == 1:
        export.reading.state("hardware.accelerator", names[0], names[0], record=table)
    arches = {10 * row[1] + row[2] for row in rows if isinstance(row[1], int) and isinstance(row[2], int)}
    return arches.pop() if len(arches) == 1 else None


def _graphs(export: _Export) -> None:
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if not {table, "StringIds"} <= export.tables:
        return
    query = (
        f"SELECT COUNT(*) FROM {table} r JOIN StringIds s ON s.id = r.nameId "
        "WHERE s.value LIKE 'cudaGraphLaunch%' OR s.value LIKE 'cuGraphLaunch%'"
    )
    for (count,) in export.rows(query):
        if isinstance(count, int) and count > 0:
            export.reading.records += 1
            export.histogram.operator("cudaGraphLaunch", count)


def _copies(export: _Export) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    if table not in export.tables:
        return
    large = f"SUM(bytes > {_SMALL_COPY})" if "bytes" in export.columns(table) else "NULL"
    for count, many in export.rows(f"SELECT COUNT(*), {large} FROM {table} WHERE copyKind = {_TO_HOST}"):
        if isinstance(count, int):
            export.reading.host_transfers = count
            export.large_copies = many if isinstance(many, int) else None if count else 0


def _steps(export: _Export) -> set[int]:
    table = "NVTX_EVENTS"
    if table not in export.tables or "text" not in export.columns(table):
        return set()
    steps: set[int] = set()
    query = f"SELECT DISTINCT text FROM {table} LIMIT 200000"
    if "textId" in export.columns(table) and "StringIds" in export.tables:
        query = (
            f"SELECT DISTINCT COALESCE(n.text, s.value) FROM {table} n "
            "LEFT JOIN StringIds s ON s.id = n.textId LIMIT 200000"
        )
    for (text,) in export.rows(query):
        if isinstance(text, str) and (match := _STEP.fullmatch(text.strip())):
            steps.add(int(match[1]))
    return steps
