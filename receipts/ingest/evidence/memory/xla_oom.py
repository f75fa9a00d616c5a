"""XLA's out-of-memory messages: what a TPU's compiler refuses, what the runtime cannot load or place, and GPU pools.

Wordings of libtpu 0.0.17 to 0.0.42, of openxla's error pages (E0100, E0101, E1000, E1001) and of its GPU allocators.
XLA's ``G``, ``M`` and ``K`` are binary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from receipts.ingest.evidence.memory.sizes import SIZE, count, size
from receipts.ingest.evidence.reading import MAX_TEXT, Failure, Place
from receipts.receipt.dtypes import DTYPES, dtype

_NAME: Final = r"'([^']{1,200})'"
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
_USED = re.compile(rf"\bUsed {SIZE} of(?: {SIZE}(?: (?P<space>hbm|vmem|smem|cmem|sflag|spmem|tilespmem)\b)?)?")
_SCOPED = re.compile(
    rf"Scoped allocation with size {SIZE} and limit {SIZE} exceeded scoped (?P<space>\w{{2,12}}) limit"
    rf"|Insufficient scoped (?P<mosaic>\w{{2,12}}): {SIZE} > {SIZE}"
)
_STACK = re.compile(r"while allocating on stack for %?(?P<name>[\w.$-]{1,400})")
_ALLOCATION = re.compile(r"Allocation \(size=(\d{1,20})\) would exceed memory \(size=(\d{1,20})\)")
_SPACE = re.compile(r"\bspace=(\w{2,12})")
_TAG = re.compile(r"\btag = '([^']{1,300})'")
_TOTAL = re.compile(
    rf"Ran out of memory on (?P<space>\w{{2,12}}), the total memory required for [\w /-]{{1,80}} \({SIZE}\)"
    rf"(?: exceeds available \w{{2,12}} \({SIZE}\))?",
    re.IGNORECASE,
)
_SPARSE = re.compile(
    rf"TensorCore Hbm usage:? {SIZE}, SparseCore Hbm usage:? {SIZE}(?:, exceeding available bytes:? {SIZE})?",
    re.IGNORECASE,
)
_PLACED = re.compile(
    rf"(?P<what>Error loading program(?: {_NAME})?: ?|Error allocating device buffer: ?)?"
    rf"Attempting to (?P<verb>reserve|allocate) {SIZE}(?P<bottom> at the bottom of memory)?\.?"
    rf"(?P<end> That was not possible\.?(?: There are {SIZE} free)?)?"
)
_CAPACITY = re.compile(rf"HBM capacity {SIZE}:")
_POOL = re.compile(
    rf"Out of memory while trying to allocate (?:(\d{{1,20}}) bytes|{SIZE})(?:\.? ?\[executable_name={_NAME})?"
)
_HOST = re.compile(r"Out of memory allocating (\d{1,20}) bytes|failed to alloc(?:ate)? (\d{1,20}) bytes on host")
_REQUEST = re.compile(
    rf"[Ff]ailed to allocate request for {SIZE}(?: \((\d{{1,20}})B\))?(?: on device ordinal (?P<chip>\d{{1,4}}))?"
)
_DRIVER = re.compile(
    rf"[Ff]ailed to allocate {SIZE} \((\d{{1,20}}) bytes\) from device: "
    r"(?:RESOURCE_EXHAUSTED[: ]{1,6})?CUDA_ERROR_OUT_OF_MEMORY"
)
_ASYNC = re.compile(r"(?:gpu_async_(?P<chip>\d{1,4}) )?cuMemAllocAsync failed to allocate (?P<bytes>\d{1,20}) bytes")
_ASYNC_FREE = re.compile(r"Free memory/Total memory: (\d{1,20})/(\d{1,20})")
_MODULE = re.compile(r"Failed to load in-memory CUBIN[^\n]{0,160}?CUDA_ERROR_OUT_OF_MEMORY")
_TENSOR = re.compile(r"OOM when allocating tensor with shape ?\[(?P<shape>[\d, ]{0,120})\] and type (?P<type>\w{1,16})")
_BFC = re.compile(rf"Allocator \((?P<name>\w{{1,60}})\) ran out of memory trying to allocate {SIZE}")
_CODE = re.compile(
    r"\bE?(?P<code>0100|0101|1000|1001|1002): (?:CompileTime|Runtime|Program|Buffer|Hbm|Tpu|TPU)"
    r"|\b(?P<name>CompileTimeHbmOom|CompileTimeScopedVmemOom|Runtime(?:Buffer|Program)AllocationFailure)\b"
)
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
_TPU = re.compile(r"\bTPU[_:](\d{1,5})\b")
_GPU = re.compile(r"\b(?:device:GPU:|GPU_|gpu_async_|cuda:)(\d{1,4})(?:_bfc)?\b")
_PROGRAM = re.compile(r"\[executable_name='([^']{1,200})'")
_ITEM = re.compile(r"\b1\. Size: ")
_NEXT = re.compile(r"\b2\. Size: |=====|Buffer 2:")
_OPERATOR = re.compile(r'\bop_name="([^"]{1,400})"')
_LABEL = re.compile(r"XLA [Ll]abel: (.{1,200}?)(?= Allocation type| Shape:| Unpadded| =====|$)")
_GPU_TOTAL = re.compile(rf"total allocation: {SIZE}")

# A whole name of a step: `jit_train_step`, `pjit__train_step_fn`, `jit(train_step)`; not `jit_stepwise_init`.
_STEP = re.compile(r"(?:^|[_(])steps?(?:$|[_).])", re.IGNORECASE)
_FORMS: list[Callable[[str], Iterator[Failure]]] = []


def failures(text: str) -> list[Failure]:
    """The failures that a text holds, in its order and without place; single blanks stand for any white space."""
    found = [item for form in _FORMS for item in form(text)]
    if not found:
        if (code := _CODE.search(text)) is not None:
            found = [_made(text, code.start(), _CODES[code["code"] or code["name"]])]
        elif (at := text.find("RESOURCE_EXHAUSTED: failed to allocate memory")) >= 0:
            # TensorFlow names no size.
            found = [_made(text, at, "runtime_alloc")]
    return found


def _form(function: Callable[[str], Iterator[Failure]]) -> Callable[[str], Iterator[Failure]]:
    _FORMS.append(function)
    return function


def _made(
    text: str,
    at: int,
    class_: str,
    *,
    requested: int | None = None,
    used: int | None = None,
    free: int | None = None,
    limit: int | None = None,
    operator: str | None = None,
    phase: str | None = None,
    chip: int | None = None,
    fatal: bool = True,
) -> Failure:
    named = _TPU.search(text[max(0, at - 200) : at + 2000])
    return Failure(
        place=Place(),
        is_oom=True,
        class_=class_,
        phase=phase or ("compile" if class_.startswith("compile_") else "unknown"),
        requested_bytes=requested,
        used_bytes=used,
        free_bytes=free,
        limit_bytes=limit,
        operator=operator[:MAX_TEXT] if operator else None,
        message=text[at : at + MAX_TEXT].rstrip(),
        chip=chip if chip is not None else int(named[1]) if named else None,
        fatal=fatal,
    )


def _space(name: str) -> str:
    return _SPACES.get(name.lower(), "compile_hbm")


@_form
def _memory_space(text: str) -> Iterator[Failure]:
    """``Ran out of memory in memory space hbm. Used X of Y hbm``, its scoped forms, and the middle sentence alone."""
    starts = [match.start() for match in _RAN_OUT.finditer(text)]
    if not starts:
        starts = [match.start() for match in _USED.finditer(text) if match["space"]] or [
            match.start() for match in _SCOPED.finditer(text)
        ]
    for at, stop in zip(starts, [*starts, len(text)][1:], strict=False):
        part = text[at:stop]
        ran_out, used, scoped = _RAN_OUT.match(part), _USED.search(part), _SCOPED.search(part)
        stack = _STACK.search(part, 0, 600)
        if scoped is not None:
            name = scoped["space"] or scoped["mosaic"]
            sizes = [size(item) for item in scoped.groups() if item and item[0].isdigit()]
            operator = stack["name"] if stack else _named(_OPERATOR, part)
            yield _made(text, at, _space(name), requested=sizes[0], limit=sizes[-1], operator=operator)
            continue
        name = ran_out["space"] if ran_out else used["space"] if used else "hbm"
        yield _made(
            text,
            at,
            _space(name),
            used=size(used[1]) if used else None,
            limit=size(used[2]) if used else None,
            operator=stack["name"] if stack else _largest(part),
        )


@_form
def _one_allocation(text: str) -> Iterator[Failure]:
    """``Allocation (size=N) would exceed memory (size=M) :: #allocation10 [shape = …, space=hbm, …, tag = '…']``."""
    for match in _ALLOCATION.finditer(text):
        rest = text[match.end() : match.end() + 1000]
        space, tag = _SPACE.search(rest), _TAG.search(rest)
        yield _made(
            text,
            match.start(),
            _space(space[1] if space else "hbm"),
            requested=count(match[1]),
            limit=count(match[2]),
            operator=tag[1] if tag else None,
        )


@_form
def _total(text: str) -> Iterator[Failure]:
    """The one line of libtpu 0.0.42. It says *temporaries* even where the arguments are what does not fit."""
    for match in _TOTAL.finditer(text):
        yield _made(text, match.start(), _space(match["space"]), used=size(match[2]), limit=size(match[3]))
    for match in _SPARSE.finditer(text):
        parts = [size(match[1]), size(match[2])]
        used = sum(item for item in parts if item is not None) if None not in parts else None
        yield _made(text, match.start(), "compile_hbm", used=used, limit=size(match[3]))


@_form
def _placed(text: str) -> Iterator[Failure]:
    """A program that cannot be loaded (E0101), or a buffer that finds no place (E0100)."""
    for match in _PLACED.finditer(text):
        what, name = match["what"] or "", match[2]
        if not (what or match["bottom"] or match["end"]):
            continue
        requested, free = size(match[4]), size(match[7])
        capacity = _CAPACITY.search(text, match.end(), match.end() + 400)
        if what.startswith("Error loading") or match["bottom"]:
            class_, phase = "program_load", "startup" if name and _STEP.search(name) else None
        elif requested is not None and free is not None and requested <= free:
            # There is room, but no block of it is large enough.
            class_, phase = "fragmentation", None
        else:
            class_, phase = "runtime_alloc", None
        limit = size(capacity[1]) if capacity else None
        yield _made(
            text, match.start(), class_, requested=requested, free=free, limit=limit, operator=name, phase=phase
        )


@_form
def _pool(text: str) -> Iterator[Failure]:
    """The GPU client's pool: ``Out of memory while trying to allocate 17196646400 bytes.``, ``73.30GiB``."""
    for match in _POOL.finditer(text):
        total = _GPU_TOTAL.search(text, match.end())
        program = match[3] or _named(_PROGRAM, text[match.end() : match.end() + 400])
        yield _made(
            text,
            match.start(),
            "runtime_alloc",
            requested=count(match[1]) or size(match[2]),
            used=size(total[1]) if total else None,
            operator=program or _largest(text[match.end() :]),
            chip=_gpu(text),
        )
    for match in _REQUEST.finditer(text):
        chip = int(match["chip"]) if match["chip"] else _gpu(text)
        requested = count(match[2]) or size(match[1])
        yield _made(text, match.start(), "runtime_alloc", requested=requested, chip=chip)
    for match in _TENSOR.finditer(text):
        yield _made(text, match.start(), "runtime_alloc", requested=_tensor(match), chip=_gpu(text))


@_form
def _driver(text: str) -> Iterator[Failure]:
    """What the driver refuses: a pool's growth, which is tried again with less, an asynchronous pool, a module."""
    for match in _DRIVER.finditer(text):
        yield _made(text, match.start(), "runtime_alloc", requested=count(match[2]), chip=_gpu(text), fatal=False)
    for match in _ASYNC.finditer(text):
        rest = _ASYNC_FREE.search(text, match.end(), match.end() + 600)
        yield _made(
            text,
            match.start(),
            "runtime_alloc",
            requested=count(match["bytes"]),
            free=count(rest[1]) if rest else None,
            limit=count(rest[2]) if rest else None,
            chip=int(match["chip"]) if match["chip"] else None,
        )
    for match in _MODULE.finditer(text):
        name = _named(_PROGRAM, text[match.end() : match.end() + 400])
        phase = "startup" if name and _STEP.search(name) else None
        yield _made(text, match.start(), "program_load", operator=name, phase=phase, chip=_gpu(text))
    for match in _HOST.finditer(text):
        yield _made(text, match.start(), "host", requested=count(match[1] or match[2]))


@_form
def _bfc(text: str) -> Iterator[Failure]:
    """The pool's own line before the failure; a caller that can do with less says that it is none."""
    for match in _BFC.finditer(text):
        if "not a failure" in text[match.end() : match.end() + 300]:
            continue
        yield _made(text, match.start(), "runtime_alloc", requested=size(match[2]), chip=_gpu(match["name"]))


def _largest(text: str) -> str | None:
    """The operator or label of the largest allocation in a report; the first one that names any."""
    first = _ITEM.search(text)
    if first is not None:
        stop = _NEXT.search(text, first.end())
        item = text[first.end() : stop.start() if stop else first.end() + 4000]
        return _named(_OPERATOR, item) or _named(_LABEL, item)
    return _named(_OPERATOR, text) if "Buffer 1:" in text else None


def _named(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1].strip() if match else None


def _gpu(text: str) -> int | None:
    match = _GPU.search(text)
    return int(match[1]) if match else None


def _tensor(match: re.Match[str]) -> int | None:
    """Bytes of a tensor by its shape; None for a type whose width is unknown."""
    name = dtype(match["type"])
    if name is None:
        return None
    width = int(DTYPES[name].bytes)
    for item in match["shape"].split(","):
        width *= int(item) if item.strip() else 1
    return count(str(width))


def pool_request(text: str) -> int | None:
    """What a GPU pool's own line says was asked for, rounded as it prints it."""
    match = _BFC.search(text)
    return size(match[2]) if match else None
