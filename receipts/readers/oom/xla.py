"""XLA's out-of-memory messages: what a TPU's compiler refuses, what the runtime cannot load or place, and GPU pools.

Wordings of libtpu 0.0.6 to 0.0.42, of openxla's error pages (E0100, E0101, E1000, E1001, E3000, E3001) and of its GPU
allocators: the client's pools, asynchronous ones, and what the driver refuses. XLA's ``G``, ``M`` and ``K`` are binary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Final

from receipts.ingest.literals import SIZE, binary_size
from receipts.ingest.reading import AllocationFailure
from receipts.readers.oom.refusal import NAME, OPERATOR, largest, named, refused

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
_REFUSAL_FORMS: Final = tuple((class_, fatal, re.compile(form)) for class_, fatal, form in _REFUSALS)
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
        used = binary_size(total[1]) if total else None
        yield refused(text, match, "runtime_alloc", used=used, operator=operator, chip=_gpu(text))


def _refused(text: str) -> Iterator[AllocationFailure]:
    for class_, fatal, form in _REFUSAL_FORMS:
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
        requested, limit = (
            binary_size(match["requested"] or match["required"]),
            binary_size(match["limit"] or match["hardware"]),
        )
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
    return binary_size(match["requested"]) if match else None


GPU_FORMS: Final = (_pool, _refused, _bfc, _shared, _tensor)


# hbm is the chip's memory; the others are on the chip. sflag are the scalar core's flags, cmem is v4's common memory,
# spmem and tilespmem are SparseCore's.
_SPACES: Final = {
    "hbm": "compile_hbm",
    "vmem": "compile_vmem",
    "cmem": "compile_vmem",
    "spmem": "compile_vmem",
    "tilespmem": "compile_vmem",
    "smem": "compile_smem",
    "sflag": "compile_smem",
}
_RAN_OUT = re.compile(r"Ran out of memory in memory space (?P<space>\w{2,12})")
_USED = re.compile(
    rf"\bUsed (?P<used>{SIZE}) of(?: (?P<limit>{SIZE})(?: (?P<space>hbm|vmem|smem|cmem|sflag|spmem|tilespmem)\b)?)?"
)
_SCOPED = re.compile(
    rf"[Ss]coped allocation with size {SIZE} and limit {SIZE}(?: exceeded scoped (?P<space>\w{{2,12}}) limit)?"
    rf"|[Ss]coped allocation with size {SIZE} exceeds the scoped (?P<other>\w{{2,12}}) limit of (\d{{1,20}})"
    rf"|Insufficient scoped (?P<mosaic>\w{{2,12}}): {SIZE} > {SIZE}"
)
_STACK = re.compile(r"while allocating on stack for %?(?P<name>[\w$-]{1,200}(?:\.(?!\.)[\w$-]{1,200}){0,8})")
# ``Allocation (size=N) would exceed memory (size=M) :: #allocation10 [shape = …, space=hbm, …, tag = '…']``, and the
# one line of libtpu 0.0.42, which says *temporaries* even where the arguments are what does not fit.
_ONE_LINE: Final = (
    re.compile(
        r"Allocation \(size=(?P<requested>\d{1,20})\) would exceed memory \(size=(?P<limit>\d{1,20})\)"
        r"(?=(?:.{0,1000}?\bspace=(?P<space>\w{2,12}))?)(?=(?:.{0,1000}?\btag = '(?P<operator>[^']{1,300})')?)"
    ),
    re.compile(
        rf"Ran out of memory on (?P<space>hbm|[vcs]mem)\b"
        rf"(?:,? (?:the )?total memory required for [\w /-]{{1,80}} \((?P<used>{SIZE})\)"
        rf"(?: exceeds available \w{{2,12}} \((?P<limit>{SIZE})\))?)?",
        re.IGNORECASE,
    ),
    # What no strategy fits is not compiled to the end.
    re.compile(
        rf"unlikely to have enough (?:device )?memory\. Requires (?:(?P<used>{SIZE})|[\d.]+[PE]), "
        rf"has (?P<limit>{SIZE}) available"
    ),
    # A table of embeddings that cannot be split until its part fits SparseCore's memory.
    re.compile(
        r"No viable logical replica count for the embedding table"
        r"(?=(?:.{0,600}?\btotal_(?P<space>spmem)_size_bytes = (?P<limit>\d{1,20}))?)"
    ),
)
# SparseCore's memories by their numbers, in words of four bytes.
_NUMBERED: Final = {"0": "smem", "201": "tilespmem", "202": "spmem", "203": "hbm", "204": "sflag"}
_ALLOCA = re.compile(
    r"allocation offset upper bound \((?P<words>\d{1,15}) words\) exceeds the legitimate user allocatable offset upper "
    r"bound \((?P<most>\d{1,15}) words\) in memory space (?P<number>\d{1,4}) when allocating (?P<more>\d{1,15}) words"
)
# The middle of that line, as people quote it.
_EXCEEDS = re.compile(
    rf"temporaries \((?P<used>{SIZE})\) exceeds available (?P<space>hbm|[vcs]mem) \((?P<limit>{SIZE})\)", re.IGNORECASE
)
_SPARSE = re.compile(
    rf"TensorCore Hbm usage:? (?P<dense>{SIZE}), SparseCore Hbm usage:? (?P<sparse>{SIZE})"
    rf"(?:, exceeding available bytes:? (?P<limit>{SIZE}))?",
    re.IGNORECASE,
)
_PLACED = re.compile(
    rf"(?P<what>Error loading program(?: {NAME})?: ?|Error allocating device buffer: ?)?"
    rf"Attempting to (?:reserve|allocate) (?P<requested>{SIZE})(?P<bottom> at the bottom of memory)?\.?"
    rf"(?P<end> That was not possible\.?(?: There are (?P<free>{SIZE}) free)?)?"
)
# The runtime before it said what was attempted.
_UNPLACED = re.compile(
    r"Could not allocate (?P<requested>\d{1,20} bytes) in memory \S{1,40}; \d{1,20} bytes allocatable, "
    r"(?P<free>\d{1,20} bytes) available"
)
_CAPACITY = re.compile(rf"HBM capacity {SIZE}:")
_CODE = re.compile(
    r"\bE?(?P<code>0100|0101|1000|1001|1002): (?:CompileTime|Runtime|Program|Buffer|Hbm|Tpu|TPU)"
    r"|\b(?P<name>CompileTimeHbmOom|CompileTimeScopedVmemOom|Runtime(?:Buffer|Program)AllocationFailure)\b"
)
_NO_SIZE = re.compile(r"(?:RESOURCE_EXHAUSTED:|\}\}) failed to allocate memory")
_CODES: Final = {
    "0100": "runtime_alloc",
    "0101": "program_load",
    "1000": "compile_hbm",
    "1001": "compile_vmem",
    "1002": "compile_hbm",
    "CompileTimeHbmOom": "compile_hbm",
    "CompileTimeScopedVmemOom": "compile_vmem",
    "RuntimeBufferAllocationFailure": "runtime_alloc",
    "RuntimeProgramAllocationFailure": "program_load",
}


def _space(name: str) -> str:
    return _SPACES.get(name.lower(), "compile_hbm")


def _memory_space(text: str) -> Iterator[AllocationFailure]:
    """``Ran out of memory in memory space hbm. Used X of Y hbm``, its scoped forms, and the middle sentence alone."""
    starts = list(_RAN_OUT.finditer(text))
    starts = starts or [match for match in _USED.finditer(text) if match["space"]] or list(_SCOPED.finditer(text))
    stops = [*(match.start() for match in starts), len(text)][1:]
    for start, stop in zip(starts, stops, strict=True):
        part = text[start.start() : stop]
        ran_out, used, scoped = _RAN_OUT.match(part), _USED.search(part), _SCOPED.search(part)
        stack = _STACK.search(part, 0, 600)
        if scoped is not None:
            sizes = [binary_size(item) for item in scoped.groups() if item and item[0].isdigit()]
            operator = stack["name"] if stack else named(OPERATOR, part)
            class_ = _space(scoped["space"] or scoped["other"] or scoped["mosaic"] or "vmem")
            yield refused(text, start, class_, requested=sizes[0], limit=sizes[-1], operator=operator)
            continue
        name = ran_out["space"] if ran_out else used["space"] if used else "hbm"
        operator = stack["name"] if stack else largest(part)
        in_use, limit = (binary_size(used["used"]), binary_size(used["limit"])) if used else (None, None)
        yield refused(text, start, _space(name), operator=operator, used=in_use, limit=limit)


def _one_line(text: str) -> Iterator[AllocationFailure]:
    """What one line says whole, and the two memories of a chip with SparseCores."""
    whole = [match for form in _ONE_LINE for match in form.finditer(text)]
    for match in whole or _EXCEEDS.finditer(text):
        yield refused(text, match, _space(match.groupdict().get("space") or "hbm"))
    for match in _ALLOCA.finditer(text):
        used, limit, requested = (4 * int(match[name]) for name in ("words", "most", "more"))
        class_ = _space(_NUMBERED.get(match["number"], "hbm"))
        yield refused(text, match, class_, used=used, limit=limit, requested=requested)
    for match in _SPARSE.finditer(text):
        dense, sparse = binary_size(match["dense"]), binary_size(match["sparse"])
        yield refused(text, match, "compile_hbm", used=None if dense is None or sparse is None else dense + sparse)


def _placed(text: str) -> Iterator[AllocationFailure]:
    """A program that cannot be loaded (E0101), or a buffer that finds no place (E0100)."""
    for match in _PLACED.finditer(text):
        what = match["what"] or ""
        if not (what or match["bottom"] or match["end"]):
            continue
        requested, free = binary_size(match["requested"]), binary_size(match["free"])
        capacity = _CAPACITY.search(text, match.end(), match.end() + 400)
        loading = what.startswith("Error loading") or match["bottom"]
        class_ = "program_load" if loading else _without_place(requested, free)
        yield refused(text, match, class_, limit=binary_size(capacity[1]) if capacity else None)
    for match in _UNPLACED.finditer(text):
        yield refused(text, match, _without_place(binary_size(match["requested"]), binary_size(match["free"])))


def _without_place(requested: int | None, free: int | None) -> str:
    """The class of a buffer without place: where there is room, no block of it is large enough."""
    return "runtime_alloc" if requested is None or free is None or requested > free else "fragmentation"


def failures(text: str) -> list[AllocationFailure]:
    """The failures that a text holds, in its order and without place; single blanks stand for any white space."""
    refusals = [item for form in (_memory_space, _one_line, _placed, *GPU_FORMS) for item in form(text)]
    if not refusals:
        if (code := _CODE.search(text)) is not None:
            refusals = [refused(text, code, _CODES[code["code"] or code["name"]])]
        elif (words := _NO_SIZE.search(text)) is not None:
            # TensorFlow names no size.
            refusals = [refused(text, words, "runtime_alloc")]
    return refusals
