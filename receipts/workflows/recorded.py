"""What recorders leave behind: the journal of a run that was ended, and the parts of many ranks, made receipts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import InputError, Problem, UsageError
from receipts.emit import document
from receipts.emit.ending import MAX_MESSAGE, reports_hang
from receipts.emit.merge import UnmergeableParts, load_part, merge
from receipts.emit.recovery import NotAJournal, blame, recover, running, stuck
from receipts.emit.secrets import redact
from receipts.ingest.ending import failure_in
from receipts.receipt import Document, parse

if TYPE_CHECKING:
    from receipts.emit.merge import Merged, RankPart
    from receipts.emit.run_record import RunRecord

MAX_LOG: Final = 64 << 20  # bytes at its end that are read


def read(journal: str, *, hang: bool = False) -> RunRecord:
    """The record of a journal whose process has ended, or is stuck and said to be. Raises InputError and UsageError."""
    try:
        record = recover(journal)
    except NotAJournal as error:
        raise InputError(journal, [Problem("", str(error))]) from None
    except OSError as error:
        raise InputError(journal, [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None
    if running(record):
        record.stall = stuck(record)
        still = f"{journal}: its process {record.head['process']} is still running"
        if record.stall is None:
            raise UsageError(f"{still}; recover it when it has ended")
        if not hang:
            raise UsageError(
                f"{still}, and {record.stall}; --outcome hang writes the receipt of a hang and leaves the process alone"
            )
    return record


def blamed(record: RunRecord, logs: Iterable[str] = ()) -> None:
    """Read again how the run ended: its own last words, and logs, with the engine's readers of failed allocations."""
    texts: list[bytes] = []
    message = str(record.failure.get("message", ""))
    if message and record.outcome in ("oom", "crash"):
        texts.append(message.encode())
    for name in logs:
        texts.append(_tail(name))
    for text in texts:
        recognized = failure_in(text)
        if recognized is not None and recognized.is_oom:
            names = ("requested_bytes", "used_bytes", "free_bytes", "limit_bytes", "operator", "chip")
            leaves: dict[str, Any] = {name: getattr(recognized, name) for name in names}
            leaves |= {"class": recognized.class_, "phase": recognized.phase}
            # The ordinal in a message is the one that the process sees.
            leaves |= {"device": recognized.chip, "message": message or recognized.message}
            blame(record, "oom", leaves)
            return
    for line in _lines_of_hangs(texts) if record.outcome == "crash" else ():
        blame(record, "hang", {"class": "not_oom", "message": line})
        return


def _lines_of_hangs(texts: Iterable[bytes]) -> Iterator[str]:
    """The lines in which somebody gives up waiting, without secrets."""
    for text in texts:
        for line in text.decode(errors="replace").splitlines():
            if reports_hang(line[:MAX_MESSAGE]):
                yield redact(line.strip()[:MAX_MESSAGE])


def _tail(name: str) -> bytes:
    try:
        with Path(name).open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - MAX_LOG))
            return stream.read(MAX_LOG)
    except OSError as error:
        raise InputError(name, [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None


def check(raw: bytes, source: str) -> None:
    """Refuse to write what is no receipt: journals and parts may have been changed on the way. Raises InputError."""
    parse(Document(raw, source))


def parts_in(words: Sequence[str]) -> list[str]:
    """Files, and of folders the parts in them, with the journals of ranks that have no part there."""
    parts: list[str] = []
    for word in words:
        place = Path(word)
        if not place.is_dir():
            parts.append(word)
            continue
        inside = sorted(str(item) for item in (*place.glob("*.part.json"), *place.glob("*.journal")))
        if not inside:
            raise InputError(word, [Problem("", "no part and no journal lies in this folder")])
        parts += inside
    return list(dict.fromkeys(parts))


def merge_files(files: Sequence[str]) -> Merged:
    """Parts and journals, merged. Raises UsageError with every file that cannot be read or does not belong to them."""
    given: list[RankPart] = []
    problems: list[str] = []
    for name in files:
        try:
            part = load_part(name, blamed)
            # Refuse a part that was changed on the way before it is merged. Raises InputError.
            tree = dict(part.receipt)
            memory = tree.get("memory")
            if isinstance(memory, dict) and isinstance(memory.get("chips"), list):
                # A part numbers devices where a receipt numbers chips.
                rows = [
                    {"chip" if name == "device" else name: value for name, value in row.items()}
                    for row in memory["chips"]
                    if isinstance(row, dict)
                ]
                tree["memory"] = {**memory, "chips": rows}
            content = json.dumps(tree) if part.source.endswith(".json") else "".join(document.tree_text(tree))
            check(content.encode(), part.source)
            given.append(part)
        except UnmergeableParts as error:
            problems += error.lines
        except OSError as error:
            problems.append(f"{name}: it cannot be read: {error.strerror or error}")
    if problems:
        raise UsageError("\n".join(problems))
    try:
        merged = merge(given)
    except UnmergeableParts as error:
        raise UsageError("\n".join(error.lines)) from None
    _read_again(merged)
    return merged


def _read_again(merged: Merged) -> None:
    """What the failing rank said, read by the engine's readers; its chip stays the one that the ranks tell."""
    failure, run = merged.tree.get("failure"), merged.tree["run"]
    if not failure or run["outcome"] not in ("oom", "crash"):
        return
    failure_kind = failure_in(str(failure.get("message", "")).encode())
    if failure_kind is None or not failure_kind.is_oom:
        return
    run["outcome"] = "oom"
    failure["class"] = failure_kind.class_
    for name in ("requested_bytes", "used_bytes", "free_bytes", "limit_bytes"):
        value = getattr(failure_kind, name)
        if value is not None:
            failure[name] = value
