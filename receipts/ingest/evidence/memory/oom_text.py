"""The text of a failed allocation: where one begins, how its lines are put together, and what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from receipts.ingest.evidence.memory import cuda_oom, other_oom, xla_oom
from receipts.ingest.reading import AllocationFailure

MAX_TEXT: Final = 1 << 15
# A new message; whatever was open of the same rank ends here.
BEGIN = re.compile(
    r"\bRESOURCE_EXHAUSTED\b|[Rr]esource exhausted:|Out of memory|out of memory|OUT_OF_MEMORY|OOM when allocating"
    r"|Allocator \(|Can't reduce memory|ALLOC_FAILED|ALLOCATION_FAILED|NCCL WARN|NVML_SUCCESS|would exceed allowed"
    r"|DefaultCPUAllocator|[Oo][Oo][Mm][-_ ]?[Kk]ill|bad_alloc|Errno 12|MemoryError|Unable to allocate"
    r"|Out Of Memory|insufficient shared memory|shared memory segment|DataLoader worker|: line \d{1,6}: +\d{1,9} Killed"
    r"|Cannot allocate memory|_NOT_INITIALIZED|\[CUDA ERROR\] at file"
    r"|(?:^|\])\s*Killed\s*$|^\[\d{1,3}\][+-]?\s+(?:\d{1,9}\s+)?[Kk]illed\b"
    r"|OutOfMemoryError|Unsupported version|expected parameter|halted (?:prematurely|unexpectedly)"
    r"|Total (?:estimated )?memory size|cudaErrorMemoryAllocation|running low on memory|Exceeded job memory"
)
# A sentence from the middle of one: it belongs to what is open, or begins where nothing is.
MIDDLE = re.compile(
    r"Ran out of memory|Tried to allocate|[Ss]hared memory size limit|out of resource: shared|unlikely to have enough"
    r"|user allocatable offset|No viable logical replica count"
    r"|would exceed memory|capacity by|exceeding available|[Ss]coped (?:allocation|vmem)"
    r"|Attempting to (?:reserve|allocate)|That was not possible|Error (?:loading program|allocating device)"
    r"|[Ff]ailed to alloc|in-memory CUBIN|Total hbm usage|CompileTime\w+Oom"
)
_TORCH = re.compile(r"(?:(?:\btorch\.(?:cuda\.)?)?[A-Za-z]{1,40}Error: )?\b[A-Z]{2,4} out of memory\. Tried")
_WRAPPED = re.compile(r"^[\s>*#`|-]+|[`*\s]+$")


def window(text: str) -> str:
    """The part of an overlong line that holds the message."""
    if len(text) <= MAX_TEXT:
        return text
    match = BEGIN.search(text) or MIDDLE.search(text)
    start = max(0, match.start() - 400) if match else 0
    return text[start : start + MAX_TEXT]


def pieces(body: str) -> Iterable[str]:
    """A line that holds several messages of torch's, or the end of one and another, glued, as one piece each."""
    starts = [match.start() for match in _TORCH.finditer(body)]
    if starts and not cuda_oom.ended(body[: starts[0]]):
        del starts[0]
    return [body[at:stop] for at, stop in pairwise([0, *starts, len(body)])]


def read(lines: list[str]) -> tuple[list[AllocationFailure], str]:
    """The failures of a message's lines, and its text on one line.

    Lines are joined by a blank, as one wraps by hand, or without, as a terminal wraps inside a word; the text that
    shows more figures is the message.
    """
    if len(lines) == 1:
        text = flat(lines[0])
        return failures(text), text
    stripped = [_WRAPPED.sub("", line) for line in lines]
    texts = [flat(" ".join(stripped)), flat("".join(lines))]
    readings = [(failures(text), text) for text in texts]
    return max(readings, key=lambda item: (sum(_figures(failure) for failure in item[0]), -len(item[0])))


def flat(text: str) -> str:
    """A text on one line, with single blanks and without marks of Markdown."""
    return " ".join(text.replace("\\n", " ").replace("\\t", " ").replace("`", "").replace("**", "").split())


def failures(text: str) -> list[AllocationFailure]:
    """The failures that a text holds, or what says that it holds none."""
    refusals = cuda_oom.failures(text) + xla_oom.failures(text)
    return refusals or other_oom.failures(text) or other_oom.no_failures(text)


def _figures(failure: AllocationFailure) -> int:
    figures = (failure.requested_bytes, failure.used_bytes, failure.free_bytes, failure.limit_bytes)
    return 1 + sum(item is not None for item in figures)
