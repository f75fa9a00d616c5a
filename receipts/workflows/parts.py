"""Parts of a launch's ranks, collected beside a store where the ranks share no process, and the receipt they make.

They wait in ``STORE.parts`` beside an SQLite store, or in ``parts`` of the folder that ``RECEIPTS_EVIDENCE`` names, a
folder for each launch. With the last rank's part they are merged, and the receipt is stored as one that was sent. A
launch whose ranks never all come is forgotten after 30 days.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base.errors import ConflictError, InputError, NotFound, Problem, UsageError
from receipts.base.files import staged
from receipts.emit.files import make_folder
from receipts.emit.merge import UnmergeableParts, load_part
from receipts.emit.rank_join import ranks
from receipts.store.evidence import VARIABLE
from receipts.workflows.recorded import check, merge_files

if TYPE_CHECKING:
    from receipts.emit.merge import RankPart
    from receipts.store.address import Address

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


def folder_of(address: Address) -> Path:
    """Where parts wait. Raises UsageError for a database that has no folder."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named) / "parts"
    if address.file is None:
        raise UsageError(f"this store takes no parts of ranks: set {VARIABLE} to a folder")
    return address.file.with_name(f"{address.file.name}.parts")


def keep(root: Path, raw: bytes, *, partial: bool) -> Waiting:
    """Keep one rank's part, and merge the launch where all are there, or ``partial`` asks for what there is.

    ``{"launch": …}`` in a part's place asks for what there is of a launch, with ``partial``. Raises InputError for what
    is no part, and ConflictError where this rank's other bytes are here.
    """
    if partial and (launch := launch_named(raw)) is not None:
        parts = sorted(_place(root, launch).glob("rank*.part.json"))
        if not parts:
            raise NotFound(f"no part of the launch {launch[:80]!r} is here")
        raw = parts[0].read_bytes()
    part = _part(raw)
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
    _forget(root)
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


def done(waiting: Waiting) -> None:
    """Forget the parts of a launch whose receipt is stored."""
    if not waiting.missing:
        shutil.rmtree(waiting.folder, ignore_errors=True)


def _part(raw: bytes) -> RankPart:
    with tempfile.NamedTemporaryFile(suffix=".part.json") as file:
        file.write(raw)
        file.flush()
        try:
            return load_part(file.name)
        except UnmergeableParts as error:
            raise InputError("the part", [Problem("", str(error).removeprefix(f"{file.name}: "))]) from None


def _forget(root: Path) -> None:
    """Remove launches that nobody added to for so many days."""
    oldest = time.time() - DAYS * 86_400
    for place in root.iterdir():
        if place.is_dir() and place.stat().st_mtime < oldest:
            shutil.rmtree(place, ignore_errors=True)
