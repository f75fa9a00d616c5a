"""What the end of a log shows: a Python error, or the words of ranks that timed out, a scheduler, a signal.

Sources: `ProcessGroupNCCL.cpp` and Gloo of torch 2.x, absl's failures, XLA's `pjrt/distributed/client.h`, slurmstepd
and srun of Slurm 23, torchrun 2.x, DeepSpeed's launcher, a shell, llm.c, mpirun of Open MPI 4, the signal handlers of
Megatron, Lightning 2 and NeMo 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.reader import line_readers
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.stream import Source

_ENDS: Final = (
    (
        "hang",
        rb"watchdog caught collective operation timeout|timed out (?:after )?waiting \d+ ?ms for (?:recv|send)"
        rb"|due to processgroupnccl watchdog hang|watchdog got stuck for \d{1,9} ?(?:seconds|milliseconds) without",
    ),
    (
        "preempted",
        rb"\*\*\* (?:job|step) [^\n*]{1,80} cancelled at (?![^\n]{0,60}node failure)|\*\*\* sigterm received (?:at|by) "
        rb"|received (?:signals\.sigterm|15) death signal"
        rb"|received sigterm: \d|after receiving sigterm|preemption detected, saving"
        rb"|signalexception: process \d+ got signal: 15\b|(?m:(?:^|(?<=[]\r]))terminated[ \t\r]*$)",
    ),
    (
        "crash",
        rb"signal \d{1,2} \(sig(?:kill|segv|abrt|bus|fpe|ill)\) received by pid|failed \(exitcode: -?\d"
        rb"|exits with return code = -?[1-9]|: line \d{1,6}: +\d{1,9} (?:segmentation fault|aborted|killed)\b"
        rb"|watchdog thread terminated with exception|terminate called after throwing an instance of"
        rb"|srun: error: [^\n]{1,80}: (?:exited with exit code|segmentation fault|aborted|killed)"
        rb"|srun: error: node failure on |\*\*\* (?:job|step) [^\n*]{1,80} due to node failure"
        rb"|\[(?:cuda|cudnn|nccl) error\] at file [^\n]{1,300}:\n[^\n]{1,200}|\[cublas error\]: \d"
        rb"|mpirun (?:detected|noticed) that [^\n]{1,80}(?:non-zero status|exited on signal)"
        rb"|mpi_abort was invoked on rank "
        rb"|\bnccl error in: |\*\*\* sig(?:segv|abrt|bus|fpe|ill) received (?:at|by) |fatal python error: "
        rb"|terminating process because the (?:coordinator|jax distributed service) detected [^\n]{1,200}"
        rb"|\*\*\* check failure stack trace: \*\*\*"
        rb"|\bterminated with exit code [1-9]"
        rb"|(?m:(?:^|(?<=\r))make(?:\[\d{1,3}\])?: \*\*\* \[[^\n]{1,200}\] (?:error \d|killed))"
        # Behind a progress bar, too.
        rb"|(?m:(?:^|(?<=[]\r]))(?:segmentation fault|bus error|aborted|floating point exception|illegal instruction"
        rb"|killed)(?: \(core dumped\))?[ \t\r]*$)"
        rb"|(?m:(?:^|(?<=\r))\[\d{1,3}\][+-]? +(?:\d{1,9} +)?(?:segmentation fault|bus error|abort|killed)\b)"
        rb"|double free or corruption|(?m:(?:^|(?<=\r))(?:free|malloc|realloc)\(\): )|\bhas fallen off the bus\b",
    ),
)
_TRACEBACK: Final = b"Traceback (most recent call last)"
_IGNORED: Final = b"Exception ignored in"
# The line that ends a traceback, behind the prefix of a rank or a launcher, or indented in torchrun's report.
_ERROR: Final = re.compile(
    r"^(?:\[[^\]\n]{1,60}\]:?\s*|\w{1,20}: ?| {1,8}(?=\w))?"
    r"((?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception|Interrupt)\b[^\n]*)",
    re.MULTILINE,
)
# Libraries name some without a word for what they are: `torch._dynamo.exc.Unsupported`.
_RAISED: Final = re.compile(
    r"^(?:\[[^\]\n]{1,60}\]:?\s*)?((?:\w{1,60}\.){1,8}[A-Z]\w{0,60}(?:: [^\n]*)?)$", re.MULTILINE
)
# An error's own line where none of its traceback's was kept, as in a log filtered by level; a figure is a metric's.
_ALONE: Final = re.compile(
    rb"(?:\[[^\]\n]{1,60}\]:? ?)?(?:(?:\w{1,60}\.){0,8}(?:exc|errors?|exceptions?)\.[A-Z]\w{1,60}"
    rb"|(?:\w{1,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception)|KeyboardInterrupt)(?::(?! ?[-+\d.e]+$).+)?"
)
# Errors that stop a run on a figure that is no number: jax_debug_nans, torch's anomaly mode, Megatron's checks.
_NOT_FINITE: Final = re.compile(
    r"invalid value \((?:nan|inf)\)|returned nan values|found (?:nan|inf) in|unexpected result (?:nan|inf)"
    r"|\bnan loss\b|\bloss (?:is|was|became) (?:nan|inf)\b|\bnon-?finite (?:loss|grad)",
    re.IGNORECASE,
)
# What torch says below a CUDA error.
_ADVICE: Final = re.compile(
    rb"(?m)^(?:\[rank\d{1,6}\]: )?(?:CUDA kernel errors might be|For debugging consider passing|Compile with `TORCH_USE"
    rb"|Search for `cuda|Device-side assertion tracking was not).*(?:\n|\Z)"
)


class LogEnd(NamedTuple):
    """``outcome`` of the launch, the line that shows it, whether a traceback does, and the exit code if it is named."""

    outcome: str
    line: str
    traceback: bool = False
    exit_code: int | None = None


def log_end(file: FileEvidence) -> LogEnd | None:
    """What is first at the end of a log, behind its last step; None where nothing is, or where it ended well.

    A log that says that it ended well may still end in a traceback.
    """
    tail = Source(file.path, file.name).tail
    if (end := _traceback(file, tail)) is not None or any(reading.complete for reading in file.readings):
        return end
    matches = [(match, outcome) for outcome, words in _ENDS for match in re.finditer(words, tail, re.IGNORECASE)]
    for match, outcome in sorted(matches, key=lambda item: item[0].start()):
        if not prints_steps(file, [tail[match.end() :]]):
            # A progress bar draws over itself on one line.
            begin = max(tail.rfind(end, 0, match.start()) for end in (b"\n", b"\r")) + 1
            line = tail[begin : match.end()] + tail[match.end() :].partition(b"\n")[0]
            return LogEnd(outcome, " ".join(line.decode("utf-8", "replace").splitlines()).strip()[:500])
    before, _, last = _ADVICE.sub(b"", tail).rstrip().rpartition(b"\n")
    if _ALONE.fullmatch(last) and _IGNORED not in before[-400:]:
        error = last.decode("utf-8", "replace")[:500]
        return LogEnd(_outcome(error), error)
    return None


def _outcome(error: str) -> str:
    """What an error's line says of the launch: a figure that is no number, one of the ends, else a crash."""
    if _NOT_FINITE.search(error):
        return "nan"
    return next((name for name, words in _ENDS if re.search(words, error.encode(), re.IGNORECASE)), "crash")


def _traceback(file: FileEvidence, tail: bytes) -> LogEnd | None:
    """The last traceback: the error's own line, and what torchrun reports of the process that failed first."""
    at = tail.rfind(_TRACEBACK)
    if at < 0 or _IGNORED in tail[max(0, at - 400) : at] or prints_steps(file, [tail[at:]]):
        return None
    text = tail[at:].decode("utf-8", "replace")
    error = _ERROR.search(text) or _RAISED.search(text)
    if error is None:
        return None
    before, _, report = tail.decode("utf-8", "replace").partition("ChildFailedError")
    # What failed first is last, under the others. The launcher's own error says only that a rank failed.
    ranks, codes = re.findall(r"(?m)^ *rank +: (\d{1,7}) ", report), re.findall(r"exitcode +: (-?\d{1,4}) ", report)
    own = [item[1] for item in _ERROR.finditer(before) if ranks and item[0].startswith(f"[rank{ranks[-1]}]")]
    signals = re.findall(r"traceback : (Signal \d{1,3} \(SIG\w{1,9}\) received by PID \d{1,9})", report)
    line = (own or signals or [error[1]])[-1][:500]
    return LogEnd(_outcome(line), line, traceback=True, exit_code=int(codes[-1]) if codes else None)


def prints_steps(file: FileEvidence, chunks: Iterable[bytes]) -> bool:
    """Whether a part of a file holds steps of the kinds that the file has."""
    sources = {reading.source for reading in file.readings if reading.trains}
    kinds = [kind for kind in line_readers() if kind.source in sources]
    return bool(kinds) and any(reading.trains for reading in scan(chunks, kinds))
