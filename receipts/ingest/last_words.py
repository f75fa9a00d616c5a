"""What a log says at its end where no Python error ended the launch: a time-out of ranks, a scheduler, a signal.

Sources: `ProcessGroupNCCL.cpp` and Gloo of torch 2.x, slurmstepd and srun of Slurm 23, torchrun 2.x, DeepSpeed's
launcher, a shell, llm.c, mpirun of Open MPI 4.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from receipts.ingest.evidence import FileEvidence
from receipts.ingest.evidence.registry import line_readers
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.stream import Source

_ENDS: Final = (
    ("hang", rb"watchdog caught collective operation timeout|timed out (?:after )?waiting \d+ ?ms for (?:recv|send)"),
    (
        "preempted",
        rb"\*\*\* (?:job|step) [^\n*]{1,80} cancelled at (?![^\n]{0,60}node failure)|\*\*\* sigterm received at "
        rb"|received (?:signals\.sigterm|15) death signal|(?m:(?:^|(?<=[]\r]))terminated[ \t\r]*$)",
    ),
    (
        "crash",
        rb"signal \d{1,2} \(sig(?:kill|segv|abrt|bus|fpe|ill)\) received by pid|failed \(exitcode: -?\d"
        rb"|exits with return code = -?[1-9]|: line \d{1,6}: +\d{1,9} (?:segmentation fault|aborted|killed) "
        rb"|watchdog thread terminated with exception|terminate called after throwing an instance of"
        rb"|srun: error: [^\n]{1,80}: (?:exited with exit code|segmentation fault|aborted|killed)"
        rb"|srun: error: node failure on |\*\*\* (?:job|step) [^\n*]{1,80} due to node failure"
        rb"|\[(?:cuda|cudnn|nccl) error\] at file [^\n]{1,300}:\n[^\n]{1,200}|\[cublas error\]: \d"
        rb"|mpirun (?:detected|noticed) that [^\n]{1,80}(?:non-zero status|exited on signal)"
        rb"|\bnccl error in: |\*\*\* sig(?:segv|abrt|bus|fpe|ill) received at |fatal python error: "
        rb"|\bterminated with exit code [1-9]"
        rb"|(?m:(?:^|(?<=\r))make(?:\[\d{1,3}\])?: \*\*\* \[[^\n]{1,200}\] (?:error \d|killed))"
        # Behind a progress bar, too.
        rb"|(?m:(?:^|(?<=[]\r]))(?:segmentation fault|bus error|aborted|floating point exception|illegal instruction"
        rb"|killed)(?: \(core dumped\))?[ \t\r]*$)"
        rb"|(?m:(?:^|(?<=\r))\[\d{1,3}\][+-]? +(?:\d{1,9} +)?(?:segmentation fault|bus error|abort|killed)\b)"
        rb"|double free or corruption|(?m:(?:^|(?<=\r))(?:free|malloc|realloc)\(\): )|\bhas fallen off the bus\b",
    ),
)
# What torch says below a CUDA error.
_ADVICE: Final = re.compile(
    rb"(?m)^(?:\[rank\d{1,6}\]: )?(?:CUDA kernel errors might be|For debugging consider passing|Compile with `TORCH_USE"
    rb"|Search for `cuda|Device-side assertion tracking was not).*(?:\n|\Z)"
)


# An error's own line where none of its traceback's was kept, as in a log filtered by level; a figure is a metric's.
_ERROR: Final = re.compile(
    rb"(?:\[[^\]\n]{1,60}\]:? ?)?(?:(?:\w{1,60}\.){0,8}(?:exc|errors?|exceptions?)\.[A-Z]\w{1,60}"
    rb"|(?:\w{1,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception)|KeyboardInterrupt)(?::(?! ?[-+\d.e]+$).+)?"
)
_IGNORED: Final = b"Exception ignored in"


class LastWords(NamedTuple):
    """``outcome`` of the launch, and the line that shows it."""

    outcome: str
    line: str


def last_words(file: FileEvidence) -> LastWords | None:
    """Which of them is first at the end of a log, behind its last step; None in one that says that it ended well.

    Packed files are not looked at.
    """
    if any(reading.complete for reading in file.readings):
        return None
    tail = Source(file.path, file.name).tail
    matches = [(match, outcome) for outcome, words in _ENDS for match in re.finditer(words, tail, re.IGNORECASE)]
    for match, outcome in sorted(matches, key=lambda item: item[0].start()):
        if not prints_steps(file, tail[match.end() :]):
            # A progress bar draws over itself on one line.
            begin = max(tail.rfind(end, 0, match.start()) for end in (b"\n", b"\r")) + 1
            line = tail[begin : match.end()] + tail[match.end() :].partition(b"\n")[0]
            return LastWords(outcome, " ".join(line.decode("utf-8", "replace").splitlines()).strip()[:500])
    before, _, last = _ADVICE.sub(b"", tail).rstrip().rpartition(b"\n")
    if _ERROR.fullmatch(last) and _IGNORED not in before[-400:]:
        return LastWords("crash", last.decode("utf-8", "replace")[:500])
    return None


def prints_steps(file: FileEvidence, text: bytes) -> bool:
    """Whether a part of a file holds steps of the kinds that the file has."""
    sources = {reading.source for reading in file.readings if len(reading.steps)}
    kinds = [kind for kind in line_readers() if kind.source in sources]
    return bool(kinds) and any(len(reading.steps) for reading in scan([text], kinds))
