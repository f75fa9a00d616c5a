"""The evidence of a launch beside its receipt: added before the receipt is stored, and read again afterward.

`amended` makes one receipt whole: with what other files of its launch show, and with what it replaces. `verify` holds
a receipt's bytes, each file that it lists, and each leaf against today's readers, and stores nothing. *same*: it is
as the receipt says. *other*: it is not. *missing*: no file with the listed digest was given or is kept. *more*:
today's readers read a leaf that the receipt does not state. Both hold a receipt against the journals of its recorder,
which replayed say what the receipt stated when it was written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple

from receipts.base.errors import InputError, NotFound, Problem, UsageError
from receipts.emit import document, journal
from receipts.emit.files import sha256
from receipts.emit.merge import UnmergeableParts, load_part, merge
from receipts.ingest.assembly import Ingested, assemble, pretty
from receipts.ingest.draft import RECEIPT, Options, base_of
from receipts.ingest.files import InputFile, gather, given
from receipts.ingest.leaves import OPEN, alike, at
from receipts.ingest.leaves import parts as keys
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.parse import UNWRITTEN, intact, listed_digests
from receipts.store.entries import Extract
from receipts.store.evidence import kept_files

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.emit.merge import RankPart
    from receipts.ingest.evidence import FileEvidence
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store
    from receipts.store.evidence import KeptFiles


# What is written about the document itself, and lists to which readers add.
_ABOUT: Final = ("schema_version", "run.recorded.", "run.entries.", "run.supersedes.", "notes.", "evidence[")
# Read again from the last words of a run that failed, or from what others say of it.
_ENDING: Final = ("run.outcome", "run.exit_code", "run.finished", "failure.")


OUTER_CLOCK: Final = b'"receipts_outer_clock"'
MIN_ENDS: Final = 12
APART: Final = ("eval", "checkpoint", "compile", "data")
MAX_SEEN: Final = 16 << 20  # bytes of a launcher's file: it keeps at most some thousands of ends
SAME_STEPS: Final = 0.02  # one clock told both
IN_FLIGHT: Final = 32  # steps that may be dispatched and not have ended: a job that reads a loss every so many


def is_journal(path: Path) -> bool:
    """Whether a file is a journal of the recorder."""
    with path.open("rb") as stream:
        return stream.read(len(journal.MARK)) == journal.MARK


def journal_part(path: Path, launch: str) -> RankPart | None:
    """What a journal holds; None if it is of another launch, or cannot be replayed."""
    try:
        part = load_part(str(path))
    except UnmergeableParts:
        return None
    return part if part.launch == launch else None


def journal_differences(parsed: Parsed, ranks: Sequence[RankPart]) -> Iterator[tuple[str, str]]:
    """Each leaf that the journals of all ranks contradict, with the reason; nothing where a rank's is not there.

    What a reader read from a file, or a person stated to ``ingest`` later, is in no journal.
    """
    if {part.rank for part in ranks} != set(range(ranks[0].world)):
        return
    try:
        tree = merge(ranks).tree if len(ranks) > 1 else ranks[0].receipt
        stated = parse(Document("".join(document.tree_text(tree)).encode(), ranks[0].source)).stated
    except (UnmergeableParts, InputError) as error:
        yield "journal", f"it cannot be replayed: {str(error).splitlines()[0]}"
        return
    by_user = (parsed.receipt.notes or {}).get("ingest.stated_by_user")
    later = {path for entry in parsed.receipt.evidence or () for path in entry.read or ()}
    later |= set(by_user) if isinstance(by_user, tuple) else set()
    failed = stated["run.outcome"] != "ok"
    for path in sorted({*parsed.stated, *stated}):
        if path.startswith(_ABOUT) or (failed and path.startswith(_ENDING)):
            continue
        mine, theirs = parsed.stated.get(path), stated.get(path)
        if mine == theirs or not later.isdisjoint((path, path.partition("[")[0], f"{keys(path)[0]}.*")):
            continue
        yield path, f"{short_value(mine)} is stated, and its journal says {short_value(theirs)}"


def short_value(value: Any) -> str:
    """A value in few words; of a long list how many it has."""
    if value is None:
        return "nothing"
    return f"{len(value)} values" if isinstance(value, list | tuple | dict) and len(value) > 3 else str(value)[:60]


SUPERSEDES: Final = "supersedes"


@dataclass(frozen=True, slots=True)
class Amended:
    """The document to store, and what became of the evidence; None where none was given."""

    document: Document
    ingested: Ingested | None = None
    files: tuple[Path, ...] = ()  # evidence in which a reader knew something, and the recorder's journals
    extracts: tuple[Extract, ...] = ()  # what plugins made of it


def amended(
    word: str,
    evidence: Sequence[str] = (),
    reason: str | None = None,
    options: Options | None = None,
    stdin: BinaryIO | None = None,
) -> Amended:
    """The receipt in a file, with what the files of ``evidence`` show; ``reason`` is why it replaces an earlier one.

    The same files and the same reason give the same bytes. Raises UsageError where the file is no receipt, where
    nothing in the evidence is known, or where the receipt names itself what it replaces; InputError for a broken one,
    and for one that the journal of its recorder contradicts.
    """
    # The files are kept after this; what was unpacked would be gone.
    with given([word, *evidence], stdin, unpack=False) as (items, _passed_by):
        journals = [item.path for item in items if is_journal(item.path)]
        files = gather(item for item in items if item.path not in journals)
        base = base_of(files[:1])
        if base is None:
            raise UsageError(
                f"{word} is not a receipt; to make one of it: receipts ingest {' '.join([word, *evidence])} --submit"
            )
        own = parse(Document(base.raw, word))
        agreeing = _agreeing(own, journals)
        for item in items:
            _refuse_other_steps(own, item.path)
        if evidence and not agreeing and not any(_known(file) for file in files[1:]):
            raise UsageError(f"nothing in {' '.join(evidence)} is known to any reader; docs/ingest.md lists what is")
        assembled = assemble(files, options)
        known = [file for file in files[1:] if _known(file)]
        if known and all(file.name in assembled.strangers for file in known):
            why = "; ".join(f"{name}: {why}" for name, why in islice(assembled.strangers.items(), 3))
            raise UsageError(f"nothing in {' '.join(evidence)} is of the launch of {word}: {why}")
        named = listed_digests(own) if base.recorded else ()
        read = (
            *(path for path, digest in agreeing.items() if digest in named),
            *(file.path for file in known if file.name not in assembled.strangers),
        )
    if assembled.problems:
        raise InputError(word, assembled.problems)
    extracts = extracts_in(files, assembled)
    if reason is None:
        return Amended(Document(assembled.raw, word), assembled if evidence else None, read, extracts)
    run = assembled.tree["run"]
    if SUPERSEDES in run:
        raise UsageError(
            f"{word} states run.supersedes itself: {run[SUPERSEDES]['reason']}; submit it without --supersede"
        )
    # The launch and no id: the same call later makes the same document.
    run[SUPERSEDES] = {"target": run["launch"], "reason": reason}
    if not base.recorded:
        run.pop("recorded", None)
    elif "recorded" in run:
        run["recorded"] |= {"digest": UNWRITTEN}
    return Amended(Document(pretty(assembled.tree), word), assembled if evidence else None, read, extracts)


def keep_evidence(store: Store, amended: Amended) -> None:
    """Keep the files that were read for a receipt. Raises InputError for one that changed meanwhile."""
    kept = kept_files(store.database.address)
    names = listed_digests(parse(amended.document))
    for file in amended.files if kept is not None else ():
        if kept is not None and kept.put(file) not in names:
            problem = Problem(str(file), "it changed while it was read", "submit again when its writer is done")
            raise InputError(amended.document.source, [problem])


def extracts_in(files: Iterable[FileEvidence], assembled: Ingested) -> tuple[Extract, ...]:
    """What plugins made of the files of a launch."""
    return tuple(
        Extract(file.sha256, kind, raw)
        for file in files
        if file.name not in assembled.strangers
        for reading in file.readings
        for kind, raw in reading.extracts.items()
    )


def _known(file: FileEvidence) -> bool:
    return bool(file.readings and file.readings[0].source != RECEIPT)


def _agreeing(parsed: Parsed, journals: Sequence[Path]) -> dict[Path, str]:
    """The journals of the receipt's launch with their digests. Raises InputError where they contradict it."""
    ranks = {path: part for path in journals if (part := journal_part(path, parsed.receipt.run.launch)) is not None}
    other = list(journal_differences(parsed, tuple(ranks.values()))) if ranks else []
    if other:
        help_ = "submit the receipt as the recorder wrote it; receipts recover JOURNAL writes it again"
        raise InputError(parsed.source, [Problem(path, why, help_) for path, why in other])
    return {path: part.journal for path, part in ranks.items()}


def _refuse_other_steps(parsed: Parsed, path: Path) -> None:
    """Raises InputError where the launcher's file says that the recorder's clock ran otherwise between steps.

    What the recorder did by itself, evaluations and checkpoints lie between a few of the steps, and in no wall time.
    """
    run, measurement = parsed.receipt.run, parsed.receipt.measurement
    walls = (measurement.step_wall_seconds if measurement is not None else None) or ()
    if measurement is None or run.recorded is None or run.recorded.by != "recorder":
        return
    with path.open("rb") as stream:
        raw = stream.read(64)
        raw += stream.read(MAX_SEEN) if OUTER_CLOCK in raw else b""
    try:
        # Steps with the job's seconds at their ends. What is wrong with such a file its reader says.
        tree = json.loads(raw) if OUTER_CLOCK in raw else {}
        seen = [(int(count), inner / 1e9) for count, inner, *_ in tree["edges"]] if tree["launch"] == run.launch else []
    except (ValueError, TypeError, LookupError):
        return
    ends = [(count, at) for count, at in seen if 0 < count <= len(walls)]
    pairs = [(math.fsum(walls[a:b]), end - begin) for (a, begin), (b, end) in pairwise(ends) if b > a]
    whole = math.fsum(seconds for _, seconds in pairs)
    if len(ends) < MIN_ENDS or whole <= 0:
        return
    ratio, before, after = median(wall / seconds for wall, seconds in pairs if seconds > 0), 0.0, 0.0
    if measurement.synchronisation == "device":
        # The launcher saw when steps were dispatched. They end later, by as much as those take that were on their way
        # at its first look, of which there were no more then, and at its last.
        ratio, after = math.fsum(wall for wall, _ in pairs) / whole, math.fsum(walls[-IN_FLIGHT:]) / whole
        before = math.fsum(sorted(walls[ends[0][0] :])[-min(IN_FLIGHT, ends[0][0]) :]) / whole
    named = math.fsum(parsed.stated.get(f"measurement.goodput.{name}_seconds") or 0.0 for name in APART)
    # Each step may be followed by one of those.
    if not -SAME_STEPS - named / whole - before <= ratio - 1 <= SAME_STEPS + after:
        why = f"{ratio:.4g} times what the launcher saw pass between the ends of the same steps"
        help_ = "submit the receipt as the recorder wrote it"
        raise InputError(parsed.source, [Problem("measurement.step_wall_seconds", why, help_)])


def refuse_unheld(document: Document, store: Store) -> None:
    """Refuse to replace what the store does not hold. Raises UsageError."""
    launch = parse(document).receipt.run.launch
    try:
        called = [store.parsed(item) for item in store.resolve_all(launch)]
    except NotFound:
        called = []
    if not any(item.receipt.run.launch == launch for item in called):
        raise UsageError(f"the store has no receipt of launch {launch} to supersede; submit it without --supersede")


_MIN_IDS, _MAX_JOBS = 500, 16
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
        jobs = min(os.cpu_count() or 1, _MAX_JOBS) if len(ids) >= _MIN_IDS else 1
    work, batches = partial(verify_stored, files=files), (ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH))
    if jobs <= 1:
        checked = (work(batch, store, rulebook) for batch in batches)
    else:
        from receipts.workflows.workers import elsewhere

        checked = elsewhere(work, batches, store, rulebook, jobs)
    with closing(checked) as results:
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
    parts = [part for path in paths if (part := journal_part(path, parsed.receipt.run.launch)) is not None]
    if len(parts) < len(paths):
        yield Checked("journal", "other", "it is of another launch, or broken")
    elif parts and len(parts) < len(digests):
        yield Checked("journal", "missing", f"{len(parts)} of {len(digests)} ranks; all are replayed together")
    elif parts:
        other = [Checked(path, "other", why) for path, why in journal_differences(parsed, parts)]
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
            yield Checked(path, "other", f"{short_value(stated)} is stated, and {short_value(read[path])} is read")
    shown_by_missing = len(files) < len({item.sha256 for item in parsed.receipt.evidence or () if item.read})
    for path in sorted(item for item in listed - read.keys() if not item.endswith(".*")):
        if not shown_by_missing:
            yield Checked(path, "other", "today's readers read nothing of it")
    for path, value in sorted(read.items()):
        if path.startswith(_NOT_READ):
            continue
        stated = _stated(parsed, path)
        if stated is None:
            yield Checked(path, "more", f"{short_value(value)} is read, and nothing is stated")
        elif f"{keys(path)[0]}.*" in listed and not _equal(path, stated, value):
            yield Checked(path, "other", f"{short_value(stated)} is stated, and {short_value(value)} is read")


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
