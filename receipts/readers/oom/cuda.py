"""Failed allocations of CUDA programs: torch's messages and their causes, CUDA's libraries, NCCL, the host.

Why an allocation of torch failed, from the figures of its own message.

torch's own out-of-memory messages: the caching allocator of 1.0 to 2.10, cudaMallocAsync, and HIP, XPU and NPU. The
wordings are those of c10/cuda/CUDACachingAllocator.cpp and CUDAMallocAsyncAllocator.cpp. A message that was cut keeps
what is before the cut.

Memory that others could not get: CUDA's libraries and NCCL beside torch's allocator, and the host. Also what only
looks like a failure. A library that cannot make its handle says so for want of memory and after an earlier
device-side assertion alike: those are uncertain, ``is_oom`` None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from receipts.base.units import GIB
from receipts.ingest.literals import SIZE, binary_size
from receipts.ingest.reading import MAX_TEXT, AllocationFailure, Place
from receipts.readers.oom.refusal import refused

# A CUDA context, cuBLAS' and NCCL's usual buffers take below this; more is somebody's memory.
USUAL_OUTSIDE: Final = 2 * GIB
LARGE_OUTSIDE: Final = 0.05
LARGE_FOREIGN: Final = 0.10
MOSTLY_FOREIGN: Final = 0.50


@dataclass(frozen=True, slots=True)
class OomFigures:
    """What a message says, in bytes; None where it is not printed. ``processes`` are those it names by number.

    ``unallocated`` is what the allocator keeps without a live tensor in it.
    """

    requested: int | None = None
    capacity: int | None = None
    free: int | None = None
    allowed: int | None = None
    this_process: int | None = None
    allocated: int | None = None
    unallocated: int | None = None
    processes: tuple[int, ...] = ()
    endless: bool = False

    @property
    def limit(self) -> int | None:
        """What the process may take: the device's capacity, or the share that it was allowed."""
        limits = [item for item in (self.capacity, self.allowed) if item is not None]
        return min(limits, default=None)

    @property
    def used(self) -> int | None:
        """What this process has in use; above the capacity, or below half of its tensors, it is no measurement.

        Tensors may exceed it a little: memory that lies under two addresses is counted twice.
        """
        if self.this_process is None or self.this_process > (self.capacity or self.this_process):
            return None
        return self.this_process if 2 * self.this_process >= (self.allocated or 0) else None


def classify(figures: OomFigures) -> str:
    """The class of a failed allocation, by the first rule that holds.

    A request above the device; another process that holds most of it; enough kept but unusable (fragmentation); another
    process; memory outside the allocator; else the device is full.
    """
    if figures.endless:
        return "oversized_request"
    requested = figures.requested
    if requested is None:
        return "capacity"
    if figures.limit is not None and requested > figures.limit:
        return "oversized_request"
    capacity, foreign = figures.capacity or 0, _foreign(figures)
    if foreign > MOSTLY_FOREIGN * capacity > 0:
        return "foreign_process"
    if figures.unallocated is not None and figures.unallocated >= requested:
        return "fragmentation"
    missing = requested - (figures.free or 0)
    if foreign >= max(missing, LARGE_FOREIGN * capacity, 1):
        return "foreign_process"
    outside = 0
    if figures.used is not None and figures.allocated is not None:
        outside = figures.used - figures.allocated - (figures.unallocated or 0)
    if outside >= max(missing, LARGE_OUTSIDE * capacity, USUAL_OUTSIDE):
        return "outside_allocator"
    return "capacity"


def _foreign(figures: OomFigures) -> int:
    """Bytes that other processes hold: those that the message names, or what is neither free nor this process's.

    Inside a container the own process is printed under the host's number; it is the one whose memory is what the
    allocator holds, and a context's worth more. Where no process is named at all, what the allocator does not hold may
    be this process's own, unless it is most of the device.
    """
    others, own = sorted(figures.processes), figures.used
    if own is None and figures.allocated is not None:
        own = figures.allocated + (figures.unallocated or 0)
        near = [item for item in others if 0 <= item - own * 0.98 <= max(USUAL_OUTSIDE, 0.15 * item)]
        if near:
            others.remove(min(near, key=lambda item: abs(item - own)))
    if own is None or figures.capacity is None or figures.free is None:
        return sum(others)
    rest = figures.capacity - figures.free - own
    if figures.used is None and (others or rest <= MOSTLY_FOREIGN * figures.capacity):
        rest = 0
    return max(sum(others), rest)


_DEVICE: Final = r"(?:GPU|XPU|NPU|MLU)"
_START = re.compile(
    r"(?:\b(?P<runtime>CUDA|HIP|XPU|NPU|MLU|MUSA|MPS backend) out of memory\b(?:\. ?Tried)?"
    r"|Allocation on device (?P<device>\d{1,4})?.{0,3}?would exceed allowed memory"
    # Without its figures, as programs print an exception's first line.
    r"|(?<=OutOfMemoryError: )Allocation on device\b"
    # What people quote without its beginning.
    rf"|Tried to allocate {SIZE}(?=[. ]{{1,2}}\(?{_DEVICE} \d))"
)
# Without figures only an exception's own line is a message; prose names the same words.
_EXCEPTION = re.compile(r"\s{0,8}(?:what\(\): +)?(?:[\w.]{1,80}\.)?\w{0,60}(?:Error|Exception)\W{1,3}$")
_ENDLESS = re.compile(r"Tried to allocate more than 1EB")
_CHIP = re.compile(rf"\b{_DEVICE} (\d{{1,4}})(?:;| has a total)")
_PROCESS = re.compile(rf"Process \d{{1,10}} has {SIZE} memory in use")
_WENT_ON = re.compile(
    r"ignoring this choice|attempting to recover|will retry|retrying|skipping (?:this )?batch|reducing (?:the )?batch"
    r"|falling back|decreasing batch|trying again",
    re.IGNORECASE,
)
_FIGURES: Final = {
    name: tuple(re.compile(wording) for wording in wordings)
    for name, wordings in {
        "requested": (rf"Tried to allocate {SIZE}", rf"Requested ?: {SIZE}"),
        "capacity": (rf"total capaci?ty of {SIZE}", rf"{SIZE} total capacity", rf"Device limit ?: {SIZE}"),
        "free": (rf"of which {SIZE} is free", rf"; {SIZE} free", rf"Free \(according to CUDA\) ?: {SIZE}"),
        "allowed": (
            rf"{SIZE} allowed;",
            rf"max allowed: {SIZE}",
            rf"set by user-supplied memory fraction\) ?: {SIZE}",
        ),
        "this_process": (rf"this process has {SIZE} memory in use",),
        "allocated": (
            rf"{SIZE} is allocated by PyTorch",
            rf"{SIZE} already allocated",
            rf"Currently allocated ?: {SIZE}",
            rf"MPS allocated: {SIZE}",
        ),
        # Up to torch 1.1 the message gave what is cached and free; later what is reserved in all.
        "unallocated": (rf"{SIZE} is reserved by PyTorch but unallocated", rf"{SIZE} cached\)"),
        "reserved": (rf"{SIZE} reserved (?:in total )?by PyTorch",),
    }.items()
}
# What follows the last figure: nothing more to wait for.
_END = re.compile(
    r"but unallocated|B reserved (?:in total )?by PyTorch|ALLOC_CONF|user-supplied memory fraction\)\s*: \d.*B"
)


def starts(body: str) -> bool:
    """Whether a message of torch's allocators begins on this line."""
    return _START.search(body) is not None


def report_ended(text: str) -> bool:
    """Whether the message's last figure has been read."""
    return _END.search(text) is not None


def allocator_failures(text: str) -> list[AllocationFailure]:
    """The failed allocations that a text holds, without their place; ``text`` has single blanks for any white space."""
    starts = list(_START.finditer(text))
    stops = [*(match.start() for match in starts), len(text)][1:]
    read = (_failure(text, match, stop) for match, stop in zip(starts, stops, strict=False))
    return [item for item in read if item is not None]


def notes(text: str) -> list[str]:
    """What a person should know of a message beside its figures."""
    lines = []
    if any(match["runtime"] == "HIP" for match in _START.finditer(text)):
        lines.append("HIP's message: an AMD device, no NVIDIA run")
    capacity, allocated = _first(text, _FIGURES["capacity"]), _first(text, _FIGURES["allocated"])
    if capacity is not None and allocated is not None and allocated > capacity:
        lines.append("more is allocated than the device holds: the driver pages to the host")
    return lines


def _failure(text: str, match: re.Match[str], stop: int) -> AllocationFailure | None:
    message = text[match.start() : min(stop, match.start() + 8000)]
    values = {name: _first(message, wordings) for name, wordings in _FIGURES.items()}
    reserved, allocated = values.pop("reserved"), values["allocated"]
    if values["unallocated"] is None and reserved is not None and allocated is not None:
        values["unallocated"] = max(0, reserved - allocated)
    others = (binary_size(process[1]) for process in _PROCESS.finditer(message))
    figures = OomFigures(
        **values,
        processes=tuple(item for item in others if item is not None),
        endless=_ENDLESS.search(message) is not None,
    )
    if values["requested"] is None and not figures.endless and not _EXCEPTION.match(text[: match.start()][-160:]):
        return None
    chip = _CHIP.search(message)
    return AllocationFailure(
        place=Place(),
        is_oom=True,
        class_=classify(figures),
        requested_bytes=figures.requested,
        used_bytes=figures.used,
        free_bytes=figures.free,
        limit_bytes=figures.limit,
        message=message[:MAX_TEXT].rstrip(),
        chip=int(match["device"] or (chip[1] if chip else -1)) if match["device"] or chip else None,
        fatal=_WENT_ON.search(text[max(0, match.start() - 200) : match.start()] + message[:3000]) is None,
    )


def _first(message: str, wordings: tuple[re.Pattern[str], ...]) -> int | None:
    for wording in wordings:
        match = wording.search(message)
        if match is not None:
            return binary_size(match[1])
    return None


# What CUDA's runtime and driver say of themselves, to whoever asked: torch, Transformer Engine, userbuffers, others.
_RUNTIME = re.compile(
    r"(?:CUDA|cuda|Cuda) (?:runtime |driver )?[Ee]rror:? (?:\(2\) ?:? ?)?'?out of memory"
    r"|CUDA failed with error out of memory|HIP error: out of memory"
    r"|Triton Error \[(?:CUDA|HIP)\]:? .{0,40}?out of memory"
    # bitsandbytes' C++.
    r"|Error out of memory at line \d{1,6} in file"
    r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"
    r"|cuda(?:Malloc|Host)\w{0,30}(?:\(\))? failed:? out of memory"
    r"|cuda runtime error \(2\)"
    # llm.c and its like, on two lines.
    r"|\[CUDA ERROR\] at file \S{1,200}(?: ?\(line \d{1,6}\))?: (?:\w{1,60}: )?out of memory"
)
_NCCL = re.compile(
    r"(?:\((?P<operator>\w{1,60})\) )?(?:NCCL WARN )?Cuda failure (?:2 )?'out of memory'"
    r"|NCCL WARN Failed to (?:CUDA|Cuda|cuMem) ?\w{0,20}(?: async)? (?P<requested>\d{1,20}) bytes"
)
# host:process:thread [device]: the device of the rank that prints.
_NCCL_DEVICE = re.compile(r":\d{1,9}:\d{1,9} \[(\d{1,4})\] ")
_HANDLE = re.compile(
    r"\b(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER)_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)"
    r"|\bCUFFT_ALLOC_FAILED|\bCUDNN_STATUS_NOT_INITIALIZED"
    r"|\bCUBLAS_STATUS_NOT_INITIALIZED(?= when calling `?cublasCreate)"
)
_HANDLE_CALL = re.compile(r"when calling `?(\w{1,80})")
# Only the path that reports a failed allocation asks NVML who holds the memory; its assertion hides the message.
_MASKED = re.compile(r"NVML_SUCCESS == \w{1,20}\W? INTERNAL ASSERT FAILED at \S{0,120}CUDACachingAllocator\.cpp")
_HOST = re.compile(
    r"(?:DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate "
    r"(?P<exact>\d{1,20}) bytes)"
    rf"|Unable to allocate (?P<requested>{SIZE}) for an array"
    r"|\b[Oo]ut of memory: Kill(?:ed)? process|Memory cgroup out of memory"
    r"|\boom-kill\b|\boom_kill event|invoked oom-killer|\bOOMKilled\b|\bOOM Killed\b"
    r"|\[Errno 12\] Cannot allocate memory|: Cannot allocate memory \(12\)"
    r"|ray\.exceptions\.OutOfMemoryError|due to the node running low on memory"
    r"|\bsrun: error: [^\n]{1,80}: Out Of Memory"
    r"|\bExceeded job memory limit|\bstd::bad_alloc\b|^(?:\w+\.)?(?:numpy\S{0,40})?MemoryError\b(?!: Unable)"
)
# A process that a signal ended, or shared memory that ran out: for want of the host's memory, or for another reason.
_PERHAPS_HOST = re.compile(
    r"DataLoader worker \(pid[^:]{1,60}\) is killed by signal: (?:Killed|Bus error)|insufficient shared memory \(shm\)"
    r"|creating shared memory segment \S{1,200} \(size (?P<requested>\d{1,20})\)|: line \d{1,6}: +\d{1,9} Killed\b"
    # A shell's words on a line of their own, or behind a progress bar: `oom_text.BEGIN`.
    r"|^(?:[^\n]{0,400}?\])? ?Killed\b|^\[\d{1,3}\][+-]? (?:\d{1,9} )?[Kk]illed\b"
)
# PaddlePaddle's allocator; its units are of base 1024.
_PADDLE = re.compile(
    rf"Out of memory error on GPU (?P<chip>\d{{1,4}})\. Cannot allocate (?P<requested>{SIZE}) memory on GPU \d{{1,4}}, "
    rf"(?P<used>{SIZE}) memory has been allocated and available memory is only (?P<free>{SIZE})"
)
_POOL = re.compile(r"Allocator \(GPU_(\d{1,4})_")
_NO_FAILURE: Final = (
    # The pool's caller can do with less.
    re.compile(r"Allocator \(\w{1,60}\) ran out of memory trying to allocate [^\n]{0,300}?not a failure"),
    # The compiler could not rematerialise more; it compiles on.
    re.compile(r"Can't reduce memory use below"),
    # A compiler's report of what it places.
    re.compile(r"Total hbm usage >="),
    # Kernel and libtpu are of different versions; the kernel's text is full of memory spaces.
    re.compile(r"Unsupported version: expected <= \d{1,6} but got"),
    # E0102, a buffer of another layout; E0200, a core that halted.
    re.compile(r"expected parameter \d{1,9} of size [^\n]{1,300}?incompatible size"),
    re.compile(r"device halted prematurely|Core halted unexpectedly"),
    # MaxText's static estimate, before anything ran.
    re.compile(r"Total (?:estimated )?memory size: [\d.]{1,20} GB"),
)


def library_failures(text: str) -> list[AllocationFailure]:
    """The failures of CUDA, its libraries and the host that a text holds, without place."""
    failures = []
    nccl = list(_NCCL.finditer(text))
    for match in nccl:
        device = _NCCL_DEVICE.search(text, max(0, match.start() - 200), match.end())
        chip, operator = int(device[1]) if device else None, match["operator"] or "NCCL"
        failures.append(_refused(text, match, "outside_allocator", operator=operator, chip=chip))
    for match in _HANDLE.finditer(text):
        call = _HANDLE_CALL.search(text, match.end(), match.end() + 120)
        operator = call[1] if call else match[0].partition("_")[0]
        failures.append(_refused(text, match, "outside_allocator", is_oom=None, operator=operator))
    if masked := _MASKED.search(text):
        failures.append(_refused(text, masked, "capacity"))
    if (runtime := _RUNTIME.search(text)) and not nccl:
        failures.append(_refused(text, runtime, "outside_allocator"))
    failures += [_refused(text, match, "capacity") for match in _PADDLE.finditer(text)]
    if host := _HOST.search(text):
        failures.append(_refused(text, host, "host"))
    elif perhaps := _PERHAPS_HOST.search(text):
        failures.append(_refused(text, perhaps, "host", is_oom=None))
    return failures


def no_failures(text: str) -> list[AllocationFailure]:
    """What looks like a failed allocation in a text and is none."""
    matches = [match for pattern in _NO_FAILURE if (match := pattern.search(text)) is not None]
    pools = [_POOL.search(match[0]) for match in matches]
    return [
        _refused(text, match, "not_oom", is_oom=False, chip=int(pool[1]) if pool else None, fatal=False)
        for match, pool in zip(matches, pools, strict=True)
    ]


# Of these the words around the match say more than those behind it.
_refused: Final = partial(refused, before=160, behind=200)
