"""Out-of-memory messages of XLA's GPU client: its pools, asynchronous ones, and what the driver refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from receipts.ingest.evidence.memory.sizes import SIZE, size
from receipts.ingest.evidence.memory.xla_failure import NAME, STEP, largest, named, refused
from receipts.ingest.evidence.reading import AllocationFailure

_POOL = re.compile(
    rf"Out of memory while trying to allocate (?:(?P<exact>\d{{1,20}}) bytes|(?P<requested>{SIZE}))"
    rf"(?:\.? ?\[executable_name={NAME})?"
)
_HOST = re.compile(
    r"Out of memory allocating (?P<exact>\d{1,20}) bytes|failed to alloc(?:ate)? (?P<requested>\d{1,20}) bytes on host"
)
_REQUEST = re.compile(
    rf"[Ff]ailed to allocate request for (?P<requested>{SIZE})(?: \((?P<exact>\d{{1,20}})B\))?"
    r"(?: on device ordinal (?P<chip>\d{1,4}))?"
)
_DRIVER = re.compile(
    rf"[Ff]ailed to allocate {SIZE} \((?P<exact>\d{{1,20}}) bytes\) from device: "
    r"(?:RESOURCE_EXHAUSTED[: ]{1,6})?CUDA_ERROR_OUT_OF_MEMORY"
)
_ASYNC = re.compile(r"(?:gpu_async_(?P<chip>\d{1,4}) )?cuMemAllocAsync failed to allocate (?P<exact>\d{1,20}) bytes")
_ASYNC_FREE = re.compile(r"Free memory/Total memory: (\d{1,20})/(\d{1,20})")
_MODULE = re.compile(r"Failed to load in-memory CUBIN[^\n]{0,160}?CUDA_ERROR_OUT_OF_MEMORY")
_BFC = re.compile(rf"Allocator \((?P<name>\w{{1,60}})\) ran out of memory trying to allocate (?P<requested>{SIZE})")
_GPU = re.compile(r"\b(?:device:GPU:|GPU_|gpu_async_|cuda:)(\d{1,4})(?:_bfc)?\b")
_PROGRAM = re.compile(r"\[executable_name='([^']{1,200})'")
_GPU_TOTAL = re.compile(rf"total allocation: {SIZE}")


def _pool(text: str) -> Iterator[AllocationFailure]:
    """The GPU client's pool: ``Out of memory while trying to allocate 17196646400 bytes.``, ``73.30GiB``."""
    for match in _POOL.finditer(text):
        total, after = _GPU_TOTAL.search(text, match.end()), text[match.end() :]
        operator = match["operator"] or named(_PROGRAM, after[:400]) or largest(after)
        used = size(total[1]) if total else None
        yield refused(text, match, "runtime_alloc", used=used, operator=operator, chip=_gpu(text))
    for match in _REQUEST.finditer(text):
        yield refused(text, match, "runtime_alloc", chip=None if match["chip"] else _gpu(text))


def _driver(text: str) -> Iterator[AllocationFailure]:
    """What the driver refuses: a pool's growth, which is tried again with less, an asynchronous pool, a module."""
    for match in _DRIVER.finditer(text):
        yield refused(text, match, "runtime_alloc", chip=_gpu(text), fatal=False)
    for match in _ASYNC.finditer(text):
        rest = _ASYNC_FREE.search(text, match.end(), match.end() + 600)
        free, limit = map(size, rest.groups()) if rest else (None, None)
        yield refused(text, match, "runtime_alloc", free=free, limit=limit)
    for match in _MODULE.finditer(text):
        name = named(_PROGRAM, text[match.end() : match.end() + 400])
        phase = "startup" if name and STEP.search(name) else None
        yield refused(text, match, "program_load", operator=name, phase=phase, chip=_gpu(text))
    for match in _HOST.finditer(text):
        yield refused(text, match, "host")


def _bfc(text: str) -> Iterator[AllocationFailure]:
    """The pool's own line before the failure; a caller that can do with less says that it is none."""
    for match in _BFC.finditer(text):
        if "not a failure" not in text[match.end() : match.end() + 300]:
            yield refused(text, match, "runtime_alloc", chip=_gpu(match["name"]))


def _gpu(text: str) -> int | None:
    match = _GPU.search(text)
    return int(match[1]) if match else None


def pool_request(text: str) -> int | None:
    """What a GPU pool's own line says was asked for, rounded as it prints it."""
    match = _BFC.search(text)
    return size(match["requested"]) if match else None


FORMS: Final = (_pool, _driver, _bfc)
