"""Leaves that files state outright: configuration, versions, hardware, identity. Who is believed, and who disagrees.

What the program printed of itself is above a command line or launch file, and that above notes. Two sources of one rank
that differ leave the leaf unstated: a pick would be a guess.

The section ``inputs`` holds what the launch was started with: the line that a tracker, a file of commands or a script
has, and the settings that the program printed of itself. A file says what was typed. It does not say which variables
the program reads, or what stood in the files that its options name, so that nothing is held by it: `inputs.capture`
says where it was read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from receipts.base.untrusted_text import redacted
from receipts.emit.launch_values import normal
from receipts.emit.secrets import allowed, secret_name
from receipts.ingest.draft import ReceiptDraft, SourcedLeaf, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import alike, fitting
from receipts.ingest.reading import Reading, StatedValue
from receipts.receipt.leaves import find_leaf

SET: Final = "--set"
# What is asked for, before the program runs; everything else is what the program says of itself.
# A list of pins may be what was to be installed.
ASKED: Final = frozenset(
    {
        "command-line",
        "launch",
        "launch-config",
        "config",
        "deepspeed-config",
        "wandb",
        "pip-freeze",
        "step-map",
        "mlperf-system",
    }
)
NOTES: Final = frozenset({"notes", "readme", "mlperf-platform"})
# Stated by some reader for others to use, and no leaf of the receipt.
READING_ONLY: Final = ("measurement.flops_per_step_per_chip", "measurement.target_tokens_per_step")
# Lists of rows that a reader makes whole.
ROWS: Final = ("measurement.path_counters",)
# What ranks measure side by side: the highest of them is the run's.
_HIGHEST: Final = ("measurement.exposed_communication_seconds",)
# What every rank and attempt has its own of: the first that is reported stands, and nothing contradicts.
_OWN: Final = ("run.host", "run.site", "run.label", "run.command", "run.started", "run.started_stated", "run.finished")
# Which clock timed the steps: of a receipt's own steps no file beside it says.
_TIMER: Final = "measurement.timer"


@dataclass(frozen=True, slots=True)
class StatedLeaf:
    """One file's statement of one leaf."""

    value: Any
    stated: StatedValue
    where: Where
    source: str
    trust: int


def trust(source: str) -> int:
    """3 for what a program printed of itself, 2 for what it was asked, 1 for what people wrote down."""
    return 1 if source in NOTES else 2 if source in ASKED else 3


def state_config(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State every leaf on which the best sources agree."""
    for path, claims in _claims(draft, files).items():
        _state(draft, path, claims)


def stated(files: Iterable[FileEvidence], path: str) -> StatedLeaf | None:
    """The first statement of a leaf, by trust; also of what only readings have."""
    claims = [
        StatedLeaf(item.value, item, Where(file.name, item.place), reading.source, trust(reading.source))
        for file, reading in readings(files)
        if (item := reading.stated.get(path)) is not None
    ]
    return max(claims, key=lambda claim: claim.trust, default=None)


def readings(files: Iterable[FileEvidence]) -> Iterable[tuple[FileEvidence, Reading]]:
    """Every reading with its file."""
    return ((file, reading) for file in files for reading in file.readings)


def _claims(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> dict[str, list[StatedLeaf]]:
    claims: defaultdict[str, list[StatedLeaf]] = defaultdict(list)
    for file, reading in readings(files):
        firsts, others = reading.stated.items(), reading.others.items()
        for path, claim in (*firsts, *((path, item) for path, items in others for item in items)):
            where = Where(file.name, claim.place)
            timed = path == _TIMER and draft.base is not None and draft.base.get("measurement.step_durations_seconds")
            if path in READING_ONLY or path == "schema_version" or timed:
                continue
            if path not in ROWS and (find_leaf(path) is None or "[]" in path):
                draft.tell("note", f"{path} is {claim.text[:80]}; the receipt has no such leaf", where)
                continue
            value = fitting(path, claim.value)
            if value is None:
                draft.tell("note", f"{path} reads {claim.text[:80]!r}, which is not a value for it", where)
                continue
            claims[path].append(StatedLeaf(value, claim, where, reading.source, trust(reading.source)))
    return claims


def _state(draft: ReceiptDraft, path: str, claims: list[StatedLeaf]) -> None:
    best = [claim for claim in claims if claim.trust == max(item.trust for item in claims)]
    first = best[0]
    if path in _HIGHEST:
        first = max(best, key=lambda claim: claim.value)
    elif path in _OWN:
        first = min(best, key=lambda claim: str(claim.value)) if path == "run.started" else first
    else:
        others = [claim for claim in claims if not alike(path, claim.value, first.value)]
        torn = [claim for claim in others if claim.trust == first.trust]
        if others:
            what = "; ".join(f"{claim.where} says {_shown(claim)}" for claim in [first, *_distinct(path, others)][:4])
            draft.contradict(path, what, "" if torn else _shown(first))
        if torn:
            return
    draft.put(path, first.value, first.where, first.source, first.stated.text)


def _distinct(path: str, claims: Sequence[StatedLeaf]) -> list[StatedLeaf]:
    kept: list[StatedLeaf] = []
    for claim in claims:
        if not any(alike(path, claim.value, other.value) for other in kept):
            kept.append(claim)
    return kept


def _shown(claim: StatedLeaf) -> str:
    text, value = claim.stated.text[:80], str(claim.value)[:80]
    return text if value.lower() in text.lower() or not text else f"{value} ({text})"


# Whose word on the launch line goes first: what the process told a tracker, what was typed, what a script holds.
_LAUNCH_SOURCES: Final = ("wandb", "command-line", "launch")
_INPUTS: Final = "inputs"


def state_inputs(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State the inputs that files show; what the recorder captured is whole, and stands."""
    if "inputs" in draft.tree:
        return
    _launch(draft, [(file, reading) for file, reading in readings(files) if reading.launch is not None])
    for file, reading in readings(files):
        if reading.resolved and "resolved" not in draft.tree.get("inputs", {}):
            settings = {name: str(redacted(text, name)) for name, text in sorted(reading.resolved.items())}
            draft.tree.setdefault("inputs", {})["resolved"] = settings
            where = Where(file.name)
            draft.leaves["inputs.resolved"] = SourcedLeaf(
                "inputs.resolved", f"{len(settings)} settings", where, _INPUTS
            )


def _launch(draft: ReceiptDraft, candidates: list[tuple[FileEvidence, Reading]]) -> None:
    best = [
        item
        for item in candidates
        if item[1].source == next((n for n in _LAUNCH_SOURCES if _has_inputs(candidates, n)), None)
    ]
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


def _has_inputs(candidates: list[tuple[FileEvidence, Reading]], source: str) -> bool:
    return any(reading.source == source for _, reading in candidates)


def _content(reading: Reading) -> tuple[str | None, dict[str, str]]:
    assert reading.launch is not None
    line = reading.launch.line
    return line.program, {key: normal(value) for key, value in line.options.items()}
