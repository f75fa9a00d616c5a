"""One receipt made whole before it is stored: with what other files of its launch show, and with what it replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from receipts.base.errors import InputError, NotFound, Problem, UsageError
from receipts.ingest import Ingested, Options, assemble, gather
from receipts.ingest.base import SOURCE, base_of
from receipts.ingest.files import given
from receipts.ingest.layout import pretty
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.parse import UNWRITTEN, listed_digests
from receipts.workflows.journals import differences, is_journal, part_of

if TYPE_CHECKING:
    from receipts.ingest.evidence import FileEvidence
    from receipts.store import Store

KEY: Final = "supersedes"


@dataclass(frozen=True, slots=True)
class Amended:
    """The document to store, and what became of the evidence; None where none was given."""

    document: Document
    ingested: Ingested | None = None
    files: tuple[Path, ...] = ()  # evidence in which a reader knew something, and the recorder's journals


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
    if reason is None:
        return Amended(Document(assembled.raw, word), assembled if evidence else None, read)
    run = assembled.tree["run"]
    if KEY in run:
        raise UsageError(f"{word} states run.supersedes itself: {run[KEY]['reason']}; submit it without --supersede")
    # The launch and no id: the same call later makes the same document.
    run[KEY] = {"target": run["launch"], "reason": reason}
    if not base.recorded:
        run.pop("recorded", None)
    elif "recorded" in run:
        run["recorded"] |= {"digest": UNWRITTEN}
    return Amended(Document(pretty(assembled.tree), word), assembled if evidence else None, read)


def _known(file: FileEvidence) -> bool:
    return bool(file.readings and file.readings[0].source != SOURCE)


def _agreeing(parsed: Parsed, journals: Sequence[Path]) -> dict[Path, str]:
    """The journals of the receipt's launch with their digests. Raises InputError where they contradict it."""
    ranks = {path: part for path in journals if (part := part_of(path, parsed.receipt.run.launch)) is not None}
    other = list(differences(parsed, tuple(ranks.values()))) if ranks else []
    if other:
        help_ = "submit the receipt as the recorder wrote it; receipts recover JOURNAL writes it again"
        raise InputError(parsed.source, [Problem(path, why, help_) for path, why in other])
    return {path: part.journal for path, part in ranks.items()}


def refuse_unheld(document: Document, store: Store) -> None:
    """Refuse to replace what the store does not hold. Raises UsageError."""
    launch = parse(document).receipt.run.launch
    if not any(item.receipt.run.launch == launch for item in _called(store, launch)):
        raise UsageError(f"the store has no receipt of launch {launch} to supersede; submit it without --supersede")


def _called(store: Store, name: str) -> list[Parsed]:
    try:
        return [store.parsed(item) for item in store.resolve_all(name)]
    except NotFound:
        return []
