"""Evidence read again: a receipt's bytes, each file that it lists, and each leaf against today's readers.

Nothing is stored. *same*: it is as the receipt says. *other*: it is not. *missing*: no file with the listed digest was
given or is kept. *more*: today's readers read a leaf that the receipt does not state.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts.base.errors import NotFound
from receipts.emit.files import sha256
from receipts.ingest import Options, assemble, gather
from receipts.ingest.files import InputFile
from receipts.ingest.leaves import OPEN, alike, at
from receipts.ingest.leaves import parts as keys
from receipts.receipt.parse import intact
from receipts.store.evidence import kept_files
from receipts.workflows.journals import differences, part_of, short

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.ingest.evidence import FileEvidence
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Parsed
    from receipts.store import Store
    from receipts.store.evidence import KeptFiles

_MANY, _MOST_JOBS = 500, 16
_BATCH: Final = 50  # receipts that a process reads at a time
Word = Literal["same", "other", "missing", "more"]
# What identifies the launch, or speaks of the reading itself, is not in the files.
_NOT_READ: Final = ("run.", "notes.", "evidence", "schema_version", "measurement.window", "path.intended")


class Checked(NamedTuple):
    """One thing that was looked at: ``bytes``, a file by its name, or a leaf by its path."""

    what: str
    word: Word
    why: str = ""


class Verified(NamedTuple):
    """What a receipt came to."""

    receipt: str
    name: str
    checks: tuple[Checked, ...]

    @property
    def exit_code(self) -> int:
        """1 where anything is other, 3 where a file is missing or nothing was read, 0 else."""
        words = {item.word for item in self.checks}
        return 1 if "other" in words else 3 if "missing" in words else 0

    def as_data(self) -> dict[str, Any]:
        """What ``receipts verify --json`` prints of it."""
        return {**self._asdict(), "checks": [item._asdict() for item in self.checks]}


def code(done: Iterable[Verified]) -> int:
    """The exit code of several: 1 where one has it, else the highest."""
    codes = {item.exit_code for item in done}
    return 1 if 1 in codes else max(codes, default=0)


def verify(parsed: Parsed, lane: Lane, files: Mapping[str, Path], kept: KeptFiles | None = None) -> Verified:
    """Check one receipt against ``files``, by digest, and what a store keeps. Raises StoreError for a damaged file."""
    checks = [_bytes(parsed)]
    with ExitStack() as stack:
        places: dict[str, InputFile] = {}
        for entry in parsed.receipt.evidence or ():
            if entry.sha256 is None or entry.kind == "receipt":
                continue
            name = entry.uri or entry.kind
            path = files.get(entry.sha256) or _kept(entry.sha256, kept, stack)
            if path is None:
                checks.append(Checked(name, "missing", f"no file with the digest {entry.sha256[:12]}"))
            else:
                places.setdefault(entry.sha256, InputFile(path, name))
        read = []
        for digest, file in zip(places, gather(list(places.values())), strict=True):
            if file.sha256 == digest:
                checks.append(Checked(file.name, "same"))
                read.append(file)
            else:
                checks.append(Checked(file.name, "other", f"its digest is not {digest[:12]}"))
        if read:
            checks += _leaves(parsed, lane, read)
        checks += _journal(parsed, files, kept, stack)
    return Verified(parsed.id, parsed.name, tuple(checks))


def verify_all(
    store: Store, rulebook: Rulebook, files: Mapping[str, Path], jobs: int | None = None
) -> Generator[Verified, None, None]:
    """Check every receipt of a store, by so many processes. Raises StoreError for a damaged document or file.

    None: one for each core, where there are receipts enough that they are worth their start.
    """
    ids = store.ids()
    if jobs is None:
        jobs = min(os.cpu_count() or 1, _MOST_JOBS) if len(ids) >= _MANY else 1
    work, batches = partial(verify_stored, files=files), (ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH))
    if jobs <= 1:
        for batch in batches:
            yield from work(batch, store, rulebook)
        return
    from receipts.workflows.workers import elsewhere

    with closing(elsewhere(work, batches, store, rulebook, jobs)) as results:
        for done in results:
            yield from done


def verify_stored(ids: Sequence[str], store: Store, rulebook: Rulebook, files: Mapping[str, Path]) -> list[Verified]:
    """Check stored receipts against ``files`` and what the store keeps, as `verify` does."""
    kept = kept_files(store.database.address)
    receipts = map(store.parsed, ids)
    return [verify(item, rulebook.lanes.of(item.receipt.run.lane), files, kept) for item in receipts]


def by_digest(folder: Path) -> dict[str, Path]:
    """The files below a folder, or the one file, by their digests."""
    paths = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    return {sha256(str(path)): path for path in paths}


def _bytes(parsed: Parsed) -> Checked:
    if hashlib.sha256(parsed.raw).hexdigest() != parsed.id:
        return Checked("bytes", "other", "they are not those of its id")
    if intact(parsed) is False:
        return Checked("bytes", "other", "the document was edited after its program wrote it")
    return Checked("bytes", "same")


def _journal(parsed: Parsed, files: Mapping[str, Path], kept: KeptFiles | None, stack: ExitStack) -> Iterator[Checked]:
    """The journals of the recorder that wrote it, replayed. Most were removed with the run: that is nothing missing."""
    recorded = parsed.receipt.run.recorded
    digests = recorded.journals or () if recorded is not None else ()
    paths = [path for item in digests if (path := files.get(item) or _kept(item, kept, stack)) is not None]
    parts = [part for path in paths if (part := part_of(path, parsed.receipt.run.launch)) is not None]
    if len(parts) < len(paths):
        yield Checked("journal", "other", "it is of another launch, or broken")
    elif parts and len(parts) < len(digests):
        yield Checked("journal", "missing", f"{len(parts)} of {len(digests)} ranks; all are replayed together")
    elif parts:
        other = [Checked(path, "other", why) for path, why in differences(parsed, parts)]
        yield from other or [Checked("journal", "same")]


def _leaves(parsed: Parsed, lane: Lane, files: Sequence[FileEvidence]) -> Iterator[Checked]:
    """Every leaf that a reader once read from these files, and what today's readers read besides."""
    listed = {path for entry in parsed.receipt.evidence or () for path in entry.read or ()}
    fresh = assemble(files, Options(lane.name, parsed.receipt.run.kind, {}, (lane,)))
    names = {item.name for item in files}
    read = {item.path: item.value for item in fresh.leaves if item.where.file in names}
    for path in sorted(listed & read.keys()):
        stated = _stated(parsed, path)
        if _equal(path, stated, read[path]):
            yield Checked(path, "same")
        else:
            yield Checked(path, "other", f"{short(stated)} is stated, and {short(read[path])} is read")
    shown_by_missing = len(files) < len({item.sha256 for item in parsed.receipt.evidence or () if item.read})
    for path in sorted(item for item in listed - read.keys() if not item.endswith(".*")):
        if not shown_by_missing:
            yield Checked(path, "other", "today's readers read nothing of it")
    for path, value in sorted(read.items()):
        if path.startswith(_NOT_READ):
            continue
        stated = _stated(parsed, path)
        if stated is None:
            yield Checked(path, "more", f"{short(value)} is read, and nothing is stated")
        elif f"{keys(path)[0]}.*" in listed and not _equal(path, stated, value):
            yield Checked(path, "other", f"{short(stated)} is stated, and {short(value)} is read")


def _stated(parsed: Parsed, path: str) -> Any:
    """What the receipt states at a path, sections and maps as plain data."""
    whole = parsed.receipt.model_dump(by_alias=True, exclude_none=True, include={keys(path)[0]})
    return at(whole, path)


def _equal(path: str, stated: Any, read: Any) -> bool:
    if keys(path)[0] in OPEN and isinstance(stated, Mapping) != isinstance(read, Mapping):
        stated, read = (
            item.get("value", item.get("version")) if isinstance(item, Mapping) else item for item in (stated, read)
        )
    if isinstance(stated, list | tuple) and isinstance(read, list | tuple):
        pairs: Iterable[tuple[Any, Any]] = zip(stated, read, strict=False)
        return len(stated) == len(read) and all(_equal(path, one, other) for one, other in pairs)
    return alike(path, stated, read)


def _kept(digest: str, kept: KeptFiles | None, stack: ExitStack) -> Path | None:
    if kept is None:
        return None
    try:
        return stack.enter_context(kept.file(digest))
    except NotFound:
        return None
