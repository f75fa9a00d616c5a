"""Memory that others could not get: CUDA's libraries and NCCL beside torch's allocator, and the host.

Also what only looks like a failure. A library that cannot make its handle says so for want of memory and after an
earlier device-side assertion alike: those are uncertain, ``is_oom`` None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from receipts.ingest.evidence.memory.refusal import refused
from receipts.ingest.evidence.memory.sizes import SIZE
from receipts.ingest.reading import AllocationFailure

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


def failures(text: str) -> list[AllocationFailure]:
    """The failures of CUDA, its libraries and the host that a text holds, without place."""
    return [*_cuda(text), *_others(text)]


def no_failures(text: str) -> list[AllocationFailure]:
    """What looks like a failed allocation in a text and is none."""
    matches = [match for pattern in _NO_FAILURE if (match := pattern.search(text)) is not None]
    pools = [_POOL.search(match[0]) for match in matches]
    return [
        _refused(text, match, "not_oom", is_oom=False, chip=int(pool[1]) if pool else None, fatal=False)
        for match, pool in zip(matches, pools, strict=True)
    ]


def _cuda(text: str) -> Iterator[AllocationFailure]:
    nccl = list(_NCCL.finditer(text))
    for match in nccl:
        device = _NCCL_DEVICE.search(text, max(0, match.start() - 200), match.end())
        chip, operator = int(device[1]) if device else None, match["operator"] or "NCCL"
        yield _refused(text, match, "outside_allocator", operator=operator, chip=chip)
    for match in _HANDLE.finditer(text):
        call = _HANDLE_CALL.search(text, match.end(), match.end() + 120)
        operator = call[1] if call else match[0].partition("_")[0]
        yield _refused(text, match, "outside_allocator", is_oom=None, operator=operator)
    if masked := _MASKED.search(text):
        yield _refused(text, masked, "capacity")
    if (runtime := _RUNTIME.search(text)) and not nccl:
        yield _refused(text, runtime, "outside_allocator")


def _others(text: str) -> Iterator[AllocationFailure]:
    for match in _PADDLE.finditer(text):
        yield _refused(text, match, "capacity")
    if host := _HOST.search(text):
        yield _refused(text, host, "host")
    elif perhaps := _PERHAPS_HOST.search(text):
        yield _refused(text, perhaps, "host", is_oom=None)


# Of these the words around the match say more than those behind it.
_refused: Final = partial(refused, before=160, behind=200)
