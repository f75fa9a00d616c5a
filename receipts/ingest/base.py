"""A receipt among the files of a launch: what it states stands, and what the other files show is added to it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import UsageError
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.leaves import OPEN, at, parts
from receipts.receipt import parse, read
from receipts.receipt.load import MAX_BYTES
from receipts.receipt.parse import intact, upcast

SOURCE: Final = "receipt"
_BEGINS: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:')
_WORDS: Final = (b'"schema_version"', b'"run"', b'"launch"', b'"outcome"', b'"provenance"')


@dataclass(frozen=True, slots=True)
class Base:
    """A receipt's own tree, by the name of its file. ``raw`` are its bytes as they came.

    ``recorded``: a program wrote it, and nobody edited it since.
    """

    name: str
    raw: bytes
    tree: dict[str, Any]
    recorded: bool = False

    def get(self, path: str) -> Any:
        """What it states at a path, or None."""
        return at(self.tree, path)

    def excludes(self, path: str) -> bool:
        """Whether a path is an entry that a map, which the receipt says is complete, does not have."""
        section = parts(path)[0]
        return section in OPEN and self.get(f"{section}.complete") is True and self.get(path) is None


def receipt_file(path: Path, name: str) -> FileEvidence | None:
    """A file that is a receipt, as evidence of itself; None for any other file. It may still hold errors."""
    if path.stat().st_size > MAX_BYTES:
        return None
    with path.open("rb") as stream:
        raw = stream.read(1024)
        if not raw.lstrip().startswith(b"{"):
            return None
        raw += stream.read()
    if not _has_run(raw):
        return None
    return FileEvidence(path, name, hashlib.sha256(raw).hexdigest(), len(raw), (Reading(SOURCE, records=1),), ())


def _has_run(raw: bytes) -> bool:
    """Whether this is a document with the run of a receipt, its keys in any order, or the beginning of one.

    A plan has no outcome, and a verdict, a report or a record of another program has no run.
    """
    if not all(word in raw for word in _WORDS):
        return False
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return _BEGINS.match(raw) is not None
    run = document.get("run") if isinstance(document, dict) else None
    return isinstance(run, dict) and run.keys() >= {"launch", "outcome", "provenance"}


def base_of(files: Iterable[FileEvidence]) -> Base | None:
    """The receipt among the files, or None. Raises InputError with all its errors, UsageError where it is not one."""
    receipts = [file for file in files if file.readings and file.readings[0].source == SOURCE]
    if len(receipts) > 1:
        names = ", ".join(file.name for file in receipts[:3]) + ", …" * (len(receipts) > 3)
        raise UsageError(
            f"{len(receipts)} receipts ({names}); ingest takes the files of one launch, submit takes receipts"
        )
    for file in receipts:
        parsed = parse(read(file.path))
        return Base(file.name, parsed.raw, upcast(json.loads(parsed.raw), file.name), intact(parsed) is True)
    return None
