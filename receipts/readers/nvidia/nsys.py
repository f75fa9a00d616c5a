"""Nsight Systems: the kernel table of `nsys stats`, as text and as CSV, the exported SQLite file, and its spans.

Source: the reports `cuda_gpu_kern_sum` and `cuda_gpu_kern_gb_sum` (before 2023 `gpukernsum`) of the Nsight Systems user
guide. The head of a table names its unit, `Total Time (ns)`; the time of all kernels of one name is in it.

The SQLite export is opened read-only. Source: "SQLite Schema Reference" in the same guide. Times are nanoseconds after
the session's start, of which `TARGET_INFO_SESSION_START_TIME` says when it was; names are numbers of `StringIds`;
`copyKind` 2 is device to host; bits 24 to 47 of a `globalPid` are the process.

Spans are kernels, copies and graphs with their launches and the NVTX ranges around them. A launch is the call of the
runtime of the same process with the kernel's ``correlationId``; the upper bits of a ``globalTid`` are the
``globalPid``. Ranges that were pushed and popped (``eventType`` 59) are operators: `torch.autograd.profiler.emit_nvtx`
writes ``aten::addmm, seq = 5, op_id = 12``.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, ClassVar, Final
from urllib.parse import quote

from receipts.ingest.device_profile import Histogram, TableReader, Timeline, count, seconds, state_gpus
from receipts.ingest.literals import csv_cells
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source
from receipts.ingest.spans import MAX_SPANS, Activities, SpanService, SpanTrace, span_service

MAX_MARKS: Final = 100_000
RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_MAX_NAME: Final = 400
_TABLES: Final = {"KERNEL": "k", "MEMCPY": "y", "MEMSET": "s", "GRAPH_TRACE": "g"}
_RANGE: Final = 59
_THREAD: Final = 0xFFFFFF
_COPIES: Final = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 10: "Memcpy PtoP"}
_VERSION: Final = re.compile(r"_v\d+(_pt\w+)?$")
_ARGUMENTS: Final = re.compile(r", (seq|op_id|sizes|input_op_ids) = .*", re.S)
# Rows of a launch: begin on the host, thread.
_Launch = tuple[int, int]


class NsysSpans:
    """The spans of one export. ``rows`` runs a query; ``columns`` are those of each table."""

    def __init__(
        self,
        service: SpanService,
        rows: Callable[[str], Iterator[tuple[Any, ...]]],
        columns: Mapping[str, set[str]],
        step: re.Pattern[str],
    ) -> None:
        self._service, self._query, self._columns, self._step = service, rows, columns, step
        self.trace = SpanTrace("nsys")
        self._texts: dict[Any, str] = dict(rows("SELECT id, value FROM StringIds"))

    def extract(self, facts: dict[str, Any]) -> bytes | None:
        """The plugin's extract; None where nothing ran on a device."""
        trace = self.trace
        trace.facts = facts
        launches, ranges = self._launches(), self._ranges()
        threads = sorted({thread for _, thread in launches.values()} | ranges.keys())
        nested = {thread: _Nested(trace, ranges[thread]) for thread in threads}
        owners = self._rows(launches, nested)
        # A step of one process is no step of another.
        for device, process in owners.items():
            marks = [
                (int(match[1]), begin, end)
                for thread in threads
                if thread & ~_THREAD == process
                for begin, end, name in ranges[thread]
                if (match := self._step.fullmatch(name.strip()))
            ]
            trace.device_marks[device] = marks[:MAX_MARKS]
        if trace.devices and not launches:
            trace.broken = f"the export has no table {RUNTIME}, without which no kernel is laid to a step"
        return self._service.extract(trace) if trace.devices else None

    def _select(self, table: str, *names: str) -> Any:
        """Rows of a table; NULL for a column that this version does not write."""
        known = self._columns.get(table, set())
        if not {"start", "end"} <= known:
            return ()
        return self._query(
            f"SELECT {', '.join(name if name in known or name[-1] == '1' else 'NULL' for name in names)} FROM {table}"
        )

    def _launches(self) -> dict[tuple[int, int], _Launch]:
        """The calls of the runtime by process and correlation; what they mean for an idle device is kept on the way."""
        launches: dict[tuple[int, int], _Launch] = {}
        for start, end, thread, correlation, name in self._select(
            RUNTIME, "start", "end", "globalTid", "correlationId", "nameId"
        ):
            if not isinstance(start, int) or not isinstance(end, int):
                continue
            self._host(_VERSION.sub("", self._texts.get(name) or ""), start, end)
            if isinstance(correlation, int) and len(launches) < MAX_SPANS:
                launches[(thread or 0) & ~_THREAD, correlation] = start, thread or 0
        return launches

    def _host(self, name: str, start: int, end: int) -> None:
        if name and (kind := self._service.host_kind(name)):
            self.trace.host.append((kind, start, end))

    def _ranges(self) -> defaultdict[int, list[tuple[int, int, str]]]:
        """NVTX ranges by thread."""
        ranges: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
        names = ("start", "end", "globalTid", "text", "textId", "eventType")
        for row, (start, end, thread, text, number, kind) in enumerate(self._select("NVTX_EVENTS", *names)):
            name = _ARGUMENTS.sub("", str(text or self._texts.get(number) or ""))[:_MAX_NAME]
            if isinstance(start, int) and isinstance(end, int) and name and kind in (_RANGE, None) and row < MAX_SPANS:
                ranges[thread or 0].append((start, end, name))
                self._host(name, start, end)
        return ranges

    def _rows(self, launches: Mapping[tuple[int, int], _Launch], nested: Mapping[int, _Nested]) -> dict[str, int]:
        """Take in what ran; the process of each device."""
        trace, held = self.trace, 0
        processes: defaultdict[int, set[int]] = defaultdict(set)
        for table in _TABLES:
            for _, _, device, process in self._select(_PREFIX + table, "DISTINCT 1", "1", "deviceId", "globalPid"):
                processes[device or 0].add(process or 0)
        owners: dict[str, int] = {}
        for table, letter in _TABLES.items():
            name = {"k": "demangledName", "y": "copyKind"}.get(letter, "NULL")
            if letter == "k" and name not in self._columns.get(_PREFIX + table, ()):
                name = "shortName"
            columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", name)
            for start, end, device, stream, correlation, process, text in self._select(_PREFIX + table, *columns):
                if not isinstance(start, int) or not isinstance(end, int):
                    continue
                held += 1
                if held > MAX_SPANS:
                    trace.lost += 1
                    continue
                label = {"y": _COPIES.get(text, "Memcpy"), "s": "Memset", "g": "CUDA graph"}.get(letter)
                number = trace.names.number((label or self._texts.get(text) or "")[:_MAX_NAME])
                of = processes[device or 0]
                key = f"{device or 0}" + (f".{sorted(of).index(process or 0)}" if len(of) > 1 else "")
                owners[key] = process or 0
                launched, thread = launches.get((process or 0, correlation or -1), (-1, 0))
                chain = nested[thread].chain(launched) if launched >= 0 else 0
                trace.devices.setdefault(key, Activities()).add(
                    start, end, stream or 0, number, chain, launched, letter
                )
        return owners


class _Nested:
    """The chain of ranges around each moment of a thread."""

    def __init__(self, trace: SpanTrace, ranges: list[tuple[int, int, str]]) -> None:
        known: dict[tuple[int, int], int] = {}
        stack: list[tuple[int, int]] = []
        self._moments, self._chains = [-1], [0]

        def until(moment: int) -> None:
            while stack and stack[-1][0] <= moment:
                end, _ = stack.pop()
                self._moments.append(end)
                self._chains.append(stack[-1][1] if stack else 0)

        for begin, end, name in sorted(ranges, key=lambda item: (item[0], -item[1], item[2])):
            until(begin)
            key = stack[-1][1] if stack else 0, trace.names.number(name)
            if key not in known:
                known[key] = len(trace.chains)
                trace.chains.append(key)
            stack.append((end, known[key]))
            self._moments.append(begin)
            self._chains.append(known[key])
        until(1 << 62)

    def chain(self, moment: int) -> int:
        """The innermost chain at a moment."""
        return self._chains[bisect_right(self._moments, moment) - 1]


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
            # A file must not make this run for ever, nor run functions of its own.
            database.execute("PRAGMA trusted_schema=OFF")
            # SQLite holds a whole text in memory, and Python a second time.
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            work = iter(range(_MAX_WORK))
            database.set_progress_handler(lambda: next(work, None) is None, 1000)
            _Export(database, reading).read()
    except (sqlite3.Error, OverflowError) as error:
        reading.remark("broken", f"the export cannot be read to its end: {str(error)[:120]}")


class _Export:
    def __init__(self, database: sqlite3.Connection, reading: Reading) -> None:
        self._database = database
        self._reading = reading
        self._histogram = Histogram()
        self._large_copies: int | None = 0
        # Tables only: a view may hold any query.
        query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        self._columns: defaultdict[str, set[str]] = defaultdict(set)
        for table, column in database.execute(query):
            self._columns[str(table)].add(str(column))

    def read(self) -> None:
        reading, table = self._reading, "TARGET_INFO_GPU"
        named = self._has(table, "name", "computeMajor", "computeMinor")
        gpus = self._rows(f"SELECT name, computeMajor, computeMinor FROM {table} LIMIT 1000") if named else ()
        arch = state_gpus(reading, gpus, table)
        if self._has(KERNELS) and self._has("StringIds"):
            self._kernels()
        else:
            reading.remark("missing", f"the export has no table {KERNELS}: no kernel was traced")
        # Host, processes, and when the kernels ran.
        start = "TARGET_INFO_SESSION_START_TIME"
        if self._has("TARGET_INFO_SYSTEM_ENV"):
            for (value,) in self._rows("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname' LIMIT 1"):
                reading.host = str(value or "")[:200]
        if self._has(KERNELS, "globalPid"):
            rows = self._rows(f"SELECT DISTINCT globalPid FROM {KERNELS} LIMIT 4096")
            reading.processes = {(item >> 24) & 0xFFFFFF for (item,) in rows if isinstance(item, int)} - {0}
        if self._has(KERNELS, "start", "end") and self._has(start, "utcEpochNs"):
            query = f"SELECT s.utcEpochNs, MIN(k.start), MAX(k.start) FROM {start} s, {KERNELS} k"
            for times in self._rows(query):
                if all(isinstance(item, int) for item in times) and times[0] > _YEAR_2001:
                    reading.between = (times[0] + times[1]) * _NANO, (times[0] + times[2]) * _NANO
        self._graphs()
        table = "CUPTI_ACTIVITY_KIND_MEMCPY"
        large = f"SUM(bytes > {_SMALL_COPY})" if self._has(table, "bytes") else "NULL"
        query = f"SELECT COUNT(*), {large} FROM {table} WHERE copyKind = {_TO_HOST}"
        for copies, many in self._rows(query) if self._has(table) else ():
            if isinstance(copies, int):
                reading.host_transfers = copies
                self._large_copies = many if isinstance(many, int) else None if copies else 0
        steps = self._steps()
        self._histogram.write(reading, arch=arch)
        reading.complete = reading.records > 0
        self._spans()
        reading.steps_covered = len(steps) or None
        if not (self._histogram.kernels and steps):
            return
        if self._large_copies:
            what = f"{self._large_copies} copies of more than {_SMALL_COPY >> 10} KiB went to the host"
            reading.remark("missing", f"{what}: that an operator ran there is not excluded")
        elif self._large_copies is not None:
            reading.fallbacks = {}

    def _spans(self) -> None:
        """What a plugin makes of what ran when."""
        reading, service = self._reading, span_service()
        if service is None or not self._has("StringIds"):
            return
        accelerator = reading.stated.get("hardware.accelerator")
        facts = {
            "host": reading.host,
            "processes": sorted(reading.processes)[:64],
            "between": reading.between,
            "accelerator": accelerator.value if accelerator else None,
        }
        spans = NsysSpans(service, self._rows, self._columns, _STEP)
        if (extract := spans.extract(facts)) is not None:
            reading.extracts[service.name] = extract

    def _has(self, table: str, *columns: str) -> bool:
        return table in self._columns and self._columns[table].issuperset(columns)

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        return iter(self._database.execute(query))

    def _kernels(self) -> None:
        name = "demangledName" if self._has(KERNELS, "demangledName") else "shortName"
        communicating: set[int] = set()
        query = (
            f"SELECT k.{name}, s.value, COUNT(*), SUM(k.end - k.start) FROM {KERNELS} k "
            f"LEFT JOIN StringIds s ON s.id = k.{name} GROUP BY k.{name}"
        )
        for identity, value, launches, nanoseconds in self._rows(query):
            if isinstance(value, str) and isinstance(launches, int):
                self._reading.records += 1
                seconds = nanoseconds * _NANO if isinstance(nanoseconds, int | float) else 0.0
                if self._histogram.kernel(value, launches, max(seconds, 0.0)).work == "communication":
                    communicating.add(int(identity))
        if not communicating:
            return
        timeline = Timeline()
        for device, begin, end, identity in self._rows(f"SELECT deviceId, start, end, {name} FROM {KERNELS}"):
            if isinstance(begin, int) and isinstance(end, int):
                where = device if isinstance(device, int) else 0
                timeline.add(where, float(begin), float(end - begin), communicates=identity in communicating)
        if timeline.lost:
            self._reading.remark("missing", "too many kernels to tell exposed communication")
            return
        for device, time in sorted(timeline.exposed().items())[:64]:
            what = f"device {device}: {time * _NANO:.6g} s in which only communication ran"
            self._reading.remark("note", what)

    def _graphs(self) -> None:
        table = "CUPTI_ACTIVITY_KIND_RUNTIME"
        if not (self._has(table) and self._has("StringIds")):
            return
        query = (
            f"SELECT COUNT(*) FROM {table} r JOIN StringIds s ON s.id = r.nameId "
            "WHERE s.value LIKE 'cudaGraphLaunch%' OR s.value LIKE 'cuGraphLaunch%'"
        )
        for (launches,) in self._rows(query):
            if isinstance(launches, int) and launches > 0:
                self._reading.records += 1
                self._histogram.operator("cudaGraphLaunch", launches)

    def _steps(self) -> set[int]:
        table = "NVTX_EVENTS"
        if not self._has(table, "text"):
            return set()
        query = f"SELECT DISTINCT text FROM {table} LIMIT 200000"
        if self._has(table, "textId") and self._has("StringIds"):
            query = (
                f"SELECT DISTINCT COALESCE(n.text, s.value) FROM {table} n "
                "LEFT JOIN StringIds s ON s.id = n.textId LIMIT 200000"
            )
        texts = (text.strip() for (text,) in self._rows(query) if isinstance(text, str))
        return {int(match[1]) for text in texts if (match := _STEP.fullmatch(text))}


_TOTAL = re.compile(r"Total Time \((?P<unit>ns|us|µs|ms|s|sec)\)")
_MAGIC: Final = b"SQLite format 3\0"
_MARKS: Final = (b"CUPTI_ACTIVITY", b"StringIds", b"TARGET_INFO", b"META_DATA_EXPORT", b"ENUM_NSYS")
_GRAPH_LAUNCHES: Final = ("cudaGraphLaunch", "cuGraphLaunch")


class NsysStatsReader(TableReader):
    """Kernel sums, graph launches and copies to the host out of the tables that `nsys stats` prints."""

    source: ClassVar[str] = "nsys"
    anchors: ClassVar[tuple[bytes, ...]] = (b"Total Time (",)
    limits = ("missing", "the table holds no step marks: how many steps it covers is unknown")

    def __init__(self) -> None:
        super().__init__()
        self._unit = "ns"
        self._csv: list[str] = []

    def line(self, text: str, number: int) -> bool:
        if match := _TOTAL.search(text):
            self._unit = {"sec": "s"}.get(match["unit"], match["unit"])
            apart = "," in text and "  " not in text.strip()
            self._csv = [cell.strip() for cell in csv_cells(text)] if apart else []
            return self.begin(text, number)
        if not self._csv:
            return self.table(text)
        return self.taken(dict(zip(self._csv, map(str.strip, csv_cells(text)), strict=False)))

    def row(self, cells: dict[str, str]) -> bool:
        if any("," in cell for name, cell in cells.items() if name.startswith("Time")):
            # The machine's locale: `19,0` percent, and `285 118 634` or `285.118.634` nanoseconds.
            cells = {
                name: re.sub(r"[\s.]", "", cell).replace(",", ".") if _LOCAL.fullmatch(cell) else cell
                for name, cell in cells.items()
            }
        total = next((seconds(cells[key], self._unit) for key in cells if key.startswith("Total Time")), None)
        if total is None:
            return False
        instances, calls = count(cells.get("Instances", "")), count(cells.get("Num Calls", ""))
        name, operation = cells.get("Name", ""), cells.get("Operation", cells.get("Operations", ""))
        if instances is not None and name and "Range" not in cells and "Style" not in cells:
            self.reading.records += 1
            self.histogram.kernel(name, instances, total)
        elif calls is not None and name.partition("_v")[0] in _GRAPH_LAUNCHES:
            self.reading.records += 1
            self.histogram.operator(name.partition("_v")[0], calls)
        elif operation.startswith("[CUDA memcpy D") and operation.endswith(("Host]", "DtoH]")):
            self.reading.records += 1
            copies = count(cells.get("Count", cells.get("Operations", ""))) or 0
            self.reading.host_transfers = (self.reading.host_transfers or 0) + copies
        return True


_LOCAL: Final = re.compile(r"\d{1,3}(?:[\s.]\d{3})*(?:,\d{1,9})?|\d{1,20}(?:,\d{1,9})?")


class NsysDatabaseReader(FileReader):
    """`nsys export --type sqlite`: every kernel with its device and time."""

    source: ClassVar[str] = "nsys"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(_MAGIC) and any(mark in head for mark in _MARKS)

    def read(self, source: Source) -> list[Reading]:
        reading = Reading(self.source)
        read_database(reading, source)
        return [reading] if reading.records or reading.remarks else []


READERS = (NsysStatsReader, NsysDatabaseReader)
