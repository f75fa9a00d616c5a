"""Spans of an export of Nsight Systems: kernels, copies and graphs with their launches and the NVTX ranges around them.

Source: "SQLite Schema Reference" in the Nsight Systems user guide. A launch is the call of the runtime of the same
process with the kernel's ``correlationId``; the upper bits of a ``globalTid`` are the ``globalPid``. Ranges that were
pushed and popped (``eventType`` 59) are operators: `torch.autograd.profiler.emit_nvtx` writes
``aten::addmm, seq = 5, op_id = 12``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from receipts.ingest.spans import MAX_SPANS, Activities, SpanService, SpanTrace

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
        for count, (start, end, thread, text, number, kind) in enumerate(self._select("NVTX_EVENTS", *names)):
            name = _ARGUMENTS.sub("", str(text or self._texts.get(number) or ""))[:_MAX_NAME]
            if (
                isinstance(start, int)
                and isinstance(end, int)
                and name
                and kind in (_RANGE, None)
                and count < MAX_SPANS
            ):
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
