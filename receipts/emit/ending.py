"""How a run ends: an exception, a signal, a loss that is not finite, or well."""

from __future__ import annotations

from receipts.emit import failures, place, secrets
from receipts.emit.journal import OPEN_SPAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.run import RunState
    from receipts.emit.stall import Stall

STEPLESS = "it was to train, and ended before its first step did"
OUTCOMES = ("oom", "crash", "hang", "nan", "preempted")


def conclude(run: RunState, error: BaseException | None, died: int | None) -> None:
    """State outcome, exit code and failure of a run that ended with an exception, of a signal, or by itself."""
    record = run.record
    if record.stall is not None and run.steps.count > record.stall.step:
        # It went on after all.
        record.stall, record.outcome, record.failure = None, None, {}
    outcome, record.exit_code = _of(run, error)
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
    alone, helper = record.place.world == 1, place.helper()
    if helper == "daemon" or (record.outcome == "ok" and (helper == "child" or (left and alone))):
        return True
    if record.outcome == "ok" and alone:
        _fail(run, "crash", {"class": "not_oom", "message": STEPLESS})
    return False


def hung(run: RunState, stalled: Stall) -> None:
    """Note that a step was stuck when the run was told to stop."""
    run.record.stall = stalled
    _fail(run, "hang", {"class": "not_oom", "message": f"{stalled}, when it was told to stop"})


def read(run: RunState) -> None:
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


def _of(run: RunState, error: BaseException | None) -> tuple[str, int | None]:
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if code:
            _fail(run, "crash", failures.of_exception(error)[1])
        return ("crash" if code else "ok"), code
    if isinstance(error, KeyboardInterrupt):
        return "preempted", 130
    if type(error).__name__ == "CancelledError":
        # asyncio's: what its loop makes of Ctrl-C, and of a task that is canceled.
        return "preempted", None
    if error is not None and not isinstance(error, GeneratorExit):
        outcome, failure = failures.of_exception(error)
        if outcome == "crash" and not run.record.losses.finite:
            outcome = "nan"
        _fail(run, outcome, failure)
        return outcome, 1
    return run.record.outcome or "ok", 0


def caught(run: RunState, error: BaseException | str, outcome: str | None) -> None:
    """Note a failure that the job caught."""
    if isinstance(error, str):
        named, failure = failures.of_text(error)
        failure = {"message": error[: failures.LONGEST_READ], **failure}
    else:
        named, failure = failures.of_exception(error)
    if outcome is not None and outcome not in OUTCOMES:
        run.fault(f"an outcome of a failure is one of {', '.join(OUTCOMES)}, and not {outcome!r:.40}")
        outcome = None
    _fail(run, outcome or named, failure)


def _fail(run: RunState, outcome: str, failure: dict[str, Any]) -> None:
    steps, record = run.steps, run.record
    compiling = steps.gauges[OPEN_SPAN] == 1
    failure["step"] = steps.count
    failure["phase"] = failures.phase(steps.count, record.warmup, begun=steps.inside, compiling=compiling)
    if record.place.world > 1:
        failure["rank"] = record.place.rank
    failure["message"] = secrets.redact(str(failure.get("message", outcome)))[: failures.LONGEST]
    record.outcome, record.failure = outcome, failure
    run.tell(["failure", outcome, failure])
