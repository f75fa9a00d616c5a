"""Out-of-memory messages of XLA's GPU client: its pools, asynchronous ones, and what the driver refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Final

from receipts.ingest.evidence.memory.refusal import NAME, largest, named, refused
from receipts.ingest.evidence.memory.sizes import SIZE, size
from receipts.ingest.reading import AllocationFailure

_POOL = re.compile(
    rf"Out of memory while trying to allocate (?:(?P<exact>\d{{1,20}}) bytes|(?P<requested>{SIZE}))"
    rf"(?:\.? ?\[executable_name={NAME})?"
)
_PROGRAM = re.compile(r"\[executable_name='([^']{1,200})'")
_GPU = re.compile(r"\b(?:device:GPU:|GPU_|gpu_async_|cuda:)(\d{1,4})(?:_bfc)?\b")
_TOTAL = re.compile(rf"total allocation: {SIZE}")
_BFC = re.compile(rf"Allocator \((?P<name>\w{{1,60}})\) ran out of memory trying to allocate (?P<requested>{SIZE})")
# What the client's pool, the driver and an asynchronous pool refuse: the class, and whether the run ends there. A
# pool's growth is tried again with less.
_REFUSALS: Final = (
    (
        *("runtime_alloc", True),
        rf"[Ff]ailed to allocate request for (?P<requested>{SIZE})(?: \((?P<exact>\d{{1,20}})B\))?"
        r"(?: on device ordinal (?P<chip>\d{1,4}))?",
    ),
    (
        *("runtime_alloc", False),
        rf"[Ff]ailed to allocate {SIZE} \((?P<exact>\d{{1,20}}) bytes\) from device: "
        r"(?:RESOURCE_EXHAUSTED[: ]{1,6})?CUDA_ERROR_OUT_OF_MEMORY",
    ),
    (
        *("runtime_alloc", True),
        r"(?:gpu_async_(?P<chip>\d{1,4}) )?cuMemAllocAsync failed to allocate (?P<exact>\d{1,20}) bytes"
        r"(?:.{0,600}?Free memory/Total memory: (?P<free>\d{1,20})/(?P<limit>\d{1,20}))?",
    ),
    (
        *("program_load", True),
        r"Failed to load in-memory CUBIN[^\n]{0,160}?CUDA_ERROR_OUT_OF_MEMORY"
        r"(?:.{0,400}?\[executable_name='(?P<operator>[^']{1,200})')?",
    ),
    (
        *("host", True),
        r"Out of memory allocating (?P<exact>\d{1,20}) bytes"
        r"|failed to alloc(?:ate)? (?P<requested>\d{1,20}) bytes on host",
    ),
)
_FORMS: Final = tuple((class_, fatal, re.compile(form)) for class_, fatal, form in _REFUSALS)
# The on-chip memory of one kernel, of XLA's compiler and of Triton's. A configuration that is tried is passed over.
_SHARED = re.compile(
    r"Shared memory size limit exceeded(?:: requested (?P<requested>\d{1,12}), available: (?P<limit>\d{1,12}))?"
    r"|out of resource: shared memory, Required: (?P<required>\d{1,12}), Hardware limit: (?P<hardware>\d{1,12})"
)
# TensorFlow's executor names the tensor that it could not place.
_TENSOR = re.compile(
    r"OOM when allocating tensor with shape\[(?P<shape>[\d,]{1,120})\] and type (?P<type>\w{1,20}) on \S{1,120}?"
    r"device:GPU:(?P<chip>\d{1,4})"
)
_WIDTHS: Final = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "int8": 1, "bool": 1}


def _pool(text: str) -> Iterator[AllocationFailure]:
    """The GPU client's pool: ``Out of memory while trying to allocate 17196646400 bytes.``, ``73.30GiB``."""
    for match in _POOL.finditer(text):
        total, after = _TOTAL.search(text, match.end()), text[match.end() :]
        operator = match["operator"] or named(_PROGRAM, after[:400]) or largest(after)
        used = size(total[1]) if total else None
        yield refused(text, match, "runtime_alloc", used=used, operator=operator, chip=_gpu(text))


def _refused(text: str) -> Iterator[AllocationFailure]:
    for class_, fatal, form in _FORMS:
        for match in form.finditer(text):
            chip = None if match.groupdict().get("chip") or class_ == "host" else _gpu(text)
            yield refused(text, match, class_, chip=chip, fatal=fatal)


def _bfc(text: str) -> Iterator[AllocationFailure]:
    """The pool's own line before the failure; a caller that can do with less says that it is none."""
    for match in _BFC.finditer(text):
        if "not a failure" not in text[match.end() : match.end() + 300]:
            yield refused(text, match, "runtime_alloc", chip=_gpu(match["name"]))


def _shared(text: str) -> Iterator[AllocationFailure]:
    """A kernel's shared memory above the chip's."""
    for match in _SHARED.finditer(text):
        requested, limit = size(match["requested"] or match["required"]), size(match["limit"] or match["hardware"])
        tried = "gnoring this choice" in text or "autotun" in text[max(0, match.start() - 200) : match.start()]
        yield refused(text, match, "compile_smem", requested=requested, limit=limit, chip=_gpu(text), fatal=not tried)


def _tensor(text: str) -> Iterator[AllocationFailure]:
    """A tensor of TensorFlow's, whose bytes follow from its shape and type."""
    for match in _TENSOR.finditer(text):
        width = _WIDTHS.get(match["type"])
        requested = None if width is None else width * prod(int(item) for item in match["shape"].split(",") if item)
        yield refused(text, match, "runtime_alloc", requested=requested)


def _gpu(text: str) -> int | None:
    match = _GPU.search(text)
    return int(match[1]) if match else None


def pool_request(text: str) -> int | None:
    """What a GPU pool's own line says was asked for, rounded as it prints it."""
    match = _BFC.search(text)
    return size(match["requested"]) if match else None


FORMS: Final = (_pool, _refused, _bfc, _shared, _tensor)
