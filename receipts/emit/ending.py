"""How a run ends: an exception, a signal, a loss that is not finite, or well; outcome, class, figures and words.

An exception gets a plain reading, for the receipt that the run itself writes. `receipts recover` and `receipts merge`
read the words again with the engine's readers, which know many more messages; this one never guesses beyond the text.
"""

from __future__ import annotations

from receipts.emit import identity, secrets
from receipts.emit.journal import OPEN_SPAN

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from receipts.emit.run import RunState
    from receipts.emit.run_record import Stall


# Words by which those who wait for others give up: watchdogs of collectives, rendezvous and barriers of the runtimes.
_HANGS = (
    r"watchdog caught collective operation timeout|ran for \d+ milliseconds before timing out"
    r"|(?:heartbeat monitor|watchdog)\b[^\n]{0,80}\b(?:timed out|stuck|got stuck|no heartbeat)"
    r"|timed out (?:after )?(?:waiting )?\d+\s?m?s (?:for|waiting for) (?:recv|send) operation"
    r"|timed out in:? ?(?:barrier|allreduce|allgather|broadcast)|monitoredbarrier[^\n]{0,80}timed? ?out"
    r"|threads? to join the rendezvous, but only|termination timeout for [^\n]{0,200} exceeded"
    r"|deadline_exceeded[^\n]{0,200}(?:barrier|collective|heartbeat)|barrier timed out"
)
# Words of those who lost somebody: they tell that another rank went, and not why.
_LOST = (
    r"connection (?:was )?(?:reset|closed|aborted) by (?:remote )?peer|connection was likely closed|broken pipe"
    r"|ncclremoteerror|remote process exit|peer closed connection|socket closed"
    r"|tasks? (?:have|has) crashed|leader (?:has )?(?:died|crashed)"
)
MAX_MESSAGE = 8000
MAX_MESSAGE_READ = 100_000
_UNITS = {"": 1, "B": 1, "BYTES": 1, "K": 1 << 10, "KIB": 1 << 10, "KB": 10**3, "M": 1 << 20, "MIB": 1 << 20}
_UNITS |= {"MB": 10**6, "G": 1 << 30, "GIB": 1 << 30, "GB": 10**9, "T": 1 << 40, "TIB": 1 << 40, "TB": 10**12}
_SIZE = r"([\d.]{1,20}) ?([A-Za-z]{0,5})"
_SPACES = {"hbm": "compile_hbm", "vmem": "compile_vmem", "smem": "compile_smem", "cmem": "compile_vmem"}
_FIGURE_PATTERNS = {
    "requested_bytes": rf"(?:(?:[Tt]ried|trying|Unable|Attempting) to (?:allocate|reserve)|memory allocating) {_SIZE}",
    "limit_bytes": rf"(?:total capacity of|[Uu]sed [\d.]+\w? of) {_SIZE}",
    "free_bytes": rf"(?:of which|There are) {_SIZE}(?: is)? free",
    "used_bytes": rf"(?:this process has|\b[Uu]sed) {_SIZE}(?: memory in use| of)",
    "unallocated": rf"{_SIZE} is reserved by PyTorch but unallocated",
}


def failure_of_exception(error: BaseException) -> tuple[str, dict[str, Any]]:
    """Outcome and leaves of ``failure`` of an exception that left the run. Step, phase and rank are the caller's."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    try:
        text = str(error)
    except Exception:
        text = ""
    message = f"{name}: {text}" if text else name
    message = message[:MAX_MESSAGE_READ]
    failure: dict[str, Any] = {"message": message}
    where = raising_line(error.__traceback__)
    if where:
        failure["operator"] = where
    outcome, seen = failure_of_text(message)
    return outcome, {**failure, **seen}


def failure_of_text(message: str) -> tuple[str, dict[str, Any]]:
    """Outcome (`oom`, `nan`, `hang` or `crash`) of an error's words, with the class and the figures that they give."""
    import re

    low = message.lower()
    head = low.partition(":")[0]
    if head == "memoryerror" or "defaultcpuallocator" in low or "std::bad_alloc" in low or "oom-kill" in low:
        return "oom", {"class": "host", **_memory_figures(message)}
    if "outofmemoryerror" in head or re.search(r"out of memory|resource_exhausted|ran out of memory", low):
        figures = _memory_figures(message)
        unallocated = figures.pop("unallocated", None)
        failure = {"class": _memory_class(low, figures, unallocated), **figures}
        chip = re.search(r"\b(?:GPU|XPU|TPU)[ _:](\d{1,5})\b", message)
        if chip is not None:
            failure["device"] = int(chip[1])
        return "oom", failure
    if head in ("floatingpointerror", "nonfiniteerror") or re.search(
        r"\b(?:loss|grad\w*|norm)\b[^.\n]{0,60}\b(?:is |was |became )?(?:nan|inf|not finite|non-?finite)\b"
        r"|\b(?:nan|non-?finite)\b[^.\n]{0,40}\b(?:loss|grad\w*)\b",
        low,
    ):
        return "nan", {"class": "not_oom"}
    return "hang" if reports_hang(low) else "crash", {"class": "not_oom"}


def reports_hang(text: str) -> bool:
    """Whether somebody says here that he gave up waiting for others."""
    import re

    return re.search(_HANGS, text, re.IGNORECASE) is not None


def reports_lost_peer(text: str) -> bool:
    """Whether somebody says here that another went away: the failure is then the other's."""
    import re

    return re.search(_LOST, text, re.IGNORECASE) is not None


def _memory_class(low: str, figures: dict[str, int], unallocated: int | None) -> str:
    import re

    space = re.search(r"memory space (\w{2,12})", low) or re.search(r"scoped (\w{2,12})", low)
    if space is not None and space[1] in _SPACES:
        return _SPACES[space[1]]
    if "loading program" in low:
        return "program_load"
    if "tried to allocate" not in low:
        return "runtime_alloc"
    requested, limit = figures.get("requested_bytes"), figures.get("limit_bytes")
    if requested is not None and limit is not None and requested > limit:
        return "oversized_request"
    if requested is not None and unallocated is not None and unallocated >= requested:
        return "fragmentation"
    return "capacity"


def _memory_figures(message: str) -> dict[str, int]:
    import re

    figures: dict[str, int] = {}
    for name, pattern in _FIGURE_PATTERNS.items():
        match = re.search(pattern, message)
        if match is not None and (unit := _UNITS.get(match[2].upper())) is not None:
            try:
                figures[name] = int(float(match[1]) * unit)
            except ValueError:
                continue
    return figures


def raising_line(trace: TracebackType | None) -> str | None:
    """Where it was raised: the file's own name, the line and the function of the innermost frame."""
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{trace.tb_lineno} in {code.co_name}"[:500]


def failure_phase(steps: int, warmup: int | None, *, begun: bool, compiling: bool) -> str:
    """When it failed: `compile` inside a span of compiling, `startup` before a step, then by the warm-up."""
    if compiling:
        return "compile"
    if not steps and not begun:
        return "startup"
    return "first_window" if steps < max(warmup or 0, 1) else "steady"


NO_STEP_MESSAGE = "it was to train, and ended before its first step did"
OUTCOMES = ("oom", "crash", "hang", "nan", "preempted")


def conclude(run: RunState, error: BaseException | None, died: int | None) -> None:
    """State outcome, exit code and failure of a run that ended with an exception, of a signal, or by itself."""
    record = run.record
    if record.stall is not None and run.steps.count > record.stall.step:
        # It went on after all.
        record.stall, record.outcome, record.failure = None, None, {}
    outcome, record.exit_code = _outcome_of(run, error)
    if died is not None:
        record.exit_code = -died
    if outcome != "oom" and record.stall is not None:
        hung(run, record.stall)
        outcome = "hang"
    elif record.signal is not None and outcome not in ("oom", "hang"):
        # What a job raises when it is asked to stop is not a failure of its own.
        outcome, record.failure = "preempted", {}
    record.outcome = outcome


def without_steps(run: RunState, *, left: bool) -> bool:
    """Judge a run that was to train and made no step: whether it leaves nothing behind; else it did not end well.

    An agent of a launcher and a worker of a loader run the job's script too. They end before it does, and would take
    the name of its receipt, its launch and its rank. ``left`` says that nobody ended the recorder but the process.
    """
    record = run.record
    if record.steps or record.head["kind"] != "training":
        return False
    alone, helper = record.place.world == 1, identity.helper()
    if helper == "daemon" or (record.outcome == "ok" and (helper == "child" or (left and alone))):
        return True
    if record.outcome == "ok" and alone:
        _fail(run, "crash", {"class": "not_oom", "message": NO_STEP_MESSAGE})
    return False


def hung(run: RunState, stalled: Stall) -> None:
    """Note that a step was stuck when the run was told to stop."""
    run.record.stall = stalled
    _fail(run, "hang", {"class": "not_oom", "message": f"{stalled}, when it was told to stop"})


def read_waiting(run: RunState) -> None:
    """Read losses and norms that lie on a device, where the run has ended well; a last one that is not finite is noted.

    A device that stopped may never answer, so that after a failure nothing on it is read.
    """
    record = run.record
    for series in (record.losses, record.norms):
        if record.outcome == "ok":
            series.read(run.steps.current, run.fault)
        else:
            series.drop()
    last = record.losses.last
    if record.outcome == "ok" and last is not None and last - last != 0.0:
        _fail(run, "nan", {"class": "not_oom", "message": f"the last loss that was read is {last}"})


def _outcome_of(run: RunState, error: BaseException | None) -> tuple[str, int | None]:
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if code:
            _fail(run, "crash", failure_of_exception(error)[1])
        return ("crash" if code else "ok"), code
    if isinstance(error, KeyboardInterrupt):
        return "preempted", 130
    if type(error).__name__ == "CancelledError":
        # asyncio's: what its loop makes of Ctrl-C, and of a task that is canceled.
        return "preempted", None
    if error is not None and not isinstance(error, GeneratorExit):
        outcome, failure = failure_of_exception(error)
        if outcome == "crash" and not run.record.losses.finite:
            outcome = "nan"
        _fail(run, outcome, failure)
        return outcome, 1
    return run.record.outcome or "ok", 0


def caught_failure(run: RunState, error: BaseException | str, outcome: str | None) -> None:
    """Note a failure that the job caught."""
    if isinstance(error, str):
        named, failure = failure_of_text(error)
        failure = {"message": error[:MAX_MESSAGE_READ], **failure}
    else:
        named, failure = failure_of_exception(error)
    if outcome is not None and outcome not in OUTCOMES:
        run.fault(f"an outcome of a failure is one of {', '.join(OUTCOMES)}, and not {outcome!r:.40}")
        outcome = None
    _fail(run, outcome or named, failure)


def _fail(run: RunState, outcome: str, failure: dict[str, Any]) -> None:
    steps, record = run.steps, run.record
    compiling = steps.gauges[OPEN_SPAN] == 1
    failure["step"] = steps.count
    failure["phase"] = failure_phase(steps.count, record.warmup, begun=steps.inside, compiling=compiling)
    if record.place.world > 1:
        failure["rank"] = record.place.rank
    failure["message"] = secrets.redact(str(failure.get("message", outcome)))[:MAX_MESSAGE]
    record.outcome, record.failure = outcome, failure
    run.tell(["failure", outcome, failure])
