"""How the launch ended: the failure that stopped it, a loss that diverged, or nothing that says otherwise.

`log_end` is what the end of a log shows: a Python error, or the words of ranks that timed out, a scheduler, a signal.
Sources: `ProcessGroupNCCL.cpp` and Gloo of torch 2.x, absl's failures, XLA's `pjrt/distributed/client.h`, slurmstepd
and srun of Slurm 23, torchrun 2.x, DeepSpeed's launcher, a shell, llm.c, mpirun of Open MPI 4, the signal handlers of
Megatron, Lightning 2 and NeMo 2.

A log that shows no end has the outcome `unknown`. A job that its scheduler, a host out of memory or a full disk killed
in silence leaves such a log; so does one that was copied while it ran, and an excerpt. Which it was, the log does not
say. It ended well where it says so, where its exit code is 0, or where it reaches the last step that it plans.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Final, NamedTuple

from receipts.base.errors import UsageError
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reader import LineReader, line_readers, readers_in
from receipts.ingest.reading import BAR, AllocationFailure, first_cause
from receipts.ingest.resolve import readings
from receipts.ingest.scan import scan
from receipts.ingest.series import StepSeries
from receipts.ingest.source import Source

SOURCE: Final = "ending"
_SHOWN: Final = 5
_BARS_MOVE: Final = 3
# Sources that print step 1 and then every so many: behind step 1 alone several more may have passed.
_FIRST_ALONE: Final = ("torchtitan",)
_SKIPPED: Final = ("place", "is_oom", "fatal")


def state_ending(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> None:
    """State ``run.outcome``, and ``failure`` where one stopped the launch."""
    failures = [(file, reading, item) for file, reading in readings(files) for item in reading.failures]
    stopped, survived = None, 0
    for file, reading, failure in sorted(failures, key=lambda item: not item[2].is_oom):
        if not failure.is_oom and not failure.fatal:
            continue  # words that merely look like a failure
        why = _went_on(file, failure, steps) if failure.fatal else "it did not end the run"
        if why is None:
            stopped = file, reading, failure
            break
        survived += 1
        if survived <= _SHOWN:
            text = f"{failure.message[:100] or failure.class_}: {why}"
            draft.tell("note", text, Where(file.name, failure.place))
    if stopped is not None and draft.base is not None and draft.get("run.outcome") == "ok":
        draft.contradict("run.outcome", f"{Where(stopped[0].name, stopped[2].place)} says {stopped[2].message[:80]}")
        return
    if stopped is not None:
        file, reading, failure = stopped
        failure = _timed(draft, file, failure)
        where = Where(file.name, failure.place)
        for item in fields(AllocationFailure):
            value = getattr(failure, item.name)
            if item.name not in _SKIPPED and value is not None and value != "":
                draft.put(f"failure.{item.name.rstrip('_')}", value, where, reading.source)
    diverged = _diverged(draft, files, steps)
    if draft.get("run.outcome") is not None:
        return
    if stopped is not None:
        where = Where(stopped[0].name, stopped[2].place)
        draft.put("run.outcome", "oom" if stopped[2].is_oom else "crash", where, stopped[1].source)
    elif diverged is not None:
        draft.put("run.outcome", "nan", diverged, SOURCE)
    elif ends := [(end, file) for file in files if not _outrun(file, steps) and (end := log_end(file)) is not None]:
        end, file = max(ends, key=lambda item: item[0].traceback)
        where = Where(file.name)
        draft.put("run.outcome", end.outcome, where, SOURCE, end.line)
        if end.exit_code is not None:
            draft.put("run.exit_code", end.exit_code, where, SOURCE, "torchrun's report")
        draft.put("failure.class", "not_oom", where, SOURCE)
        draft.put("failure.message", end.line, where, SOURCE)
    elif code := draft.get("run.exit_code"):
        draft.put("run.outcome", "crash", Where("ingest"), SOURCE, f"exit code {code}")
    else:
        # The end may be in the file of the steps, or in any log of a launch without steps.
        last = {steps.track.file.name} if steps is not None else {file.name for file in files if file.readings}
        broken = next((file for file in files if file.cut and file.name in last), None)
        where = Where(broken.name if broken is not None else steps.track.file.name if steps is not None else "ingest")
        shown, why = ("", "a file breaks off") if broken is not None else _good_end(draft, files, steps)
        draft.put("run.outcome", "ok" if shown else "unknown", where, SOURCE, shown or why)
        if not shown:
            draft.tell("missing", f"run.outcome is unknown: {why}; the end of the log would show how it ended", where)


def failure_in(text: bytes) -> AllocationFailure | None:
    """The failed allocation that began what a text tells; None where it tells of none."""
    kinds = [kind for kind in readers_in("oom") if issubclass(kind, LineReader)]
    scanned = scan([text.rstrip(b"\n") + b"\n"], kinds)
    return first_cause(item for reading in scanned for item in reading.failures if item.fatal)


def _timed(draft: ReceiptDraft, file: FileEvidence, failure: AllocationFailure) -> AllocationFailure:
    """The failure with its phase and step, as the steps tell that its own file prints before it; none follow it.

    Behind one step it is the first compile window, behind two it is steady. A record that represents several steps, or
    the first of a source that prints its first step and then every so many, leaves open which step came last.
    """
    records = max((reading for reading in file.readings), key=lambda reading: len(reading.steps), default=None)
    numbers = records.steps.numbers() if records is not None else []
    if records is None or not numbers:
        return failure
    every = records.steps.interval in (None, 1) and all(b == a + 1 for a, b in pairwise(numbers))
    begun = draft.get("run.start_step") or 0
    phase = failure.phase
    if phase == "unknown":
        if len(numbers) > 1 or (records.steps.interval or 1) > 1:
            phase = "steady"
        elif numbers[0] - begun <= 1 and records.source not in _FIRST_ALONE:
            phase = "first_window"
    known = every and (len(numbers) > 1 or phase == "first_window")
    return replace(failure, phase=phase, step=numbers[-1] + 1 if failure.step is None and known else failure.step)


def _went_on(file: FileEvidence, failure: AllocationFailure, steps: StepSeries | None) -> str | None:
    """Why a failure was not the end: steps follow it in its file, or a later attempt's file has gone on."""
    if _trains(file) or any(reading.source == BAR for reading in file.readings):
        # Only logs with a failure in them are read again.
        try:
            behind = _after(Source(file.path, file.name), failure.place.line)
            follow = failure.place.line > 0 and prints_steps(file, behind)
        except UsageError:
            return None
        return "steps follow it, the run went on" if follow else None
    if steps is not None and failure.step is not None and steps.numbers[-1] > failure.step + 1:
        return f"the run went on to step {steps.numbers[-1]}"
    return None


def _after(source: Source, line: int) -> Iterator[bytes]:
    """The chunks of whole lines behind a line."""
    for chunk in source.chunks():
        parts = chunk.split(b"\n", line)
        if len(parts) > line:
            yield parts[line]
        line -= len(parts) - 1


def _outrun(file: FileEvidence, steps: StepSeries | None) -> bool:
    """Whether a file is of an earlier attempt than the last one, or another file's steps go on behind its own."""
    last = max((number for reading in file.readings for number in reading.steps), default=None)
    return steps is not None and (file.name in steps.outrun or (last is not None and steps.numbers[-1] > last))


def _diverged(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> Where | None:
    """Where a divergence is: a reader saw one that its source hides, or the last loss is not finite."""
    for file, reading in ((file, reading) for file, reading in readings(files) if reading.diverged):
        values = [value for value in reading.steps.column("loss") if value is not None]
        norms = (value for value in reading.steps.column("grad_norm") if value is not None)
        shown = bool(values) and math.isfinite(values[-1]) and not all(map(math.isfinite, values))
        # It recovered where losses that were not finite were printed as such, and finite ones again after them.
        if not shown or any(map(math.isnan, norms)):
            draft.put("measurement.loss.finite", False, Where(file.name), SOURCE)
            return Where(file.name)
    losses = (steps.beside or steps).known("loss") if steps is not None else []
    if losses and steps is not None and not math.isfinite(losses[-1]):
        return Where(steps.track.file.name)
    return None


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
        rb"|\bexecution (?:of replica \d{1,6} )?failed: "
        rb"|double free or corruption|(?m:(?:^|(?<=\r))(?:free|malloc|realloc)\(\): )|\bhas fallen off the bus\b",
    ),
)
_TRACEBACK: Final = b"Traceback (most recent call last)"
_IGNORED: Final = b"Exception ignored in"
_FRAME: Final = re.compile(r'File "[^"\n]{1,300}", line \d{1,9}[^\n]{0,200}')
# The line that ends a traceback, behind the prefix of a rank or a launcher, or indented in torchrun's report.
_ERROR_LINE: Final = re.compile(
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
    if (end := _traceback(file, tail)) is not None or any(
        reading.complete or reading.ended for reading in file.readings
    ):
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
    if at < 0 or _IGNORED in tail[max(0, at - 400) : at] or prints_steps(file, [tail[at:].partition(b"\n")[2]]):
        return None
    text = tail[at:].decode("utf-8", "replace")
    error = _ERROR_LINE.search(text) or _RAISED.search(text)
    if error is None:
        frames = _FRAME.findall(text)
        return LogEnd("crash", f"a traceback without its error: {frames[-1].strip()}", True) if frames else None
    before, _, report = tail.decode("utf-8", "replace").partition("ChildFailedError")
    # What failed first is last, under the others. The launcher's own error says only that a rank failed.
    ranks, codes = re.findall(r"(?m)^ *rank +: (\d{1,7}) ", report), re.findall(r"exitcode +: (-?\d{1,4}) ", report)
    own = [item[1] for item in _ERROR_LINE.finditer(before) if ranks and item[0].startswith(f"[rank{ranks[-1]}]")]
    signals = re.findall(r"traceback : (Signal \d{1,3} \(SIG\w{1,9}\) received by PID \d{1,9})", report)
    line = (own or signals or [error[1]])[-1][:500]
    return LogEnd(_outcome(line), line, traceback=True, exit_code=int(codes[-1]) if codes else None)


def prints_steps(file: FileEvidence, chunks: Iterable[bytes]) -> bool:
    """Whether a part of a file holds steps of the kinds that the file has; where bars alone show them, several more.

    A bar is drawn again when it is closed, and another rank's may be one step ahead.
    """
    sources = {reading.source for reading in file.readings if reading.trains} or {BAR}
    kinds = [kind for kind in line_readers() if kind.source in sources]
    return any(item.trains or item.counters.get("moved", 0) >= _BARS_MOVE for item in scan(chunks, kinds))


# Step and plan in the words of the step lines of Megatron, nanotron, llm.c, modded-nanogpt, Composer; tqdm's bars.
_STEP_OF_PLAN: Final = re.compile(
    rb"(?i)(?:\b(?:step|iter|iteration|batch)\b ?[:=]? {0,8}|\| {0,8})(\d{1,12}) ?/ {0,8}(\d{1,12})(?=[]:|,(\s]|$)"
)
# What heads the log of the Hugging Face Trainer, torchtitan and nanotron.
_PLANNED_STEPS: Final = re.compile(rb"(?:Total optimization steps = |\btotal steps |\btrain_steps: )(\d[\d,]{0,15})\b")
# A run that ended as it was to, in the words of frameworks and launchers.
_SAYS_DONE: Final = re.compile(
    rb"(?i)after training is done|exiting program|\btraining (?:is |has )?(?:been )?(?:complete|finish|done|ended)"
    rb"|\b(?:finished|done|completed) training\b|[\"']train_runtime|\.fit` stopped|total average iteration time"
    rb"|wandb: +run summary|total training time|training time: |early.?stopp(?:ing|ed) (?:at|after|triggered)"
    rb"|peak memory consumption|\*{3,} train metrics \*{3,}|exits successfully|\bexit status: 0\b"
    rb"|final validation metrics|max_steps=\d{1,12}` reached"
)
# Sources whose every run says at its end that it has ended, and in which words.
_SAYS_ALWAYS: Final = {"torchtitan": "Training completed", "hf-trainer": "train_runtime", "mlperf": "run_stop"}


def _good_end(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> tuple[str, str]:
    """What shows that the launch ended as it was to, and, where nothing does, what is lacking."""
    if draft.get("run.exit_code") == 0:
        return "exit code 0", ""
    if any(reading.ended for _, reading in readings(files)):
        return "it says that it has ended", ""
    main = steps.track.file if steps is not None else next((file for file in files if _trains(file)), None)
    for file in files:
        if _outrun(file, steps):
            continue
        tail = Source(file.path, file.name).tail
        last = next(reversed(list(_SAYS_DONE.finditer(tail))), None)
        if last is not None and not prints_steps(file, [tail[last.end() :].partition(b"\n")[2]]):
            return last[0].decode(), ""
    if main is None:
        return "", "no file shows how the launch ended"
    words = next((_SAYS_ALWAYS[item.source] for item in main.readings if item.source in _SAYS_ALWAYS), None)
    if words is not None:
        return "", f"{main.name} has no {words!r}, which ends every such log"
    if steps is None:
        return "", "no file shows how the launch ended"
    source, last_step = Source(main.path, main.name), steps.numbers[-1]
    # A bar is ahead of the last record by less than one more; bars of other loops are anywhere.
    farthest = last_step + 2 * steps.stride
    bars = [(int(match[1]), int(match[2])) for match in _STEP_OF_PLAN.finditer(source.tail)]
    bars = [(step, of) for step, of in bars if last_step <= step <= min(farthest, of)]
    plan = _PLANNED_STEPS.search(source.head)
    last_step, planned = bars[-1] if bars else (last_step, int(plan[1].replace(b",", b"")) if plan else 0)
    # Programs count from 0 or from 1, and may print every so many steps.
    if planned and last_step + steps.stride - (0 if steps.numbers[0] == 0 else 1) >= planned:
        return f"step {last_step} of {planned}", ""
    planned_words = f", of {planned:,} that it plans" if planned else ""
    return "", f"the log stops behind step {last_step:,}{planned_words}, and nothing shows why"


def _trains(file: FileEvidence) -> bool:
    return any(reading.trains for reading in file.readings)
