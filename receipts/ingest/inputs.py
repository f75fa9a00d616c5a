"""The section ``inputs``: what the launch was started with.

It holds the line that a tracker, a file of commands or a script has, and the settings that the program printed of
itself. A file says what was typed. It does not say which variables the program reads, or what stood in the files that
its options name, so that nothing is held by it: `inputs.capture` says where it was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from receipts.base.untrusted_text import redacted
from receipts.emit.launch_values import normal
from receipts.emit.secrets import allowed, secret_name
from receipts.ingest import vocabulary
from receipts.ingest.draft import ReceiptDraft, SourcedLeaf, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Reading
from receipts.ingest.resolve import readings

# Whose word on the launch line goes first: what the process told a tracker, what was typed, what a script holds.
_LAUNCH_SOURCES: Final = ("wandb", "command-line", "launch")
_INPUTS: Final = "inputs"


def state_inputs(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State the inputs that files show; what the recorder captured is whole, and stands."""
    if "inputs" in draft.tree:
        return
    _launch(draft, [(file, reading) for file, reading in readings(files) if reading.launch is not None])
    _settings(draft, [(file, reading) for file, reading in readings(files) if reading.resolved])


def _settings(draft: ReceiptDraft, candidates: list[tuple[FileEvidence, Reading]]) -> None:
    """What a program printed of its own settings; else what one recipe asked, which the command line may override."""
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
