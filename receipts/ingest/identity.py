"""Which launch this is: its digest, start, kind and lane, what it was started with, and which files are of it.

A trace of another run proves nothing. A file that shows the path is compared with what the receipt states: the time
between start and end, host and process, the number of steps, the versions, the chip, the shape and the type of
attention. One that contradicts any is not read, but for one that the receipt lists and that shows other work alone. One
that shows neither time, host nor process, and that the job did not list, is read, and a remark says so. Whoever makes
up a whole trace passes: what vouches for it is a signature.

The section ``inputs`` holds the line that a tracker, a file of commands or a script has, and the settings that the
program printed of itself. A file says what was typed. It does not say which variables the program reads, or what stood
in the files that its options name, so that nothing is held by it: `inputs.capture` says where it was read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from receipts.axes.lane import Lane
from receipts.base.untrusted_text import redacted
from receipts.emit.launch_values import normal
from receipts.emit.secrets import allowed, secret_name
from receipts.ingest import vocabulary
from receipts.ingest.clock import Stamp, first_stamp, last_stamp, modified, partial_stamp
from receipts.ingest.draft import RECEIPT, Options, ReceiptDraft, SourcedLeaf, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import alike
from receipts.ingest.path import LIBRARIES
from receipts.ingest.reading import Reading
from receipts.ingest.resolve import readings
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.names import permitted

SOURCE: Final = "identity"
FILE_CLOCK: Final = "file date"
UNLISTED: Final = "unlisted"
_LAUNCH: Final = ("run.host", "run.started", "run.command")


def state_identity(draft: ReceiptDraft, files: Sequence[FileEvidence], options: Options) -> None:
    """State what a receipt must have under ``run``; what cannot be had is left out, and the caller told."""
    _started(draft, files)
    if options.lane is not None:
        draft.put("run.lane", options.lane, Where("--lane"), SOURCE)
    elif draft.get("run.lane") is None:
        name, why = proposed(draft, options.lanes)
        draft.put("run.lane", name, Where("ingest"), SOURCE, why)
        if options.lanes:
            draft.tell("note", f"lane {name}: {why}")
    for path, value in (("run.kind", options.kind or "training"), ("run.provenance", "measured")):
        draft.fill(path, value, Where("ingest"), SOURCE)
    # Host, start and command where all three are known, else the digests of the files in which something is known.
    # A copy of a file has another date, and is of the same launch.
    stated = (path for path in _LAUNCH if path not in draft.leaves or draft.leaves[path].source != FILE_CLOCK)
    known = [str(draft.get(path)) for path in stated if draft.get(path) is not None]
    if len(known) == len(_LAUNCH):
        text = "digest of host, start and command"
    else:
        known = sorted({file.sha256 for file in files if file.readings} or {file.sha256 for file in files})
        text = f"digest of {len(known)} file{'s' if len(known) != 1 else ''}"
    draft.fill("run.launch", hashlib.sha256("\n".join(known).encode()).hexdigest(), Where("ingest"), SOURCE, text)


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
    # The last stamp of the logs that began it, where all can be read from their end; one stamp alone is no end.
    known = [(last, file) for _, file in stamps if (last := last_stamp(file)) is not None]
    if len(known) == len(stamps):
        last, file = max(known, key=lambda pair: pair[0].time)
        if last.time > stamp.time:
            draft.fill("run.finished", _written(last), Where(file.name), "clock", last.text)
    if not stamp.zoned:
        draft.put("run.started_stated", f"{stamp.text} (no zone in the log; read as UTC)", where, "clock")


def _by_files(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """The start by the dates of the files, where none prints its own; the receipt says so, and by which."""
    printed = [(partial, file) for file in files if (partial := partial_stamp(file)) is not None]
    dated = [(stamp, file) for file in files if (stamp := modified(file)) is not None]
    if not dated:
        return
    if printed:
        (stamp, lacks), file = min(printed, key=lambda pair: pair[0][0].time)
        text = f"{stamp.text} ({lacks} is that of the file's date, read as UTC)"
    else:
        stamp, file = min(dated, key=lambda pair: pair[0].time)
        text = f"{stamp.text}, when {file.name} was last written, the earliest of {len(dated)}; no file prints a time"
    where = Where(file.name)
    draft.put("run.started", _written(stamp), where, FILE_CLOCK, stamp.text)
    draft.put("run.started_stated", text, where, FILE_CLOCK)
    draft.tell("note", f"run.started is {text}; --set run.started=… states a better one")


def _written(stamp: Stamp) -> str:
    time = stamp.time
    text = time.isoformat(timespec="microseconds" if time.microsecond else "seconds")
    return text.replace("+00:00", "Z") if time.tzinfo is UTC else text


# What runs on accelerators of several makers: its name alone shows no lane.
_ANYWHERE: Final = LIBRARIES | {"maxtext"}


def proposed(draft: ReceiptDraft, lanes: Sequence[Lane]) -> tuple[str, str]:
    """The one lane whose framework and accelerator the evidence shows, and why; `unlisted` where that is not one."""
    framework = draft.get("path.witnessed.framework") or draft.get("path.intended.framework")
    runtime = draft.get("path.witnessed.runtime") or draft.get("path.intended.runtime")
    named = draft.get("hardware.accelerator")
    machine = find_accelerator(str(named)) if named is not None else None
    fitting = [
        lane
        for lane in lanes
        if framework in lane.frameworks
        and (framework not in _ANYWHERE or machine is not None or runtime is not None)
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


CLOCKS_SECONDS: Final = 60.0  # clocks of two hosts, and what a job does before its recorder and after it
# Files of one session of JAX's profiler, of which only the second has a clock and a host.
_SESSION: Final = re.compile(r"\.(?:trace\.json\.gz|xplane\.pb)$")
_FLOATS: Final = frozenset({"fp32", "bf16", "fp16", "fp64"})  # attention of an FP8 run is in another type
_WHICH_LAUNCH: Final = frozenset({"run.finished", "run.host", "run.processes"})  # others agree in the rest
_WORK: Final = frozenset({"batch.sequence_length", "numerics.compute_dtype"})
_IDENTITY: Final = ("wheels.torch", "hardware.accelerator")


class Bond(NamedTuple):
    """One thing that a file and a receipt both state: in which leaf, whether they agree, and how not."""

    leaf: str
    holds: bool
    why: str


def of_this_launch(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> list[FileEvidence]:
    """The files, without those that show the path of another launch than that of the receipt among them."""
    if draft.base is None:
        return list(files)
    own, listed = [], {entry.get("sha256") for entry in draft.base.tree.get("evidence", ())}
    sessions: dict[str, list[Bond]] = {}
    for file in files:
        bonds = sessions.setdefault(_SESSION.sub("", file.name), [])
        bonds.extend(bond for reading in file.readings for bond in _bonds(draft, reading))
    for file in files:
        bonds = sessions[_SESSION.sub("", file.name)]
        broken = [bond for bond in bonds if not bond.holds]
        if file.sha256 in listed and all(bond.leaf in _WORK for bond in broken):
            # The receipt names it as its own: it is evidence of other work, which rules judge.
            for bond in broken:
                draft.contradict(bond.leaf, f"{file.name} shows other work: {bond.why}")
            broken = []
        if broken:
            draft.strangers[file.name] = broken[0].why
        for bond in broken:
            draft.contradict(bond.leaf, f"{file.name} is of another launch, and is not read: {bond.why}")
        if not broken:
            own.append(file)
            leaves = sorted({bond.leaf for bond in bonds})
            unnamed = _WHICH_LAUNCH.isdisjoint(leaves) and file.sha256 not in listed
            if unnamed and any(_shows_kernels(reading) for reading in file.readings):
                text = "no time, host or process in it shows that it is of this launch"
                agrees = f"; it agrees in {', '.join(leaves)}" if leaves else ""
                draft.tell("note", text + agrees, Where(file.name))
    return own


def counted_as_listed(draft: ReceiptDraft, file: FileEvidence) -> FileEvidence:
    """The file with the receipt's number of steps, where that lists it, and it counts more marks than steps.

    A step may have several: the end of a range that the job traces is one, and so is that of an evaluation.
    """
    if draft.base is None or all(entry.get("sha256") != file.sha256 for entry in draft.base.tree.get("evidence", ())):
        return file
    durations = draft.get("measurement.step_durations_seconds")
    steps = len(durations) if isinstance(durations, list) else 0
    counted: list[Reading] = []
    for reading in file.readings:
        marks = reading.steps_covered or 0
        if reading.marks and 0 < steps < marks:
            reports = [
                replace(item, steps=item.steps * steps // marks, programs=-(-item.programs * marks // steps))
                for item in reading.reports
            ]
            reading = replace(reading, steps_covered=steps, reports=reports, remarks=list(reading.remarks))
            reading.remark("note", f"{marks} ends of programs were marked in the {steps} steps of the receipt")
        counted.append(reading)
    return replace(file, readings=tuple(counted))


def _shows_kernels(reading: Reading) -> bool:
    return reading.source != RECEIPT and any(seen.level == "kernels" for seen in reading.seen)


def _bonds(draft: ReceiptDraft, reading: Reading) -> Iterator[Bond]:
    if not _shows_kernels(reading) and not reading.processes:
        return
    began, ended = (_seconds(draft.get(f"run.{name}")) for name in ("started", "finished"))
    exact = draft.get("run.started_stated") is None
    if exact and reading.between is not None and began is not None and ended is not None:
        first, last = reading.between
        inside = began - CLOCKS_SECONDS <= first and last <= ended + CLOCKS_SECONDS
        yield Bond("run.finished", inside, f"it covers {_clock(first)} to {_clock(last)}")
    longest = ended - began + CLOCKS_SECONDS if exact and began is not None and ended is not None else None
    if longest is not None and reading.lasts is not None and reading.lasts > longest:
        yield Bond("run.finished", False, f"its events take {reading.lasts:.0f} s, and the launch took less")
    host = draft.get("run.host")
    if reading.host and isinstance(host, str) and draft.get("hardware.hosts") in (None, 1):
        same = reading.host.partition(".")[0].lower() == host.partition(".")[0].lower()
        yield Bond("run.host", same, f"it was taken on {reading.host}, and the receipt states {host}")
    processes = draft.get("run.processes")
    if reading.processes and processes:
        which = ", ".join(map(str, sorted(reading.processes)[:3]))
        yield Bond("run.processes", not reading.processes.isdisjoint(processes), f"it was taken in process {which}")
    steps = draft.get("measurement.step_durations_seconds")
    if reading.steps_covered and isinstance(steps, list) and steps:
        yield Bond(
            "measurement.step_durations_seconds",
            reading.steps_covered <= len(steps),
            f"it covers {reading.steps_covered} steps, of {len(steps)}",
        )
    for leaf in _IDENTITY:
        own, shown = draft.get(leaf), reading.stated.get(leaf)
        if own is not None and shown is not None:
            stated = own.get("version") if isinstance(own, dict) else own
            same = alike(leaf, stated, shown.value)
            if leaf.startswith("wheels."):  # a local version (+cu128) is not always stated
                same = str(stated).partition("+")[0] == str(shown.value).partition("+")[0]
            yield Bond(leaf, same, f"it states {shown.value}, and the receipt {stated}")
    dtype = draft.get("numerics.compute_dtype")
    if reading.query_types and dtype in _FLOATS:
        types = ", ".join(sorted(reading.query_types))
        yield Bond("numerics.compute_dtype", dtype in reading.query_types, f"its attention runs in {types}")
    # Attention on the stated sequence, on the part of it that a rank has, or on a packed micro-batch of it. One
    # operator that fits is enough: windows, caches and evaluations run on lengths of their own.
    length, width = draft.get("batch.sequence_length"), draft.get("model.head_dim")
    if not reading.queries or not isinstance(length, int):
        return
    ranks, packed = draft.get("parallelism.context") or 1, draft.get("batch.micro_batch") or 1
    # A shifted target leaves the last token out; rings give a rank two half parts.
    fitting = {length, length - 1, length * packed, length // ranks, length * packed // ranks}
    if ranks > 1:
        fitting.add(length // (2 * ranks))
    shapes = ", ".join(f"{sequence} × {head}" for sequence, head in sorted(reading.queries)[:3])
    # Latent attention adds half a head to queries, for positions (DeepSeek-V2, section 2.1).
    wide = {width, width * 3 // 2} if isinstance(width, int) else None
    holds = any(sequence in fitting and (wide is None or head in wide) for sequence, head in reading.queries)
    yield Bond("batch.sequence_length", holds, f"its attention runs on {shapes}")


def _seconds(text: object) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


def _clock(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:.0f} s"


# Whose word on the launch line goes first: what the process told a tracker, what was typed, what a script holds.
_LAUNCH_SOURCES: Final = ("wandb", "command-line", "launch")
_INPUTS: Final = "inputs"


def state_inputs(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State the inputs that files show; what the recorder captured is whole, and stands."""
    if "inputs" in draft.tree:
        return
    _launch_line(draft, [(file, reading) for file, reading in readings(files) if reading.launch is not None])
    # What a program printed of its own settings; else what one recipe asked, which the command line may override.
    candidates = [(file, reading) for file, reading in readings(files) if reading.resolved]
    asked = [item for item in candidates if vocabulary.source(item[1].source).strength == "asked"]
    best = [item for item in candidates if item not in asked] or asked
    if not best:
        return
    file, reading = best[0]
    where = Where(file.name)
    if best is asked and any(other.resolved != reading.resolved for _, other in asked):
        names = ", ".join(sorted({file.name for file, _ in asked})[:5])
        draft.tell("note", f"{names} hold other settings: which of them the launch took is not known", where)
        return
    settings = {name: str(redacted(text, name)) for name, text in sorted(reading.resolved.items())}
    draft.tree.setdefault("inputs", {})["resolved"] = settings
    draft.leaves["inputs.resolved"] = SourcedLeaf("inputs.resolved", f"{len(settings)} settings", where, _INPUTS)


def _launch_line(draft: ReceiptDraft, candidates: list[tuple[FileEvidence, Reading]]) -> None:
    first = min(
        (_LAUNCH_SOURCES.index(reading.source) for _, reading in candidates if reading.source in _LAUNCH_SOURCES),
        default=0,
    )
    best = [item for item in candidates if item[1].source == _LAUNCH_SOURCES[first]]
    if not best:
        return
    file, reading = best[0]
    assert reading.launch is not None
    line = reading.launch.line
    where = Where(file.name, reading.launch.place)
    if any(_content(other) != _content(reading) for _, other in best[1:]):
        names = ", ".join(sorted({file.name for file, _ in best})[:5])
        draft.tell("note", f"{names} start other programs, or give them other options: no launch line is stated", where)
        return
    text = reading.launch.text
    draft.fill("run.command", text, where, reading.source, text[:80])
    draft.put("inputs.program", line.program, where, reading.source, text[:80])
    for name in ("options", "launcher"):
        for key, value in getattr(line, name).items():
            draft.put(f"inputs.{name}.{key[:200]}", value, where, reading.source, f"{key}={value}"[:80])
    for name, value in line.environment.items():
        if allowed(name):
            draft.fill(f"flags.{name}", value, where, reading.source, f"{name}={value}"[:80])
        elif not secret_name(name):
            draft.put(f"inputs.environment.{name}", value, where, reading.source, f"{name}={value}"[:80])
    draft.put("inputs.capture", f"read in {where}: its files and variables were not seen", where, _INPUTS)


def _content(reading: Reading) -> tuple[str | None, dict[str, str]]:
    assert reading.launch is not None
    line = reading.launch.line
    return line.program, {key: normal(value) for key, value in line.options.items()}
