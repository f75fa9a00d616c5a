"""Spans of a JAX or torch_xla profile: each operation with what its program says it computes, and the steps.

An operation is one of the program's instructions. Its *hint* is what the classes read: ``hlo:`` with its own opcode,
the compiler's category, and for a fusion the opcodes of its body, which xplane.pb keeps as HLO protos in the plane
``/host:metadata`` (xla/service/hlo.proto). A TPU marks steps on the device (line ``Steps``); otherwise they are those
of ``StepTraceAnnotation`` on the host, and an operation was launched by the call that executed its program: of one
``run_id``, of one ``correlation_id`` on GPU, or, where executions have no number, the call of the same place.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Final

from receipts.ingest.protobuf import BYTES, Message, Wire
from receipts.ingest.source import Source
from receipts.ingest.spans import MAX_SPANS, Activities, SpanService, SpanTrace

MAX_MARKS: Final = 100_000
_MAX_NAME: Final = 400
_DEVICE: Final = re.compile(r"/device:((?:TPU|GPU):\d+)")
_EXECUTE: Final = re.compile(r"\w*Executable::Execute(Helper\w*)?( \(.*)?")
# What holds operations that are events of their own, and what a profiler writes beside them.
_CONTAINERS: Final = re.compile(r"%?(?:while|conditional|call|region|async-start|copy-start)(?:\.\d+)*$")
_NUMBER: Final = re.compile(r"(?:\.(?:\d+|clone|remat\d*))+$")
_COLLECTIVES: Final = re.compile(r"%?(?:all-|reduce-scatter|collective-|ragged-all)")
_SILENT: Final = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "iota", "after-all"})
_HOST_LINES: Final = ("$", "end: ", "ThreadpoolListener", "ThunkExecutor")


class XlaSpans:
    """What is kept of the events of one profile, in any order, and the `SpanTrace` that they make."""

    def __init__(self, service: SpanService, producer: str) -> None:
        self._service = service
        self.trace = SpanTrace(producer)
        self._kinds: dict[str, str] = {}
        self._chains: dict[str, int] = {}
        self._runs: dict[str, tuple[array[int], array[int]]] = {}  # by device: run, correlation
        self._launches: dict[tuple[str, int], int] = {}
        self._executions: list[int] = []

    def event(
        self, plane: str, line: str, lane: int, name: str, begin: int, end: int, stats: Mapping[str, Any]
    ) -> None:
        """One event, times in nanoseconds. ``stats`` may have a ``hint``, the opcodes of the operation's body."""
        trace = self.trace
        if device := _DEVICE.match(plane):
            if line == "Steps":
                number = _whole(stats.get("step_num", name))
                trace.tiled, marks = True, trace.device_marks.setdefault(device[1], [])
                if len(marks) < MAX_MARKS:
                    marks.append((len(marks) if number < 0 else number, begin, end))
            elif line.startswith("Stream #" if device[1][0] == "G" else "XLA Ops") or (
                line == "Async XLA Ops" and _COLLECTIVES.match(name)
            ):
                self._operation(device[1], lane, name, begin, end, stats)
        elif "hlo_op" in stats:
            self._operation(f"CPU:{_whole(stats.get('device_ordinal'), 0)}", lane, name, begin, end, stats)
        elif "step_num" in stats:
            if len(trace.marks) < MAX_MARKS:
                trace.marks.append((_whole(stats["step_num"], len(trace.marks)), begin, end))
        elif (match := _EXECUTE.fullmatch(name)) is not None:
            if (run := _signed(stats.get("run_id"))) is not None:
                self._launches.setdefault(("run", run), begin)
            elif match[1]:
                self._executions.append(begin)
        elif (correlation := _whole(stats.get("correlation_id"))) > 0:
            self._launches.setdefault(("call", correlation), begin)
        if not device:
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._kinds[name] = self._service.host_kind(name.rpartition(" ")[2] if name[:1] == "$" else name)
            if kind:
                trace.host.append((kind, begin, end))

    def _operation(self, device: str, lane: int, name: str, begin: int, end: int, stats: Mapping[str, Any]) -> None:
        trace, short = self.trace, name.split(" = ", 1)[0].lstrip("%")[:_MAX_NAME]
        if _CONTAINERS.match(short):
            return
        if sum(map(len, trace.devices.values())) >= MAX_SPANS:
            trace.lost += 1
            return
        # A kernel of a GPU has a name of its own beside its instruction's.
        operation = str(stats.get("hlo_op") or short)
        hint = stats.get("hint") or hint_of(operation, str(stats.get("hlo_category") or ""))
        chain = self._chains.get(hint)
        if chain is None:
            chain = self._chains[hint] = len(trace.chains)
            trace.chains.append((0, trace.names.number(hint)))
        work = trace.devices.setdefault(device, Activities())
        kind = "s" if short.startswith("Memset") else "y" if short.startswith("Memcpy") else "x"
        work.add(begin, end, lane, trace.names.number(short), chain, -1, kind)
        runs, calls = self._runs.setdefault(device, (array("q"), array("q")))
        runs.append(_signed(stats.get("run_id")) or 0)
        calls.append(_whole(stats.get("correlation_id")))

    def finish(self, facts: dict[str, Any], broken: str) -> bytes | None:
        """The plugin's extract; None where no operation was seen."""
        trace = self.trace
        trace.facts, trace.broken = facts, broken
        for device, work in trace.devices.items():
            runs, calls = self._runs[device]
            began: dict[int, int] = {}
            for run, begin in zip(runs, work.begin, strict=True):
                began[run] = min(begin, began.get(run, begin))
            launched = {run: self._launches[key] for run in began if (key := ("run", run)) in self._launches}
            # One device runs its programs in the order of the calls, and each call is of all devices.
            order, times = sorted(began, key=began.__getitem__), sorted(self._executions)
            if not launched and order and times and not len(times) % len(order):
                each = len(times) // len(order)
                launched = {run: times[at * each] for at, run in enumerate(order)}
            for row, (run, call) in enumerate(zip(runs, calls, strict=True)):
                # Without any number, as torch_xla has it on a CPU, an operation is of the last call before it.
                last = bisect_right(times, work.begin[row]) if order == [0] else 0
                own = times[last - 1] if last else launched.get(run, -1)
                work.launched[row] = self._launches.get(("call", call), own)
        return self._service.extract(trace) if trace.devices else None


def hint_of(operation: str, category: str = "", body: str = "") -> str:
    """What the classes read of an operation: its opcode, which begins its name, then its category and its body."""
    stem = _NUMBER.sub("", operation)
    return " ".join(part for part in (f"hlo:{stem}", category, body) if part)[:_MAX_NAME]


def _whole(value: Any, other: int = -1) -> int:
    """A number, which JSON holds as text; ``other`` for anything else."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else other


def _signed(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1 << 62 else None


def bodies(proto: Message) -> dict[str, str]:
    """The hint of each instruction of an HLO proto: opcodes of the computations that a fusion calls, or its target."""
    module = proto.only(1) or proto
    opcodes: dict[int, set[str]] = {}
    calls: dict[int, set[int]] = {}
    rows: list[tuple[str, str, list[int], str]] = []
    for computation in module.inner(3):
        own, called = (
            opcodes.setdefault(computation.whole(5) or 0, set()),
            calls.setdefault(computation.whole(5) or 0, set()),
        )
        for item in computation.inner(2):
            opcode, inside = item.text(2, 60), item.listed(38)
            own.add(f"{opcode} {item.text(28, 120)}".strip())
            called.update(inside)
            if opcode not in _SILENT:
                scope = (item.only(7) or Message(b"")).text(2, 200) if opcode == "custom-call" else ""
                rows.append((item.text(1, _MAX_NAME), opcode, inside, f"{item.text(28, 120)} {scope}".strip()))

    def within(starts: list[int]) -> set[str]:
        seen, waiting = set[int](), list(starts)
        while waiting:
            if (at := waiting.pop()) not in seen:
                seen.add(at)
                waiting.extend(calls.get(at, ()))
        return set().union(*(opcodes.get(at, set()) for at in seen)) - _SILENT - {"fusion", "call"}

    hints = {}
    for name, opcode, inside, target in rows:
        # What a reduction or a sort calls is its step; of an asynchronous one it is the operation.
        body = " ".join(sorted(within(inside))) if opcode in ("fusion", "call") or opcode.startswith("async") else ""
        hints[name] = hint_of(name if opcode != "fusion" or not body else "fusion", target or opcode, body)
    return hints


class _Plane:
    """The texts of one plane, which stand behind its events."""

    def __init__(self) -> None:
        self.name = ""
        self.events: dict[int, tuple[str, dict[str, Any]]] = {}
        self.stats: dict[int, str] = {}
        self.own: dict[str, Any] = {}

    def read(self, wire: Wire, stop: int) -> None:
        """Pass over the lines, and take the rest."""
        kinds, own = list[Message](), list[Message]()
        for number, kind, value in wire.fields(stop):
            if number == 2 and kind == BYTES:
                self.name = wire.text(value, 200)
            elif number == 5 and kind == BYTES:
                entry = wire.message(value)
                for item in entry.inner(2):
                    self.stats[entry.whole(1) or item.whole(1) or 0] = item.text(2, _MAX_NAME)
            elif number in (4, 6) and kind == BYTES:
                (kinds if number == 4 else own).append(wire.message(value))
            elif kind == BYTES:
                wire.leap(value)
        for entry in kinds:
            for item in entry.inner(2):
                name = item.text(2, _MAX_NAME)
                self.events[entry.whole(1) or item.whole(1) or 0] = name, self.values(item.inner(5))
        self.own = self.values(own)

    def values(self, stats: list[Message]) -> dict[str, Any]:
        """Statistics by their names; a reference is the text that it points to."""
        values: dict[str, Any] = {}
        for item in stats:
            name = self.stats.get(item.whole(1) or 0, "")
            number = next((value for field in (3, 4) if (value := item.whole(field)) is not None), None)
            if name == "Hlo Proto":
                values[name] = item.pieces(6)[-1] if item.pieces(6) else b""
            elif (reference := item.whole(7)) is not None:
                values[name] = self.stats.get(reference, "")
            else:
                values[name] = number if number is not None else item.text(5, 200)
        return values


def planes_of(source: Source) -> Iterator[tuple[int, _Plane]]:
    """Each plane of a file with its place, without its lines."""
    with source.open() as stream:
        wire = Wire(source, stream)
        for number, kind, value in wire.fields(None):
            if kind != BYTES:
                continue
            if number == 1:
                plane = _Plane()
                at, stop = wire.at, wire.at + value
                plane.read(wire, stop)
                yield at, plane
            else:
                wire.leap(value)


def read_planes(source: Source, spans: XlaSpans) -> dict[str, Any]:
    """Take in the events of an xplane file, in two passes: texts, then events; what it says of where it was made."""
    facts: dict[str, Any] = {}
    planes: dict[int, _Plane] = {}
    hints: dict[str, str] = {}
    for at, plane in planes_of(source):
        planes[at] = plane
        for name, fact in (("jaxlib_version", "jaxlib"), ("device_type_string", "accelerator")):
            if isinstance(value := plane.own.get(name), str) and value:
                facts[fact] = value
        if isinstance(process := plane.own.get("process_id"), int) and process > 0:
            facts["processes"] = [process]
        if isinstance(options := plane.own.get("profile_options"), str) and options:
            facts["options"] = {"profile_options": options}
        for _, values in plane.events.values():
            if proto := values.pop("Hlo Proto", b""):
                # The largest program has the names of the step.
                for name, hint in bodies(Message(proto)).items():
                    hints[name] = max(hint, hints.get(name, ""), key=len)
    with source.open() as stream:
        wire = Wire(source, stream)
        for number, kind, value in wire.fields(None):
            if kind != BYTES:
                continue
            plane, stop = planes.get(wire.at, _Plane()) if number == 1 else _Plane(), wire.at + value
            if _DEVICE.match(plane.name) or plane.name.startswith("/host:C"):
                _read_lines(wire, stop, plane, hints, spans)
            else:
                wire.leap(value)
    return facts


def _read_lines(wire: Wire, stop: int, plane: _Plane, hints: Mapping[str, str], spans: XlaSpans) -> None:
    lane = 0
    for number, kind, value in wire.fields(stop):
        if number != 3 or kind != BYTES:
            if kind == BYTES:
                wire.leap(value)
            continue
        lane, line, start = lane + 1, "", 0
        for field, form, size in wire.fields(wire.at + value):
            if field == 2 and form == BYTES:
                line = wire.text(size, 200)
            elif field == 3 and form != BYTES:
                start = size * 1000
            elif field == 4 and form == BYTES:
                event = wire.message(size)
                name, known = plane.events.get(event.whole(1) or 0, ("", {}))
                begin = start + (event.whole(2) or 0)
                end = begin + max(0, event.whole(3) or 0)
                stats = known
                if not name.startswith(_HOST_LINES):
                    stats = known | plane.values(event.inner(4))
                    if hint := hints.get(str(stats.get("hlo_op") or name.split(" = ", 1)[0].lstrip("%"))):
                        stats["hint"] = hint
                spans.event(plane.name, line, lane, name, begin // 1000, end // 1000, stats)
            elif form == BYTES:
                wire.leap(size)
