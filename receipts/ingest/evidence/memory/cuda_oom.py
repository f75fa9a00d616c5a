"""torch's own out-of-memory messages: the caching allocator of 1.0 to 2.10, cudaMallocAsync, and HIP, XPU and NPU.

The wordings are those of c10/cuda/CUDACachingAllocator.cpp and CUDAMallocAsyncAllocator.cpp. A message that was cut
keeps what is before the cut.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.memory.classify import OomFigures, classify
from receipts.ingest.evidence.memory.sizes import SIZE, size
from receipts.ingest.reading import MAX_TEXT, AllocationFailure, Place

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


def ended(text: str) -> bool:
    """Whether the message's last figure has been read."""
    return _END.search(text) is not None


def failures(text: str) -> list[AllocationFailure]:
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
    figures = _figures(message, values)
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


def _figures(message: str, values: dict[str, int | None]) -> OomFigures:
    reserved, allocated = values.pop("reserved"), values["allocated"]
    if values["unallocated"] is None and reserved is not None and allocated is not None:
        values["unallocated"] = max(0, reserved - allocated)
    others = (size(process[1]) for process in _PROCESS.finditer(message))
    return OomFigures(
        **values,
        processes=tuple(item for item in others if item is not None),
        endless=_ENDLESS.search(message) is not None,
    )


def _first(message: str, wordings: tuple[re.Pattern[str], ...]) -> int | None:
    for wording in wordings:
        match = wording.search(message)
        if match is not None:
            return size(match[1])
    return None
