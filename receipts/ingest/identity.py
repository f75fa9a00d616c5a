"""Which launch this is: its digest, its start, its kind and lane."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC
from typing import Final

from receipts.ingest.clock import Stamp, first_stamp, last_stamp, modified, yearless
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.options import LaneOptions, Options
from receipts.ingest.witness import LIBRARIES
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.route import permitted

SOURCE: Final = "identity"
FILE_CLOCK: Final = "file date"
UNLISTED: Final = "unlisted"
_LAUNCH: Final = ("run.host", "run.started", "run.command")


def state_identity(draft: ReceiptDraft, files: Sequence[FileEvidence], options: Options) -> None:
    """State what a receipt must have under ``run``; what cannot be had is left out, and the caller told."""
    _started(draft, files)
    _lane(draft, options)
    for path, value in (("run.kind", options.kind or "training"), ("run.provenance", "measured")):
        draft.fill(path, value, Where("ingest"), SOURCE)
    launch, text = _launch(draft, files)
    draft.fill("run.launch", launch, Where("ingest"), SOURCE, text)


def _started(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    if draft.get("run.started") is not None:
        return
    logs = [file for file in files if any(len(reading.steps) for reading in file.readings)]
    others = [file for file in files if file.readings and file not in logs]
    for group in (logs, others):
        stamps = [(stamp, file) for file in group if (stamp := first_stamp(file)) is not None]
        if stamps:
            break
    else:
        _by_files(draft, logs + others)
        return
    stamp, file = min(stamps, key=lambda pair: pair[0].time)
    where = Where(file.name, stamp.place)
    draft.put("run.started", _written(stamp), where, "clock", stamp.text)
    _finished(draft, [file for _, file in stamps], stamp)
    if not stamp.zoned:
        draft.put("run.started_stated", f"{stamp.text} (no zone in the log; read as UTC)", where, "clock")


def _by_files(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """The start by the dates of the files, where none prints its own; the receipt says so, and by which."""
    printed = [(stamp, file) for file in files if (stamp := yearless(file)) is not None]
    dated = [(stamp, file) for file in files if (stamp := modified(file)) is not None]
    if not dated:
        return
    stamp, file = min(printed or dated, key=lambda pair: pair[0].time)
    if printed:
        text = f"{stamp.text} (no year and no zone in the log; the year is that of the file's date, read as UTC)"
    else:
        text = f"{stamp.text}, when {file.name} was last written, the earliest of {len(dated)}; no file prints a time"
    where = Where(file.name)
    draft.put("run.started", _written(stamp), where, FILE_CLOCK, stamp.text)
    draft.put("run.started_stated", text, where, FILE_CLOCK)
    draft.tell("note", f"run.started is {text}; --set run.started=… states a better one")


def _finished(draft: ReceiptDraft, files: Sequence[FileEvidence], first: Stamp) -> None:
    """The last stamp of the logs that began it, where all can be read from their end; one stamp alone is no end."""
    stamps = [(last_stamp(file), file) for file in files]
    known = [(stamp, file) for stamp, file in stamps if stamp is not None]
    if known and len(known) == len(stamps):
        stamp, file = max(known, key=lambda pair: pair[0].time)
        if stamp.time > first.time:
            draft.fill("run.finished", _written(stamp), Where(file.name), "clock", stamp.text)


def _written(stamp: Stamp) -> str:
    time = stamp.time
    text = time.isoformat(timespec="microseconds" if time.microsecond else "seconds")
    return text.replace("+00:00", "Z") if time.tzinfo is UTC else text


def _lane(draft: ReceiptDraft, options: Options) -> None:
    if options.lane is not None:
        draft.put("run.lane", options.lane, Where("--lane"), SOURCE)
        return
    if draft.get("run.lane") is not None:
        return
    name, why = proposed(draft, options.lanes)
    draft.put("run.lane", name, Where("ingest"), SOURCE, why)
    if options.lanes:
        draft.tell("note", f"lane {name}: {why}")


def proposed(draft: ReceiptDraft, lanes: Sequence[LaneOptions]) -> tuple[str, str]:
    """The one lane whose framework and accelerator the evidence shows, and why; `unlisted` where that is not one."""
    framework = draft.get("path.witnessed.framework") or draft.get("path.intended.framework")
    runtime = draft.get("path.witnessed.runtime")
    named = draft.get("hardware.accelerator")
    machine = find_accelerator(str(named)) if named is not None else None
    fitting = [
        lane
        for lane in lanes
        if framework in lane.frameworks
        and (framework not in LIBRARIES or machine is not None or runtime is not None)
        and (machine is None or machine.key in lane.accelerators)
        and (runtime is None or permitted(runtime, lane.path.get("runtime", ("*",))))
    ]
    on = machine.key if machine is not None else f"{named}, which is not known" if named else "an unnamed accelerator"
    if len(fitting) == 1:
        return fitting[0].name, f"proposed for {framework} on {on}; --lane names another"
    if framework is None:
        return UNLISTED, "no file shows the framework; name a lane by --lane"
    which = f"{' and '.join(lane.name for lane in fitting)} fit" if fitting else "no lane is for"
    on = f"{on} (runtime {runtime})" if runtime else on
    return UNLISTED, f"{which} {framework} on {on}; name one by --lane"


def _launch(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> tuple[str, str]:
    """Host, start and command where all three are known, else the digests of the files in which something is known."""
    # A copy of a file has another date, and is of the same launch.
    stated = (path for path in _LAUNCH if path not in draft.leaves or draft.leaves[path].source != FILE_CLOCK)
    known = [str(draft.get(path)) for path in stated if draft.get(path) is not None]
    if len(known) == len(_LAUNCH):
        text = "digest of host, start and command"
    else:
        known = sorted({file.sha256 for file in files if file.readings} or {file.sha256 for file in files})
        text = f"digest of {len(known)} file{'s' if len(known) != 1 else ''}"
    return hashlib.sha256("\n".join(known).encode()).hexdigest(), text
