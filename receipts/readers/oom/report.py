"""Failed allocations in a log: gathered over lines, read as one text, kept in the order of the file.

The text of a failed allocation: where one begins, how its lines are put together, and what it says.

Failed allocations in a log: torch, XLA, CUDA's libraries, the host; several ranks' lines mixed, wrapped or cut. A
message is gathered over the lines of the rank that prints it, then read as one text. All failures of a file are kept,
in its order; `first_cause` of `receipts.ingest.reading` picks the one that began it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import binary_size
from receipts.ingest.prefix import Frame, frame, spoken
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import AllocationFailure, Place, Reading
from receipts.readers.oom import cuda, refusal, xla

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
    if starts and not cuda.report_ended(body[: starts[0]]):
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
    refusals = cuda.allocator_failures(text) + xla.failures(text)
    return refusals or cuda.library_failures(text) or cuda.no_failures(text)


def _figures(failure: AllocationFailure) -> int:
    figures = (failure.requested_bytes, failure.used_bytes, failure.free_bytes, failure.limit_bytes)
    return 1 + sum(item is not None for item in figures)


MAX_FAILURES: Final = 2000
MAX_SPEAKERS: Final = 1024
MAX_BLOCK: Final = 1 << 16
MIN_LINES: Final = 9
AFTER_LINES: Final = 3
OPENING_LINES: Final = 3
MAX_REPEATED: Final = 4096
MAX_LINES: Final = 300

# Lines of the compiler's reports: places by size, and what the GPU's buffer assignment adds.
_REPORT = re.compile(
    r"\s*$|\s+\S|\d+\. Size|Total hbm|Output size|Program \w+ requirement|Largest program|BufferAssignment|Peak buffers"
    r"|=====|HBM capacity|Heap allocator|Persistent alloc"
)
_PAGE_RULE = re.compile(r"\s*-{3,5}\s*")
_POOL_LIMIT = re.compile(r"\bLimit: +(\d{1,20})\b")
_POOL_USED = re.compile(r"\bInUse: +(\d{1,20})\b")
_EXIT = re.compile(
    r"exitcode {0,4}: (-?\d{1,5})|exits with return code = (-?\d{1,5})|exitcode: (-?\d{1,5})"
    r"|\bterminated with exit code (\d{1,5})"
)


@dataclass(slots=True)
class _Block:
    """One message as it grows. ``left`` counts the lines that it may still take."""

    number: int
    rank: int | None
    frame: Frame | None
    lines: list[str] = field(default_factory=list)
    size: int = 0
    left: int = MIN_LINES
    report: bool = False

    def take(self, body: str) -> None:
        """Add a line, as far as the block may grow; a page's own rule ends it."""
        if _PAGE_RULE.fullmatch(body):
            self.left = 0
            return
        if self.size < MAX_BLOCK:
            self.lines.append(body)
            self.size += len(body)
        if not self.report and ("usage >=" in body or "Largest program" in body or "BufferAssignment" in body):
            self.report = True
            self.left = MAX_LINES
        elif cuda.report_ended(body):
            # What follows may still say that the run goes on.
            self.left = min(self.left, AFTER_LINES)
        self.left -= 1


class OomReader(LineReader):
    """Reads failed allocations, and what looks like one and says that it is none."""

    source: ClassVar[str] = "oom"
    anchors = vocabulary.anchors("oom")

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, _Block] = {}
        self._frames: dict[str, Frame] = {}
        self._latest = ""
        # What makes a record a failure, and where each chip's is kept.
        self._known: dict[tuple[object, ...], dict[int | None, int]] = {}
        self._repeated: set[tuple[str, str]] = set()
        self._lost = 0
        self._pool: int | None = None
        self._exit: tuple[int, int, str] | None = None

    def line(self, text: str, number: int) -> bool:
        """Take a line of any rank; more are wanted while a message is open."""
        speech = spoken(window(text))
        body = speech.body
        opening = frame(body)
        if opening is not None:
            own = speech.speaker or self._latest
            if own in self._open:
                self._close(own)
            earlier = self._frames.get(speech.speaker)
            if earlier is None and len(self._frames) >= MAX_SPEAKERS:
                self._frames.pop(next(iter(self._frames)))
            if earlier is None or earlier.library or not opening.library:
                self._frames[speech.speaker] = opening
            return bool(self._open)
        exit_code = _EXIT.search(body)
        if exit_code is not None and self._exit is None:
            code = next(item for item in exit_code.groups() if item is not None)
            self._exit = (int(code), number, body.strip()[:200])
        if "Stats:" in body or self._pool is not None:
            self._stats(body, number)
        for piece in pieces(body):
            self._piece(piece, speech.speaker, speech.rank, number)
        return bool(self._open) or self._pool is not None

    def finish(self) -> Reading | None:
        """Everything of the file; None where it holds nothing of the kind."""
        for speaker in list(self._open):
            self._close(speaker)
        failures = self.reading.failures
        if not failures and self._exit is not None:
            # The host's kernel kills with signal 9 for want of memory, and others do for other reasons.
            code, number, words = self._exit
            killed = code in (-9, 137)
            class_, is_oom = ("host", None) if killed else ("not_oom", False)
            failures.append(AllocationFailure(Place(number), is_oom, class_, message=words, fatal=killed))
        if self._lost:
            self.reading.remark("note", f"{self._lost} further failed allocations were not kept")
        failures.sort(key=lambda item: item.place.line)
        self.reading.records = len(failures)
        return super().finish()

    def _piece(self, body: str, speaker: str, rank: int | None, number: int) -> None:
        begins, middle = BEGIN.search(body), MIDDLE.search(body)
        # A wrapped message of a rank may lack the prefix on its later lines.
        own = speaker if speaker in self._open or speaker else self._latest
        block = self._open.get(own)
        if block is not None and (begins is None or _within(block, begins, middle, body)):
            goes_on = not block.report or middle is not None or _REPORT.match(body) is not None
            if goes_on and not body.startswith("Traceback ("):
                block.take(body)
                if block.left <= 0:
                    self._close(own)
                return
        if block is not None:
            self._close(own)
        if (begins is None and middle is None) or (speaker, body) in self._repeated:
            return
        if len(self._open) >= MAX_SPEAKERS:
            self._close(next(iter(self._open)))
        self._open[speaker] = block = _Block(number, rank, self._frames.pop(speaker, None))
        self._latest = speaker
        block.take(body)

    def _close(self, speaker: str) -> None:
        block = self._open.pop(speaker)
        kept, text = read(block.lines)
        whole = len(block.lines) == 1 or not kept or failures(flat(block.lines[0])) == kept
        if whole and len(self._repeated) < MAX_REPEATED:
            # A library in a loop writes the same line a thousand times; it says nothing more.
            self._repeated.add((speaker, block.lines[0]))
        for note in cuda.notes(text):
            self.reading.remark("note", note, block.number)
        if kept and refusal.holds_scores(text):
            # A buffer of batch, heads, rows and columns of scores is what no fused attention makes.
            self.reading.see("attention", "xla_unfused", "kernels", block.number)
        kernel = refusal.kernel(text)
        if kernel is not None:
            self.reading.see("attention", kernel, "kernels", block.number)
        for failure in kept:
            where = block.frame.text if block.frame is not None and failure.is_oom is not False else None
            self._keep(
                replace(
                    failure,
                    place=Place(block.number),
                    rank=block.rank,
                    operator=failure.operator or where,
                )
            )

    def _keep(self, failure: AllocationFailure) -> None:
        """Keep a failure once. A pool's rounded line and the exact one that follows it are one failure."""
        kept = self.reading.failures
        last = kept[-1] if kept else None
        if last is not None and _same_pool(last, failure):
            merged = replace(
                failure,
                chip=failure.chip if failure.chip is not None else last.chip,
                used_bytes=failure.used_bytes if failure.used_bytes is not None else last.used_bytes,
                limit_bytes=failure.limit_bytes if failure.limit_bytes is not None else last.limit_bytes,
            )
            if last.is_oom:
                kept[-1] = replace(merged, place=last.place)
                return
            failure = merged
        if last is not None and _same_nccl(last, failure):
            kept[-1] = replace(last, requested_bytes=failure.requested_bytes)
            return
        # Of the records of one failure, some name its chip.
        # What makes two records one failure: an exception is printed when it is raised, chained and reported. One that
        # the run survived may be raised at last.
        figures = (failure.requested_bytes, failure.used_bytes, failure.free_bytes, failure.limit_bytes)
        words = failure.message if not any(item is not None for item in figures) else ""
        chips = self._known.get(key := (failure.class_, failure.rank, failure.fatal, *figures, words), {})
        if failure.chip in chips or (failure.chip is None and chips):
            return
        if None in chips:
            at = chips[failure.chip] = chips.pop(None)
            kept[at] = replace(kept[at], chip=failure.chip)
            return
        if len(kept) >= MAX_FAILURES:
            self._lost += 1
            return
        self._known[key] = chips | {failure.chip: len(kept)}
        kept.append(failure)

    def _stats(self, body: str, number: int) -> None:
        """Limit and use of a GPU's pool, some lines under its failure."""
        if "Stats:" in body:
            for speaker in list(self._open):
                self._close(speaker)
            self._pool = number
        if self._pool is None or number - self._pool > 12 or not self.reading.failures:
            self._pool = None
            return
        last = self.reading.failures[-1]
        limit, used = _POOL_LIMIT.search(body), _POOL_USED.search(body)
        if last.class_ == "runtime_alloc":
            self.reading.failures[-1] = replace(
                last,
                limit_bytes=binary_size(limit[1]) or last.limit_bytes if limit else last.limit_bytes,
                used_bytes=binary_size(used[1]) if used else last.used_bytes,
            )


def _within(block: _Block, begins: re.Match[str], middle: re.Match[str] | None, body: str) -> bool:
    """Whether a line with an opening word goes on with the message: one that says nothing yet is not over."""
    if middle is not None and middle.start() < begins.start():
        return True
    return len(block.lines) <= OPENING_LINES and not cuda.starts(body) and not read(block.lines)[0]


def _same_pool(last: AllocationFailure, new: AllocationFailure) -> bool:
    """Whether ``last`` is the pool's line (rounded to two decimals) of the exact failure ``new``."""
    if "Allocator (" not in last.message or new.class_ != "runtime_alloc" or "Allocator (" in new.message:
        return False
    requested = xla.pool_request(last.message)
    if requested is None or new.requested_bytes is None:
        return False
    return abs(requested - new.requested_bytes) <= 0.006 * max(requested, 1)


def _same_nccl(last: AllocationFailure, new: AllocationFailure) -> bool:
    """Whether NCCL's second warning tells the bytes of the first one."""
    both = last.class_ == new.class_ == "outside_allocator" and "NCCL" in new.message and last.chip == new.chip
    return both and last.requested_bytes is None and new.requested_bytes is not None


READERS = (OomReader,)
