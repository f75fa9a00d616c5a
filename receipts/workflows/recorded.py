"""What recorders leave behind: the journal of a run that was ended, and the parts of many ranks, made receipts.

Parts of ranks that share no process are collected beside a store. They wait in ``STORE.parts`` beside an SQLite store,
or in ``parts`` of the folder that ``RECEIPTS_EVIDENCE`` names, a folder for each launch. With the last rank's part they
are merged, and the receipt is stored as one that was sent. A launch whose ranks never all come is forgotten after 30
days.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.base.errors import ConflictError, InputError, NotFound, Problem, UsageError
from receipts.base.files import staged
from receipts.emit import document
from receipts.emit.ending import MAX_MESSAGE, reports_hang
from receipts.emit.files import make_folder
from receipts.emit.merge import UnmergeableParts, load_part, merge
from receipts.emit.rank_join import ranks
from receipts.emit.recovery import NotAJournal, blame, recover, running, stuck
from receipts.emit.secrets import redact
from receipts.ingest.ending import failure_in
from receipts.receipt import Document, parse
from receipts.store.evidence import VARIABLE

if TYPE_CHECKING:
    from receipts.emit.merge import Merged, RankPart
    from receipts.emit.run_record import RunRecord
    from receipts.store.address import Address


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
        try:
            with Path(name).open("rb") as stream:
                stream.seek(max(0, stream.seek(0, 2) - MAX_LOG))
                texts.append(stream.read(MAX_LOG))
        except OSError as error:
            raise InputError(name, [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None
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
    if record.outcome == "crash":
        lines = (line for text in texts for line in text.decode(errors="replace").splitlines())
        given_up = next((line for line in lines if reports_hang(line[:MAX_MESSAGE])), None)
        if given_up is not None:
            message = redact(given_up.strip()[:MAX_MESSAGE])
            blame(record, "hang", {"class": "not_oom", "message": message})


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
    # What the failing rank said, read by the engine's readers; its chip stays the one that the ranks tell.
    failure, run = merged.tree.get("failure"), merged.tree["run"]
    if failure and run["outcome"] in ("oom", "crash"):
        recognized = failure_in(str(failure.get("message", "")).encode())
        if recognized is not None and recognized.is_oom:
            run["outcome"], failure["class"] = "oom", recognized.class_
            sizes = {name: getattr(recognized, f"{name}_bytes") for name in ("requested", "used", "free", "limit")}
            failure |= {f"{name}_bytes": value for name, value in sizes.items() if value is not None}
    return merged


DAYS: Final = 30
MAX_MISSING: Final = 100  # ranks that are named; a part may say that it is one of a million
_NAMED: Final = re.compile(rb'\{"launch": ("[^"\\]{1,500}")\}')


class Waiting(NamedTuple):
    """What a server has of a launch: the first ranks that are missing, and the receipt where enough are here."""

    launch: str
    world: int
    here: int
    missing: tuple[int, ...]
    receipt: bytes | None
    folder: Path


def parts_folder(address: Address) -> Path:
    """Where parts wait. Raises UsageError for a database that has no folder."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named) / "parts"
    if address.file is None:
        raise UsageError(f"this store takes no parts of ranks: set {VARIABLE} to a folder")
    return address.file.with_name(f"{address.file.name}.parts")


def keep_part(root: Path, raw: bytes, *, partial: bool) -> Waiting:
    """Keep one rank's part, and merge the launch where all are there, or ``partial`` asks for what there is.

    ``{"launch": …}`` in a part's place asks for what there is of a launch, with ``partial``. Raises InputError for what
    is no part, and ConflictError where this rank's other bytes are here.
    """
    if partial and (launch := launch_named(raw)) is not None:
        parts = sorted(_place(root, launch).glob("rank*.part.json"))
        if not parts:
            raise NotFound(f"no part of the launch {launch[:80]!r} is here")
        raw = parts[0].read_bytes()
    with tempfile.NamedTemporaryFile(suffix=".part.json") as file:
        file.write(raw)
        file.flush()
        try:
            part = load_part(file.name)
        except UnmergeableParts as error:
            raise InputError("the part", [Problem("", str(error).removeprefix(f"{file.name}: "))]) from None
    place = _place(root, part.launch)
    make_folder(place)
    target = place / f"rank{part.rank:06d}.part.json"
    try:
        with staged(target) as beside:
            beside.write_bytes(raw)
    except FileExistsError:
        if target.read_bytes() != raw:
            problem = f"another part of rank {part.rank} of launch {part.launch[:40]} is here; merge the files by hand"
            raise ConflictError(problem) from None
    oldest = time.time() - DAYS * 86_400  # launches that nobody added to since are forgotten
    for other in root.iterdir():
        if other.is_dir() and other.stat().st_mtime < oldest:
            shutil.rmtree(other, ignore_errors=True)
    files = sorted(place.glob("rank*.part.json"))
    here = {int(file.name[4:10]) for file in files}
    missing = tuple(islice((rank for rank in range(part.world) if rank not in here), MAX_MISSING))
    if missing and not partial:
        return Waiting(part.launch, part.world, len(files), missing, None, place)
    merged = merge_files([str(file) for file in files]).text().encode()
    check(merged, "the merged parts")
    return Waiting(part.launch, part.world, len(files), missing, merged, place)


def launch_named(raw: bytes) -> str | None:
    """The launch of ``{"launch": …}``, which stands in a part's place; None for anything else."""
    named = _NAMED.fullmatch(raw)
    return None if named is None else str(json.loads(named[1]))


def _place(root: Path, launch: str) -> Path:
    return root / hashlib.sha256(launch.encode()).hexdigest()[:32]


def waiting_words(waiting: Waiting) -> str:
    """What is here, and what is waited for."""
    if not waiting.missing:
        return "whole"
    others = waiting.world - waiting.here - len(waiting.missing)
    more = f" and {others} more" if others else ""
    return f"{waiting.here} of {waiting.world} parts are here; {ranks(waiting.missing)}{more} missing"


def forget_parts(waiting: Waiting) -> None:
    """Forget the parts of a launch whose receipt is stored."""
    if not waiting.missing:
        shutil.rmtree(waiting.folder, ignore_errors=True)
