"""Spans of a torch.profiler trace: each kernel with the operators that launched it, and the time of the host's own.

A kernel's launch is the call of the runtime with its ``correlation``; the operators around that call, on its thread,
are the chain that launched the kernel. Without such a call the ``External id`` names the operator. Operators of the
backward pass that have the ``Sequence number`` of one of the forward pass stand below the chain of that one. Where no
device computed, the deepest operator of each thread is what ran.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

from receipts.ingest.device_profile import event_arguments
from receipts.ingest.spans import MAX_SPANS, Activities, SpanService, SpanTrace, in_order

STEP: Final = re.compile(r"ProfilerStep#(\d{1,9})")
MAX_MARKS: Final = 100_000
_MAX_NAME: Final = 400
_LAUNCHES: Final = re.compile(r"launch|memcpy|memset|graph|enqueue", re.I)
_KINDS: Final = {"kernel": "k", "gpu_memcpy": "y", "memcpy": "y", "gpu_memset": "s", "memset": "s"}
# Columns of operators: begin, end, thread, name, sequence number, External id.
_NONE: Final = -1
_NO_CALLS: Final = (array("q"), array("i"), array("i"))


class SpanCollector:
    """What is kept of the events of one trace, in any order, and the `SpanTrace` that they make."""

    def __init__(self, service: SpanService) -> None:
        self._service = service
        self.trace = SpanTrace("torch.profiler")
        self._kinds: dict[str, str] = {}
        self._threads: dict[Any, int] = {}
        self._operators = tuple(array(kind) for kind in "qqiiii")
        self._launches = tuple(array(kind) for kind in "qqi")  # correlation, begin, thread
        self._work: dict[str, tuple[Activities, array[int], array[int]]] = {}  # with correlation and External id
        self._held = 0
        self._backwards = 0
        self._groups: set[int] = set()  # of how many ranks a collective was

    def _full(self) -> bool:
        if self._held >= MAX_SPANS:
            self.trace.lost += 1
            return True
        self._held += 1
        return False

    def _thread(self, event: dict[str, Any]) -> int:
        return self._threads.setdefault((event.get("pid"), event.get("tid")), len(self._threads))

    def operator(self, name: str, event: dict[str, Any], begin: int, end: int) -> None:
        """An operator, or an annotation of the program."""
        trace, name = self.trace, name[:_MAX_NAME]
        if name.startswith("Prof") and (match := STEP.fullmatch(name)):
            if len(trace.marks) < MAX_MARKS:
                trace.marks.append((int(match[1]), begin, end))
            return
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = self._service.host_kind(name)
        if kind:
            trace.host.append((kind, begin, end))
        if self._full():
            return
        arguments = event_arguments(event)
        begins, ends, threads, names, sequences, externals = self._operators
        begins.append(begin)
        ends.append(end)
        threads.append(self._thread(event))
        names.append(trace.names.number(name))
        sequences.append(_small(arguments.get("Sequence number")))
        externals.append(_small(arguments.get("External id")))

    def runtime(self, name: str, event: dict[str, Any], begin: int, end: int) -> None:
        """A call of the device's runtime."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = self._service.host_kind(name[:_MAX_NAME])
        if kind:
            self.trace.host.append((kind, begin, end))
        correlation = _whole(event_arguments(event).get("correlation"))
        if correlation > 0 and _LAUNCHES.search(name) and not self._full():
            for column, value in zip(self._launches, (correlation, begin, self._thread(event)), strict=True):
                column.append(value)

    def activity(self, name: str, category: str, event: dict[str, Any], begin: int, end: int) -> None:
        """A kernel, a copy or a fill of a device."""
        if self._full():
            return
        arguments = event_arguments(event)
        device, stream = arguments.get("device", event.get("pid")), arguments.get("stream", event.get("tid"))
        activities, correlations, externals = self._work.setdefault(
            str(device)[:40], (Activities(), array("q"), array("i"))
        )
        kind = _KINDS[category]
        if kind == "k" and "graph id" in arguments and "graph node id" not in arguments:
            kind = "g"
        if (size := _whole(arguments.get("Group size"))) > 0 and len(self._groups) < 64:
            self._groups.add(size)
        self._backwards += end < begin
        lane = stream if type(stream) is int and abs(stream) < 1 << 62 else 0
        activities.add(begin, end, lane, self.trace.names.number(name[:_MAX_NAME]), 0, _NONE, kind)
        correlations.append(_whole(arguments.get("correlation")))
        externals.append(_small(arguments.get("External id", arguments.get("external id"))))

    def finish(self, facts: dict[str, Any], broken: str) -> bytes | None:
        """The plugin's extract; None where nothing was collected."""
        trace = self.trace
        trace.facts, trace.broken = facts | {"groups": sorted(self._groups)}, broken
        if self._backwards and not broken:
            trace.broken = f"{self._backwards} activities end before they begin"
        # Each thread with the rows of its operators; the one that began first is first, as forward is.
        rows_of: list[array[int]] = [array("i") for _ in self._threads]
        for row, thread in enumerate(self._operators[2]):
            rows_of[thread].append(row)
        names = [str(name) for name in self._threads]
        first = [min((self._operators[0][row] for row in own), default=0) for own in rows_of]
        threads = sorted(enumerate(rows_of), key=lambda item: (first[item[0]], names[item[0]]))
        walk = _Walk(trace, self._operators)
        if self._work:
            calls = self._launched()
            devices = [item[0] for _, item in sorted(self._work.items())]
            for thread, rows in threads:
                walk.launches(rows, *calls.get(thread, _NO_CALLS), devices)
            for device, (activities, _, externals) in sorted(self._work.items()):
                walk.link(activities, externals)
                trace.devices[device] = activities
        else:
            work = Activities()
            for lane, (_, rows) in enumerate(threads):
                walk.self_time(rows, lane, work)
            if len(work):
                trace.devices["cpu"] = work
        return self._service.extract(trace) if trace.devices else None

    def _launched(self) -> dict[int, tuple[array[int], array[int], array[int]]]:
        """The calls that launched something, by thread: when, and which row of which device, in columns."""
        numbers, begins, threads = self._launches
        calls: dict[int, tuple[array[int], array[int], array[int]]] = {}
        order = array("i", in_order(numbers, begins.__getitem__))
        for device, (_, (activities, correlations, _)) in enumerate(sorted(self._work.items())):
            at = 0
            for row in in_order(correlations, activities.begin.__getitem__):
                wanted = correlations[row]
                while at < len(order) and numbers[order[at]] < wanted:
                    at += 1
                if wanted > 0 and at < len(order) and numbers[order[at]] == wanted:
                    begin = activities.launched[row] = begins[order[at]]
                    of = calls.setdefault(threads[order[at]], (array("q"), array("i"), array("i")))
                    for column, value in zip(of, (begin, device, row), strict=True):
                        column.append(value)
        return calls


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else _NONE


def _small(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 31 else _NONE


class _Walk:
    """Operators, nested as they ran: the chain of names around each moment of a thread."""

    def __init__(self, trace: SpanTrace, operators: tuple[array[int], ...]) -> None:
        self._trace = trace
        self._begin, self._end, _, self._name, self._sequence, self._external = operators
        self._known: dict[tuple[int, int], int] = {}
        self._forward: dict[int, int] = {}
        self._own = array("i", bytes(4 * len(self._begin)))  # the chain that ends with each operator
        names = trace.names.texts
        self._backward = {
            number for number, text in enumerate(names) if "ackward" in text or text.startswith("autograd::")
        }
        self._sought = {
            sequence
            for name, sequence in zip(self._name, self._sequence, strict=True)
            if sequence >= 0 and name in self._backward
        }

    def _chain(self, around: int, name: int) -> int:
        number = self._known.get((around, name))
        if number is None:
            number = self._known[around, name] = len(self._trace.chains)
            self._trace.chains.append((around, name))
        return number

    def _nested(self, rows: array[int]) -> Iterator[tuple[int, int, int]]:
        """Each operator of a thread with its end and its chain, outer ones first."""
        begin, end, names = self._begin, self._end, self._trace.names.texts
        columns = array("q", (begin[row] for row in rows))
        stack: list[tuple[int, int]] = []
        for at in in_order(columns, lambda at: (-end[rows[at]], names[self._name[rows[at]]])):
            row = rows[at]
            while stack and stack[-1][0] <= begin[row]:
                stack.pop()
            around = stack[-1][1] if stack else 0
            sequence = self._sequence[row]
            if sequence >= 0:
                if self._name[row] not in self._backward:
                    # Operators before it may bear its number; the last one made the node of the backward pass.
                    if sequence in self._sought:
                        self._forward[sequence] = self._chain(around, self._name[row])
                elif not around or self._trace.chains[around][1] not in self._backward:
                    around = self._forward.get(sequence, around)
            chain = self._chain(around, self._name[row])
            self._own[row] = chain
            stack.append((end[row], chain))
            yield row, end[row], chain

    def launches(
        self,
        rows: array[int],
        begins: array[int],
        of: array[int],
        launched: array[int],
        devices: Sequence[Activities],
    ) -> None:
        """Give each activity that a thread launched the chain around its launch."""
        stack: list[tuple[int, int]] = []
        waiting = in_order(begins, lambda call: (of[call], launched[call]))
        call = next(waiting, None)
        for row, end, chain in self._nested(rows):
            begin = self._begin[row]
            while call is not None and begins[call] < begin:
                devices[of[call]].chain[launched[call]] = _around(stack, begins[call])
                call = next(waiting, None)
            _around(stack, begin)
            stack.append((end, chain))
        while call is not None:
            devices[of[call]].chain[launched[call]] = _around(stack, begins[call])
            call = next(waiting, None)

    def link(self, activities: Activities, externals: array[int]) -> None:
        """Give activities whose launch is not in the trace the chain of their External id."""
        chains = activities.chain
        wanted = {number for row, number in enumerate(externals) if number >= 0 and not chains[row]}
        named: dict[int, tuple[int, int, int]] = {}
        for row, number in enumerate(self._external):
            if number in wanted:
                # Of several operators with one number, the innermost of the last.
                named[number] = max(
                    named.get(number, (_NONE, 0, 0)), (self._begin[row], -self._end[row], self._own[row])
                )
        for row, number in enumerate(externals):
            if not chains[row] and number in named:
                chains[row] = named[number][2]

    def self_time(self, rows: array[int], thread: int, work: Activities) -> None:
        """Lay the time of a thread to the deepest operator."""
        stack: list[tuple[int, int]] = []
        now = 0

        def until(moment: int) -> None:
            nonlocal now
            while stack:
                end, chain = stack[-1]
                if min(end, moment) > now:
                    stop = min(end, moment)
                    if len(work) and work.chain[-1] == chain and work.end[-1] == now and work.lane[-1] == thread:
                        work.end[-1] = stop
                    else:
                        work.add(now, stop, thread, self._trace.chains[chain][1], chain, _NONE, "o")
                    now = stop
                if end > moment:
                    return
                stack.pop()

        for row, end, chain in self._nested(rows):
            until(self._begin[row])
            now = self._begin[row]
            stack.append((end, chain))
        until(max((end for end, _ in stack), default=0))


def _around(stack: list[tuple[int, int]], moment: int) -> int:
    """The innermost chain at a moment, 0 for none; what ended before it leaves the stack."""
    while stack and stack[-1][0] <= moment:
        stack.pop()
    return stack[-1][1] if stack else 0
