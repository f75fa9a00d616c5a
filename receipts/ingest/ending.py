"""How the launch ended: the failure that stopped it, a loss that diverged, or nothing that says otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Final

from receipts.base.errors import UsageError
from receipts.ingest.config import readings
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.reader import LineReader, readers_in
from receipts.ingest.evidence.reading import AllocationFailure, Reading, first_cause
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.stream import Source
from receipts.ingest.log_end import log_end, prints_steps
from receipts.ingest.planned import stops_short
from receipts.ingest.series import StepSeries

SOURCE: Final = "ending"
_SHOWN: Final = 5
# Sources that print step 1 and then every so many: behind step 1 alone several more may have passed.
_FIRST_ALONE: Final = ("torchtitan",)
_SKIPPED: Final = ("place", "is_oom", "fatal")


def state_ending(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> None:
    """State ``run.outcome``, and ``failure`` where one stopped the launch."""
    failures = [(file, reading, item) for file, reading in readings(files) for item in reading.failures]
    stopped = _first_fatal(draft, failures, steps)
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
    elif cut := next((file for file, reading in readings(files) if reading.cut), None):
        draft.put("run.outcome", "crash", Where(cut.name), SOURCE, "the log ends before the run does")
    elif (broken := next((file for file in files if file.cut and _may_hold_the_end(file, steps)), None)) is not None:
        what = "it breaks off, so that how the launch ended is not known"
        draft.tell("missing", f"run.outcome: {what}; state it: --set run.outcome=ok", Where(broken.name))
    elif draft.get("run.exit_code") != 0 and (silent := stops_short(files, steps)) is not None:
        what = "the log stops far before the last step that it plans, and nothing shows why"
        draft.tell("missing", f"run.outcome: {what}; state it: --set run.outcome=ok, or crash", Where(silent.name))
    else:
        where = Where(steps.track.file.name if steps is not None else "ingest")
        draft.put("run.outcome", "ok", where, SOURCE, "nothing shows a failure")
        if steps is None and not any(reading.complete for _, reading in readings(files)):
            draft.tell("note", "no file shows how the launch ended; without a failure it counts as ok, unless --set")


def failure_in(text: bytes) -> AllocationFailure | None:
    """The failed allocation that began what a text tells; None where it tells of none."""
    kinds = [kind for kind in readers_in("memory") if issubclass(kind, LineReader)]
    scanned = scan([text.rstrip(b"\n") + b"\n"], kinds)
    return first_cause(item for reading in scanned for item in reading.failures if item.fatal)


def _may_hold_the_end(file: FileEvidence, steps: StepSeries | None) -> bool:
    """Whether a file is that of the steps, or the log of a launch without any."""
    return file.name == steps.track.file.name if steps is not None else bool(file.readings)


def _first_fatal(
    draft: ReceiptDraft, failures: Sequence[tuple[FileEvidence, Reading, AllocationFailure]], steps: StepSeries | None
) -> tuple[FileEvidence, Reading, AllocationFailure] | None:
    survived: list[str] = []
    for file, reading, failure in sorted(failures, key=lambda item: not item[2].is_oom):
        where = Where(file.name, failure.place)
        if not failure.is_oom and not failure.fatal:
            continue  # words that merely look like a failure
        why = _went_on(file, failure, steps) if failure.fatal else "it did not end the run"
        if why is None:
            return file, reading, failure
        survived.append(why)
        if len(survived) <= _SHOWN:
            draft.tell("note", f"{failure.message[:100] or failure.class_}: {why}", where)
    return None


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
    if any(reading.trains for reading in file.readings):
        return "steps follow it, the run went on" if _steps_follow(file, failure.place.line) else None
    if steps is not None and failure.step is not None and steps.numbers[-1] > failure.step + 1:
        return f"the run went on to step {steps.numbers[-1]}"
    return None


def _steps_follow(file: FileEvidence, line: int) -> bool:
    """Whether the file prints a training step after a line. Only logs with a failure in them are read again."""
    try:
        return line > 0 and prints_steps(file, _after(Source(file.path, file.name), line))
    except UsageError:
        return False


def _after(source: Source, line: int) -> Iterator[bytes]:
    """The chunks of whole lines behind a line."""
    for chunk in source.chunks():
        parts = chunk.split(b"\n", line)
        if len(parts) > line:
            yield parts[line]
        line -= len(parts) - 1


def _outrun(file: FileEvidence, steps: StepSeries | None) -> bool:
    """Whether another file's steps go on behind those of a file: an attempt that failed, and not the last one."""
    last = max((number for reading in file.readings for number in reading.steps), default=None)
    return last is not None and steps is not None and steps.numbers[-1] > last


def _diverged(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> Where | None:
    """Where a divergence is: a reader saw one that its source hides, or the last loss is not finite."""
    places = [Where(file.name) for file, reading in readings(files) if reading.diverged]
    if places:
        draft.put("measurement.loss.finite", False, places[0], SOURCE)
        return places[0]
    losses = [value for value in steps.column("loss") if value is not None] if steps is not None else []
    if losses and steps is not None and not math.isfinite(losses[-1]):
        return Where(steps.track.file.name)
    return None
