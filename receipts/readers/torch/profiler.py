"""torch.profiler: the printed `key_averages` table, operators that a loop summed itself, and Chrome traces.

`key_averages().table()` prints sums by name, cut at a number of rows. Source: PyTorch
`torch/autograd/profiler_util.py`, `_build_table`: columns two blanks apart under dashes, names cut at a width with
dots, times with units of their own. A table shows the largest rows, so that nothing follows from a name that is not in
it.

A loop may sum its operators itself, and keep them as JSON in the place of a trace: ``{"producer":
"torch.profiler", "steps": 2, "operators": {NAME: n}}``; an entry may be ``{"count": n, "types": […]}``, or
``matrix_types`` counts the types of all multiplications. The loops under ``benchmarks/`` and ``examples/`` write it.

Chrome traces (kineto) show which kernels and operators ran in the profiled steps, and for how long. Source:
pytorch/kineto `libkineto/src/output_json.cpp`: `deviceProperties`, `distributedInfo` and versions first, then
`traceEvents`, times in microseconds, from PyTorch 2.4 on after `baseTimeNanoseconds`. Events are in no order. A trace
of gigabytes is read as a stream, in the memory of its kernels' times.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import ijson
import orjson

from receipts.ingest.cuda_kernels import OTHER, classify
from receipts.ingest.device_profile import Histogram, TableReader, Timeline, count, event_arguments, seconds, state_gpus
from receipts.ingest.literals import counted
from receipts.ingest.reader import FileReader, JsonReader
from receipts.ingest.reading import Reading, Tally
from receipts.ingest.source import BROKEN, HEAD, Source
from receipts.ingest.spans import nanoseconds, span_service
from receipts.readers.torch.body import TraceBody
from receipts.readers.torch.host import Host
from receipts.readers.torch.spans import SpanCollector
from receipts.readers.torch.work import Work
from receipts.receipt.names import dtype

_CALLS: Final = "# of Calls"
_DEVICE: Final = ("Self CUDA", "Self XPU", "Self PrivateUse1", "Self device")


class KeyAveragesReader(TableReader):
    """Kernels by their own time on the device, operators by their calls."""

    source: ClassVar[str] = "torch-profiler"
    anchors: ClassVar[tuple[bytes, ...]] = (b"# of Calls",)
    limits = ("note", "a table of sums shows its largest rows only: what is not in it may have run")

    def line(self, text: str, number: int) -> bool:
        return self.begin(text, number) if _CALLS in text else self.table(text)

    def row(self, cells: dict[str, str]) -> bool:
        name, calls = cells.get("Name", ""), count(cells.get(_CALLS, ""))
        if not name or calls is None:
            return False
        self.reading.records += 1
        host = seconds(cells.get("Self CPU", ""), "us") or 0.0
        device = next((seconds(cells[key], "us") for key in _DEVICE if key in cells), None) or 0.0
        if name == "ProfilerStep*":
            self.reading.steps_covered = calls
        elif "Memcpy DtoH" in name:
            self.reading.host_transfers = (self.reading.host_transfers or 0) + calls
        elif _is_kernel(name, host, device):
            self.histogram.kernel(name, calls, device)
        else:
            self.histogram.operator(name, calls)
            if name == "aten::_local_scalar_dense":
                self.reading.count(name, calls)
        return True


def _is_kernel(name: str, host: float, device: float) -> bool:
    """Operators and annotations are listed with the time of what they launched, kernels without any of the host."""
    if device <= 0.0 or name.startswith(("aten::", "nccl:", "Optimizer.", "ProfilerStep")):
        return False
    return host == 0.0 or classify(name) != OTHER


class OperatorSumsReader(JsonReader):
    """Operators by name; how they were grouped into steps, or ran on a device, sums do not tell."""

    source = "torch-profiler"
    what = "sums of operators"
    marks = (b'"operators"', b'"producer"', b'"torch.profiler"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Operators with the type of their first input; a multiplication's, where it is known, says what ran."""
        histogram = Histogram()
        for name, entry in _entries(document, "operators"):
            count, types = (entry.get("count"), entry.get("types")) if isinstance(entry, dict) else (entry, None)
            if counted(count):
                reading.records += 1
                first = types[0] if isinstance(types, list) and types else None
                histogram.operator(name, count, first if isinstance(first, str) else None)
        for name, count in _entries(document, "matrix_types"):
            if counted(count) and (kind := dtype(name)) is not None:
                histogram.matmul_types[kind].add(count, 0.0)
        steps = document.get("steps")
        reading.steps_covered = steps if counted(steps) and steps else None
        if histogram.matmul_types:
            reading.see("framework", "torch", "kernels")
        histogram.write(reading)


def _entries(document: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    entries = document.get(name)
    return entries.items() if isinstance(entries, dict) else ()


_TRAILING = re.compile(rb"[\s,]+\Z")


def state_head(reading: Reading, body: TraceBody) -> tuple[dict[str, Any], int | None]:
    """State the devices, ranks and versions before the events; the head, empty if unread, and `state_gpus`' number."""
    head = _document(body.head)
    listed = head.get("deviceProperties")
    devices = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    gpus = ((item.get("name"), item.get("computeMajor"), item.get("computeMinor")) for item in devices)
    arch = state_gpus(reading, gpus, "deviceProperties")
    if devices:
        reading.counters["gpus"] = len(devices)
    sizes = {item["totalGlobalMem"] for item in devices if type(item.get("totalGlobalMem")) is int}
    if len(sizes) == 1:
        reading.counters["gpu.bytes_total"] = sizes.pop()
    info = head.get("distributedInfo")
    size, rank, nccl = map(info.get, ("world_size", "rank", "nccl_version")) if isinstance(info, dict) else [None] * 3
    if isinstance(size, int) and 0 < size < 10_000_000:
        reading.state("hardware.chips", size, f"world_size {size}", record="distributedInfo")
    if isinstance(nccl, str) and nccl:
        reading.state("platform.nccl", nccl[:40], record="distributedInfo")
    if isinstance(rank, int):
        reading.remark("note", f"written by rank {rank}")
    runtime = head.get("cuda_runtime_version")
    if isinstance(runtime, int) and 1000 <= runtime < 1_000_000:
        text = f"{runtime // 1000}.{runtime % 1000 // 10}"
        reading.state("platform.cuda", text, str(runtime), record="cuda_runtime_version")
    if isinstance(version := head.get("PyTorch Version") or head.get("torch_version"), str):
        reading.state("wheels.torch", version[:100], record="head")
        reading.version = version[:100]
    return head, arch


def _document(text: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(_TRAILING.sub(b"", text) + b"}")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


MAX_STEPS: Final = 100_000
_MAX_SHAPES: Final = 64
_MAX_PROCESSES: Final = 4096
_TYPES: Final = {"float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "fp16", "double": "fp64"}
# An earlier time is no time since 1970: older writers count from the start of the machine.
_YEAR_2001: Final = 1e9
_MICRO: Final = 1e-6
_NANO: Final = 1e-9
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|kernel|user_annotation|python_function|cuda_runtime|cuda_driver|ac2g|fwdbwd'
    rb'|gpu_memcpy|gpu_memset|gpu_user_annotation|Operator|Kernel)"'
)
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
_RUNTIME: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime"})
_OPERATORS: Final = frozenset({"cpu_op", "operator", "user_annotation"})
_ACTIVITIES: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_OPTIONS: Final = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


class TorchTraceReader(FileReader):
    """A trace that `export_chrome_trace` or `tensorboard_trace_handler` wrote, packed or not."""

    source: ClassVar[str] = "torch-profiler"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        start = head.lstrip()[:1]
        if start == b"{":
            properties, schema = b'"deviceProperties"' in head, b'"schemaVersion"'
            kineto = properties or schema in head or _CATEGORIES.search(head) is not None
            # A long list of process groups may fill the head before the events begin.
            begins = len(head) >= HEAD and schema in head[:4096] and properties
            return begins or (kineto and b'"traceEvents"' in head and b'"jaxlib' not in head)
        return start == b"[" and b'"ph"' in head and _CATEGORIES.search(head) is not None

    def read(self, source: Source) -> list[Reading]:
        trace = _Trace(Reading(self.source))
        collects = gc.isenabled()
        gc.disable()  # events hold no cycles; the search for some would take a tenth of the time
        try:
            with source.open() as stream:
                body = TraceBody(stream, source)
                trace.events(body)
        finally:
            if collects:
                gc.enable()
        trace.finish(body)
        return [trace.reading] if trace.reading.records else []


class _Trace:
    """What is gathered over one pass."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.histogram = Histogram()
        self.timeline = Timeline()
        self.host, self.work = Host(), Work()
        self.first, self.last = math.inf, 0.0
        self.origin: int | None = None
        service = span_service()
        self.spans = SpanCollector(service) if service is not None else None
        self.extract = service.name if service is not None else ""
        self.head: dict[str, Any] = {}
        self.no_device = False
        self.steps, self.optimizer_steps = Tally[str](MAX_STEPS), Tally[str](100)
        self.error = ""
        self.arch: int | None = None
        self.base = 0.0

    def events(self, body: TraceBody) -> None:
        head, self.arch = state_head(self.reading, body)
        self.head = head
        if isinstance(base := head.get("baseTimeNanoseconds"), int):
            self.base = base / 1e9
        # Whoever looked for devices and found none says so.
        self.no_device = head.get("deviceProperties") == []
        self.reading.host = str(head.get("host_name") or "")[:200]
        seen = 0
        try:
            for event in body.events():
                seen += 1
                if isinstance(event, dict):
                    self._event(event)
        except (ijson.JSONError, UnicodeDecodeError, *BROKEN) as error:
            # Behind the last event nothing matters: some writers leave a name there that is no JSON.
            if not body.closed or seen < body.marks:
                self.error = f"{error}".partition("\n")[0][:120]

    def finish(self, body: TraceBody) -> None:
        reading = self.reading
        reading.complete = not self.error and not body.source.broken and body.closed
        if not reading.complete and reading.records:
            why = self.error or body.source.broken or "it ends before its last event"
            reading.remark("broken", f"the trace is broken ({why}); what stands before that was read")
        self.histogram.write(reading, arch=self.arch)
        if self.first < math.inf and self.base + self.first * _MICRO > _YEAR_2001:
            reading.between = self.base + self.first * _MICRO, self.base + self.last * _MICRO
        covered = len(self.steps) or max(self.optimizer_steps.values(), default=0)
        reading.steps_covered = covered or None
        if self.work.shapes_missing:
            # The recorder's traces have shapes: what was taken out may not be all.
            reading.complete = False
            reading.remark("broken", "a trace of the recorder without the shapes of its operators: it was changed")
        if reading.records and not covered:
            reading.remark("missing", "no ProfilerStep mark and no optimizer step: how many steps it covers is unknown")
        # A host read may be of a tensor that lives on the host (an optimizer's step count): what crossed over is what
        # was copied. Without a device in the trace nothing is known to have crossed.
        if reads := self.histogram.host_reads:
            self.reading.counters["aten::_local_scalar_dense"] = reads
        if self.histogram.kernels:
            self.reading.host_transfers = self.histogram.copies_to_host
        self._exposed(covered)
        self._path(covered)
        head = self.head
        if self.spans is None or not reading.records:
            return
        ranks = head.get("distributedInfo")
        ranks = ranks if isinstance(ranks, dict) else {}
        devices = head.get("deviceProperties")
        facts: dict[str, Any] = {
            "rank": ranks.get("rank"),
            "world": ranks.get("world_size"),
            "host": reading.host,
            "processes": sorted(reading.processes)[:64],
            "between": reading.between,
            "accelerator": stated.value if (stated := reading.stated.get("hardware.accelerator")) else None,
            "torch": reading.version,
            "cuda": stated.value if (stated := reading.stated.get("platform.cuda")) else None,
            "gpus": len(devices) if isinstance(devices, list) else None,
            "options": {name: bool(head[name]) for name in _OPTIONS if name in head},
        }
        broken = "" if reading.complete else self.error or body.source.broken or "it ends before its last event"
        if (extract := self.spans.finish(facts, broken)) is not None:
            reading.extracts[self.extract] = extract

    def _path(self, covered: int) -> None:
        """What a whole trace shows of who hosted the step, on what, how much of it compiled, and what left the path."""
        reading, host = self.reading, self.host
        if host.computes or self.histogram.engine_ops:
            reading.see("framework", "fsdp2" if self.histogram.fsdp2 else "torch", "kernels")
        if host.host_only and not self.histogram.kernels:
            reading.see("runtime", "cpu", "kernels", count=host.host_only.total())
        elif self.no_device and reading.complete and host.computes and not (self.histogram.kernels or host.launches):
            reading.see("runtime", "cpu", "kernels", count=host.computes)
        if not (reading.complete and covered):
            return
        fused = sum(total.count for kernel, total in self.histogram.kernels.items() if kernel.work == "inductor")
        posture = host.posture(library_ops=self.histogram.engine_ops, fused_kernels=fused)
        if posture is not None:
            reading.see("posture", posture, "kernels")
        attends = self.work.attention(posture, device=bool(self.histogram.kernels)) if host.computes else None
        if attends is not None and not any(seen.leaf == "attention" for seen in reading.seen):
            reading.see("attention", attends, "kernels", count=host.computes)
        if posture == "regional" and (regions := host.regions()):
            reading.state("compile.regions", regions, ", ".join(regions))
        if posture == "eager" and not self.histogram.checkpoints and (applied := host.recompute()) is not None:
            parts = "nothing" if applied == "none" else "parts"
            text = f"the backward pass computes {parts} of the forward pass again"
            reading.state("numerics.recompute_applied", applied, text)
        if (claim := reading.stated.get("numerics.recompute_applied")) is not None:
            reading.counters[f"recompute.{claim.value}"] = 1
        if posture == "eager" and not self.histogram.graph_launches:
            marks, optimized = sum(self.steps.values()), max(self.optimizer_steps.values(), default=0)
            self.work.write(reading, host, self.histogram, marks, optimized)
        if not self.histogram.kernels:
            return
        # Beside a device: operators that computed on the host; none, where all are seen and launched something.
        on_host, unsure = host.on_host()
        if on_host:
            reading.fallbacks = on_host
        elif not host.launches or not (host.computes or self.histogram.engine_ops or self.histogram.graph_launches):
            what = "no operators of the host were recorded (ProfilerActivity.CPU): that one ran there is not excluded"
            reading.remark("missing", what)
        elif unsure or host.lost:
            what = f"{unsure or host.lost} multiplications launched nothing, or could not be kept"
            reading.remark("missing", f"{what}: with record_shapes=True it would show whether they ran on the host")
        else:
            reading.fallbacks = {}

    def _event(self, event: dict[str, Any]) -> None:
        name, category = event.get("name"), event.get("cat")
        if not isinstance(name, str) or not isinstance(category, str) or event.get("ph") not in ("X", "B"):
            return
        category = category.lower()
        started, lasted = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        begin = None if started is None else started / 1000
        duration = None if lasted is None else lasted / 1000
        if self.spans is not None and started is not None and lasted is not None:
            if category in _ACTIVITIES:
                self.spans.activity(name, category, event, started, started + lasted)
            elif category in _OPERATORS:
                self.spans.operator(name, event, started, started + lasted)
            elif category in _RUNTIME:
                self.spans.runtime(name, event, started, started + lasted)
        if begin is not None:
            if begin < self.first:
                self.first = begin
            if begin > self.last:
                self.last = begin
        if category == "kernel":
            self.reading.records += 1
            kernel = self.histogram.kernel(name, 1, (lasted or 0) * _NANO)
            communicates = kernel.work == "communication"
            if communicates and "all_to_all" in str(event_arguments(event).get("Collective name", ""))[:80]:
                self.histogram.alltoall += 1
            if started is not None and lasted is not None:
                device = event_arguments(event).get("device")
                where = device if isinstance(device, int) and 0 <= device < 4096 else 0
                # From the first kernel on, a double holds every nanosecond.
                self.origin = started if self.origin is None else self.origin
                self.timeline.add(where, float(started - self.origin), float(lasted), communicates=communicates)
        elif category in _OPERATORS:
            self._operator(name, category, event, begin, duration)
        elif category in _RUNTIME:
            self.histogram.operator(name)
            self.host.launch(event, begin)
        elif category == "gpu_memcpy" and "DtoH" in name:
            self.histogram.copies_to_host += 1
            self.reading.records += 1

    def _operator(
        self, name: str, category: str, event: dict[str, Any], begin: float | None, duration: float | None
    ) -> None:
        reading = self.reading
        reading.records += 1
        process = event.get("pid")  # of a device's events it is the device
        if category == "cpu_op" and type(process) is int and len(reading.processes) < _MAX_PROCESSES:
            reading.processes.add(process)
        if name.startswith("aten::_scaled_dot_product") and "backward" not in name:
            # On which shapes and types attention ran: those of its first argument, the query.
            shape = _first(event, "Input Dims")
            whole = isinstance(shape, list) and len(shape) == 4 and all(type(item) is int for item in shape)
            if whole and len(reading.queries) < _MAX_SHAPES:
                reading.queries.add((shape[2], shape[3]))
            if (kind := _TYPES.get(str(_first(event, "Input type")))) is not None:
                reading.query_types.add(kind)
        if name.startswith("Prof") and (match := _STEP.fullmatch(name)):
            self.steps.add(match[1].lstrip("0"))
        elif name.startswith("Optimizer.step#"):
            self.optimizer_steps.add(name)
        elif not self.work.mark(name, begin, duration):
            self.work.operator(name, event, begin)
            self.host.operator(name, event, begin, duration)
            if name.startswith(("FSDP::", "fsdp::")):
                self.histogram.fsdp2 += 1
            elif category != "user_annotation":
                self.work.function(name)
                self.histogram.operator(name, 1, _input_type(event), (duration or 0.0) * _MICRO)

    def _exposed(self, covered: int) -> None:
        if not self.timeline.communicates:
            return
        if self.timeline.lost:
            self.reading.remark("missing", "too many kernels to tell exposed communication")
            return
        exposed = {device: time * _NANO for device, time in self.timeline.exposed().items()}
        device = max(exposed, key=lambda item: exposed[item])
        text = f"device {device}: {exposed[device]:.6g} s in which only communication ran"
        if covered and self.reading.complete:
            each = exposed[device] / covered
            self.reading.state("measurement.exposed_communication_seconds", each, f"{text}, over {covered} steps")
        self.reading.remark("note", text)


def _first(event: dict[str, Any], name: str) -> Any:
    """What an operator says of its first argument; only with ``record_shapes=True``."""
    listed = event_arguments(event).get(name)
    return listed[0] if isinstance(listed, list) and listed else None


def _input_type(event: dict[str, Any]) -> str | None:
    types = event_arguments(event).get("Input type")
    if not isinstance(types, list):
        return None
    return next((item for item in types if isinstance(item, str) and item not in ("", "Scalar", "ScalarList")), None)


READERS = (KeyAveragesReader, OperatorSumsReader, TorchTraceReader)
