"""Profiles of JAX and XLA: trace.json.gz and xplane.pb, and what their events prove.

What the events of a JAX (XLA) profile prove, whichever file they come from: reads of arrays, programs, kernels. A
read of a live array is an event of the host's Python thread: ``np.asarray(jax.Array)`` and, with the Python tracer,
``$array.py:615 _value`` and ``$array.py:298 __float__``. No compile log tells it, and no transfer guard everywhere.
Device planes name what really ran: HLO operations on TPU, kernels on GPU.

Traces of JAX's profiler: ``plugins/profile/…/HOST.trace.json.gz``, in the Chrome format. torch's traces share the
format and are distinguished by content. Their clock begins with the trace, and no host and no process is in them: the
.xplane.pb beside them holds time and host. Source: tsl/profiler/convert/trace_events_to_json.cc.

XSpace files of JAX's profiler (``HOST.xplane.pb``), whole where trace.json is cut at a million events. Fields by
tsl/profiler/protobuf/xplane.proto: XSpace.planes=1, hostnames=4; XPlane.name=2, lines=3, event_metadata=4, stats=6;
XStat.uint64_value=3, int64_value=4; XLine.name=2, events=4, display_name=11; XEvent.metadata_id=1, duration_ps=3,
num_occurrences=5; XEventMetadata.id=1, name=2, display_name=4. Names stand after the events that point to them, so
events are counted by number first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import ijson

from receipts.ingest.device_profile import event_arguments
from receipts.ingest.protobuf import BYTES, Message, Torn, Wire
from receipts.ingest.reader import FileReader, JsonStream
from receipts.ingest.reading import TRANSFERS, Reading, Tally
from receipts.ingest.source import Source
from receipts.ingest.spans import nanoseconds, span_service
from receipts.readers.xla import operations
from receipts.readers.xla.spans import XlaSpans, read_planes

MAX_NAMES: Final = 20_000
MAX_DEPTH: Final = 1_000
MAX_PROGRAMS: Final = 20
# trace.json.gz is cut at a million events.
MAX_EVENTS: Final = 1_000_000
_EXECUTE: Final = re.compile(r"\w*Executable::Execute\w* \((\S{1,200})\)")
_CALL: Final = re.compile(r"PjitFunction\(([^)]{1,200})\)")
_READ: Final = re.compile(
    r"np\.asarray\(jax\.Array\)|\$array\.py:\d+ (_value|__float__|__int__|__bool__|__index__|item|tolist|__array__)"
)
_ARRAY: Final = re.compile(r"\$array\.py:\d+ ")
_FRAME: Final = re.compile(r"\$(\S{1,200}:\d+) (.{1,200})")
_MODULE: Final = re.compile(r"([\w.\-]{1,200}?)(?:\(\d+\))?")
_COLLECTIVE: Final = re.compile(
    r"%?((?:all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute)(?:-start)?)(?=[.\s]|$)"
)
_CUDNN: Final = re.compile(r"cudnn.*(?:sdpa|fmha|flash_[fb]prop)|fmha_v2|flash_fprop_")
_TE: Final = re.compile(r"transformer_engine::.*(?:fused_attn|flash)")
_FLASH: Final = re.compile(r"splash|flash_attention|flash_mha|mha_(?:forward|backward)")


class Profile:
    """Events of one profile; ``first`` and ``last`` are microseconds. ``cut`` says that some were lost."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.first, self.last = math.inf, 0.0
        self.cut = False
        # Executions and their times by plane and program, and calls of jitted functions.
        self._programs, self._spent = Tally[tuple[str, str]](MAX_NAMES), Counter[str]()
        self._dispatches = Tally[str](MAX_NAMES)
        # Reads of arrays by their kind, and by the function that asked for them.
        self._reads, self._callers = Counter[str](), Tally[str](MAX_NAMES)
        # The open calls of each thread with their ends.
        self._stacks: dict[Any, list[tuple[float, str]]] = {}
        self._exchanges = Counter[str]()
        self._devices: set[str] = set()
        self._operations = 0
        self._of_torch = False

    def add(self, plane: str, line: str, name: str, detail: str = "", count: int = 1, duration: float = 0.0) -> None:
        """``count`` events of one name; ``detail`` is the operation's own text, where the file keeps it."""
        self.reading.records += count
        self._of_torch = self._of_torch or name.startswith("SyncTensorsGraph")
        if plane.startswith("/device:"):
            self._devices.add(plane[8:40].partition(":")[0])
            if line == "XLA Modules":
                module = _MODULE.fullmatch(name)
                self._program(plane, module[1] if module else name[:200], count, duration)
                return
            if line in ("Steps", "XLA TraceMe", "Framework Name Scope", "Framework Ops", "Source code"):
                return
            self._operations += count
            if (exchange := _COLLECTIVE.match(name)) is not None:
                self._exchanges[exchange[1]] += count
            text = f"{name} {detail}"
            kernel = "cudnn_fmha" if _CUDNN.search(text) else "te_fused" if _TE.search(text) else None
            if kernel is None and _FLASH.search(text) is not None:
                kernel = operations.attention(operations.MOSAIC, text)
            if kernel is not None:
                self.reading.see("attention", kernel, "kernels", count=count)
        elif (read := _READ.fullmatch(name)) is not None:
            self._reads[read[1] or "np.asarray"] += count
        elif (call := _CALL.fullmatch(name)) is not None:
            self._dispatches.add(call[1], times=count)
        elif (run := _EXECUTE.fullmatch(name)) is not None:
            self._program("/host", run[1], count, duration)
        elif name.startswith("ThunkExecutor::Execute"):
            self._operations += count

    def frame(self, thread: Any, name: str, start: float, end: float) -> None:
        """A call on a Python thread in the order of their starts; the tracer writes ``$file.py:LINE function``."""
        stack = self._stacks.setdefault(thread, []) if len(self._stacks) < MAX_NAMES else self._stacks.get(thread, [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        # A read reads by way of others.
        if _READ.fullmatch(name) and not any(_READ.fullmatch(outer) for _, outer in stack):
            match = _FRAME.fullmatch(next((outer for _, outer in reversed(stack) if not _ARRAY.match(outer)), ""))
            where = f" in {match[2]} ({match[1]})" if match else ""
            self._callers.add(f"{name.rpartition(' ')[2]} of an array{where}")
        if len(stack) < MAX_DEPTH:
            stack.append((end, name))

    def _program(self, plane: str, name: str, count: int, duration: float) -> None:
        if self._programs.add((plane, name), times=count):
            self._spent[name] += duration  # type: ignore[assignment]

    def describe(self) -> None:
        """Put into the reading what the events prove."""
        reading, reads = self.reading, max(self._reads.values(), default=0)
        # torch_xla calls by these names what it traces, schedules and runs; JAX dispatches jitted functions.
        by_torch = self._of_torch and not self._dispatches
        reading.see("framework", "torch-xla" if by_torch else "jax", "kernels")
        if "TPU" in self._devices:
            self.reading.see("runtime", "pjrt-tpu", "kernels")
        elif "GPU" in self._devices:
            self.reading.see("runtime", "cuda", "kernels")
        elif not self._devices and self._operations:
            self.reading.see("runtime", "cpu", "kernels")
        # Each program as often as the plane that ran it most.
        runs = Counter[str]()
        for (_, name), count in self._programs.items():
            runs[name] = max(runs[name], count)
        reading.counters = {f"executions of {name}": runs[name] for name, _ in self._spent.most_common(MAX_PROGRAMS)}
        reading.counters |= self._exchanges
        reading.counters |= {f"reads by {name}": count for name, count in self._reads.items()}
        # The step is the program that took most of the time. Where no execution has a program's name, it is what is
        # called by the name of a step.
        called = [count for name, count in self._dispatches.items() if "step" in name or "train" in name]
        steps = runs[self._spent.most_common(1)[0][0]] if runs else max(called, default=None)
        # Python's dispatch is in the profile, so a read would be, too.
        if reads or (not self.cut and reading.records < MAX_EVENTS and self._dispatches and steps):
            reading.host_transfers, reading.steps_covered = reads, steps
            named = {name: count for name, count in self._reads.items() if name.startswith("__")} or self._reads
            causes = self._callers or {f"{name} of an array": count for name, count in named.items()}
            for cause, count in causes.items():
                reading.blame(TRANSFERS, cause, count)
        if steps is not None:
            reading.remark("note", f"a profile of {steps} steps: it proves these, and its times are not a run's")


MAX_THREADS: Final = 100_000
MAX_NAME: Final = 300
MAX_DETAIL: Final = 1_000
_OWN: Final = (b'"highres-ticks"', b'"/host:CPU"', b'"/device:TPU', b'"/device:GPU', b'"/host:metadata"')
_TORCH: Final = (b'"schemaVersion"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b"aten::")
_DETAILS: Final = ("long_name", "tf_op", "hlo_op", "name")


class JaxProfiler(FileReader):
    """Events of a JAX profile in JSON."""

    source = "jax-profiler"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A Chrome trace with XLA's planes, and nothing of torch's."""
        return (
            head.lstrip()[:1] == b"{"
            and b'"traceEvents"' in head
            and any(mark in head for mark in _OWN)
            and not any(mark in head for mark in _TORCH)
        )

    def read(self, source: Source) -> list[Reading]:
        """One reading; events are streamed, and a broken file is read as far as it goes."""
        reading = Reading(self.source)
        profile = Profile(reading)
        service = span_service()
        spans = XlaSpans(service, "JAX trace.json") if service is not None else None
        planes: dict[Any, str] = {}
        lines: dict[Any, str] = {}
        ends: dict[Any, float] = {}
        with source.open() as stream:
            try:
                for event in ijson.items(JsonStream(stream, source), "traceEvents.item", use_float=True):
                    if isinstance(event, dict):
                        _take(event, profile, planes, lines, ends)
                        if spans is not None and event.get("ph") == "X":
                            _span(event, spans, planes, lines)
            except (ijson.JSONError, ValueError, OverflowError) as error:
                profile.cut = True
                reading.remark("broken", f"the trace ends in the middle or is no JSON: {error!s:.100}")
        profile.cut = profile.cut or bool(source.broken)
        if reading.records >= MAX_EVENTS:
            reading.remark("missing", f"{reading.records:,} events: such files are cut at a million, others are lost")
        profile.describe()
        reading.lasts = max(0.0, profile.last - profile.first) * 1e-6
        broken = source.broken or next((note.text for note in reading.remarks if note.kind != "note"), "")
        if service is not None and spans is not None and (extract := spans.finish({}, broken)) is not None:
            reading.extracts[service.name] = extract
        return [reading]


def _take(
    event: dict[str, Any], profile: Profile, planes: dict[Any, str], lines: dict[Any, str], ends: dict[Any, float]
) -> None:
    phase, name = event.get("ph"), event.get("name")
    process, thread = event.get("pid"), event.get("tid")
    if not isinstance(name, str) or isinstance(process, list | dict) or isinstance(thread, list | dict):
        return
    args = event_arguments(event)
    if phase == "M":
        label = str(args.get("name", ""))[:MAX_NAME]
        if name == "process_name" and len(planes) < MAX_THREADS:
            planes[process] = label
        elif name == "thread_name" and len(lines) < MAX_THREADS:
            lines[process, thread] = label
    elif phase == "X":
        spent, start = _number(event.get("dur")), _number(event.get("ts"))
        profile.first, profile.last = min(profile.first, start), max(profile.last, start + spent)
        if name.startswith("PjitFunction("):
            # One call may be told by two events, one inside the other.
            if start < ends.get((thread, name), -1.0) or len(ends) >= MAX_THREADS:
                return
            ends[thread, name] = start + spent
        if name.startswith("$"):
            profile.frame(thread, name, start, start + spent)
        profile.add(
            planes.get(process, ""),
            lines.get((process, thread), ""),
            name[:MAX_NAME],
            " ".join(str(args[key])[:MAX_DETAIL] for key in _DETAILS if key in args),
            duration=spent,
        )


def _span(event: dict[str, Any], spans: XlaSpans, planes: dict[Any, str], lines: dict[Any, str]) -> None:
    process, thread, begin = event.get("pid"), event.get("tid"), nanoseconds(event.get("ts"))
    if begin is None or not isinstance(name := event.get("name"), str) or isinstance(thread, list | dict):
        return
    if isinstance(process, list | dict):
        return
    plane, line, lane = planes.get(process, ""), lines.get((process, thread), ""), thread if type(thread) is int else 0
    end = begin + max(0, nanoseconds(event.get("dur")) or 0)
    spans.event(plane, line, lane, name[:MAX_NAME], begin, end, event_arguments(event))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e18 else 0.0


MAX_KINDS: Final = 500_000
MAX_PLANE_EVENTS: Final = 20_000_000
MAX_EVENT_NAME: Final = 4_000
_TASK: Final = "Task Environment"  # the plane that says when the profile began and when it ended
_CLOCKS: Final = range(10**18, 10**19)  # nanoseconds since 1970, from 2001 on
_HEAD: Final = re.compile(
    rb"\A\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?"
    rb"\x12[\x01-\x7f](?:/host:|/device:|Task Env|#Chip)"
)
Counts = dict[tuple[str, int], tuple[int, int]]


class Xplane(FileReader):
    """Events of a JAX profile in protocol buffers."""

    source = "jax-profiler"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A first field that is a plane with a profiler's name."""
        return _HEAD.match(head) is not None

    def read(self, source: Source) -> list[Reading]:
        """One reading; the file is streamed, and a broken one is read as far as it goes."""
        reading = Reading(self.source)
        profile = Profile(reading)
        with source.open() as stream:
            wire = Wire(source, stream)
            try:
                for number, kind, value in wire.fields(None):
                    if number == 1 and kind == BYTES:
                        clocks = _plane(wire, wire.at + value, profile)
                        if clocks:
                            reading.between = min(clocks) / 1e9, max(clocks) / 1e9
                    elif number == 4 and kind == BYTES and not reading.host:
                        reading.host = wire.text(value, 200)
                    elif kind == BYTES:
                        wire.leap(value)
            except Torn as error:
                profile.cut = True
                reading.remark("broken", f"{error}; what stands before it was read")
        if profile.cut and not reading.remarks:
            reading.remark("missing", f"more than {MAX_PLANE_EVENTS:,} events: the rest was not counted")
        profile.describe()
        if (service := span_service()) is not None:
            spans = XlaSpans(service, "JAX xplane")
            facts = {"host": reading.host, "between": reading.between}
            with suppress(Torn):  # the first pass has said so
                facts |= read_planes(source, spans)
            broken = next((note.text for note in reading.remarks if note.kind != "note"), "")
            if (extract := spans.finish(facts, broken)) is not None:
                reading.extracts[service.name] = extract
        return [reading]


def _plane(wire: Wire, stop: int, profile: Profile) -> list[int]:
    """Take in one plane; when the profile began and ended, in nanoseconds since 1970, of the plane that says so."""
    name, counts, clocks = "", Counts(), list[int]()
    names: dict[int, str] = {}
    try:
        for number, kind, value in wire.fields(stop):
            if kind != BYTES:
                continue
            if number == 2:
                name = wire.text(value, 200)
            elif number == 3:
                _line(wire, wire.at + value, counts, profile)
            elif number == 4 and len(names) < MAX_KINDS:
                names.update(_metadata(wire.message(value)))
            elif number == 6 and name == _TASK:
                statistic = wire.message(value)
                clocks += [time for field in (3, 4) for time in statistic.listed(field) if time in _CLOCKS]
            else:
                wire.leap(value)
    finally:
        for (line, identity), (count, spent) in counts.items():
            label = names.get(identity, "")
            # A TPU's metadata is the instruction's text, and its name begins it.
            short = label.split(" = ", 1)[0].lstrip("%")
            host = not name.startswith("/device:")
            detail = "" if host else label
            profile.add(name, line, label if host else short, detail, count, spent / 1e6)
    return clocks


def _line(wire: Wire, stop: int, counts: Counts, profile: Profile) -> None:
    name = ""
    mine: dict[int, tuple[int, int, int]] = {}
    for number, kind, value in wire.fields(stop):
        if kind != BYTES:
            continue
        if number == 2:
            name = wire.text(value, 200)
        elif number == 4 and profile.reading.records < MAX_PLANE_EVENTS:
            event = wire.message(value)
            # The number of its metadata, start and duration in picoseconds, and how many events it represents.
            identity, start, spent, times = (event.whole(field) or 0 for field in (1, 2, 3, 5))
            spent, times = max(0, spent), max(1, min(times, 1 << 31))
            if identity in mine or len(mine) < MAX_KINDS:
                before, total, end = mine.get(identity, (0, 0, -1))
                if start >= end or times > 1:
                    # What runs inside an event of its own name is the same call.
                    mine[identity] = before + times, total + spent, start + spent
        else:
            profile.cut = profile.cut or number == 4
            wire.leap(value)
    for identity, (times, spent, _) in mine.items():
        if (name, identity) in counts or len(counts) < MAX_KINDS:
            before, total = counts.get((name, identity), (0, 0))
            counts[name, identity] = before + times, total + spent


def _metadata(entry: Message) -> Iterator[tuple[int, str]]:
    """One entry of the map from a number to an event's name."""
    for kind in entry.inner(2):
        yield entry.whole(1) or kind.whole(1) or 0, kind.text(2, MAX_EVENT_NAME)


READERS = (JaxProfiler, Xplane)
