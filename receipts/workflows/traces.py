"""The trace or program that a receipt names and nobody has read yet, read as the receipt is judged.

The recorder lays a trace, or the text of a compiled step, beside the receipt and names it there with its digest. It is
looked for beside the receipt, then where the receipt says that it is, then among the files that the store keeps. A
document that came over the network names no file of this machine: for it only the last counts. The same receipt and
the same trace give the same bytes, wherever both were.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from receipts.base.errors import InputError, NotFound, Problem, StoreError, UsageError
from receipts.emit.files import sha256
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options, base_of
from receipts.ingest.files import InputFile, gather
from receipts.receipt import Document
from receipts.receipt.load import NamedTrace, named_traces
from receipts.workflows.evidence import extracts_in

if TYPE_CHECKING:
    from receipts.axes.lane import Lanes
    from receipts.store.entries import Extract

_RECEIPT: Final = "run.json"  # what a document that came without a file is called
# Bytes of a file that came over the network, as it is and unpacked: whoever stores waits while it is read.
MAX_STRANGE, MAX_STRANGE_UNPACKED = 16 << 20, 128 << 20


class TracedDocument(NamedTuple):
    """A document with what its traces show; ``notes`` say what was read, ``extracts`` are what plugins made of them."""

    document: Document
    notes: tuple[str, ...] = ()
    extracts: tuple[Extract, ...] = ()


class Keeper(Protocol):
    """Who keeps files of evidence: a store here, or a server."""

    def file(self, digest: str) -> AbstractContextManager[Path]: ...
    def put(self, file: Path) -> object: ...


def read_traces(document: Document, lanes: Lanes, kept: Keeper | None, *, local: bool) -> TracedDocument:
    """Read the traces that a document names; ``local``: it is of this machine, and so may they be.

    The files are kept where ``kept`` is given. Raises InputError where a file has not the digest that the receipt
    names, and where it shows another launch.
    """
    named = named_traces(document.raw)
    notes: list[str] = []
    with ExitStack() as stack:
        paths: dict[str, Path] = {}
        for item in named:
            path = _beside(item, document, notes) if local else None
            if path is None and kept is not None:
                try:
                    path = stack.enter_context(kept.file(item.digest))
                except NotFound:
                    path = None
                if path is not None and not local and not _is_small(path):
                    path = None
            if path is not None:
                paths.setdefault(item.digest, path)
            elif local:
                notes.append(
                    f"{item.uri} is not here: what it shows of the path is not read; put it beside the receipt"
                )
        if not paths:
            return TracedDocument(document, tuple(notes))
        files = [
            InputFile(path, next(item.name for item in named if item.digest == key)) for key, path in paths.items()
        ]
        name = os.path.basename(document.source) if local else _RECEIPT
        traced = _read(document, name, files, lanes, {item.digest: item for item in named})
        if local and kept is not None:
            # What the store could not keep is said, and costs the receipt its highest grade alone.
            for path in paths.values():
                try:
                    kept.put(path)
                except (StoreError, UsageError) as error:
                    notes.append(f"{path.name} was read and is not kept: {error}")
    return traced._replace(notes=(*notes, *traced.notes))


def _is_small(path: Path) -> bool:
    """Whether a stranger's file is soon read: few bytes, which unpack to not too many."""
    if path.stat().st_size > MAX_STRANGE:
        return False
    with path.open("rb") as packed:
        if packed.read(2) != b"\x1f\x8b":
            return True
    try:
        with gzip.open(path) as stream:
            left = MAX_STRANGE_UNPACKED
            while left > 0 and (block := stream.read(1 << 20)):
                left -= len(block)
            return left > 0
    except (OSError, EOFError, zlib.error):
        return False


def _beside(item: NamedTrace, document: Document, notes: list[str]) -> Path | None:
    """The file of a trace on this machine. Raises InputError where that beside the receipt is another file."""
    folder = os.path.dirname(os.path.abspath(document.source))
    near = os.path.join(folder, item.name)
    for path in dict.fromkeys((near, os.path.join(folder, item.uri))):
        if not os.path.isfile(path):
            continue
        digest = sha256(path)
        if digest == item.digest:
            return Path(path)
        if os.path.dirname(path) == folder:
            what = (
                f"{item.name} has the digest {digest[:12]}, and the receipt names {item.digest[:12]}: it was changed "
                "after the run, or is of another launch"
            )
            do = "bring back the file that the run wrote, or move this one away to submit the receipt without it"
            raise InputError(document.source, [Problem(f"evidence[{item.at}].sha256", what, do)])
        notes.append(f"{path} is another file than the receipt names: its digest is {digest[:12]}")
    return None


def _read(
    document: Document, name: str, traces: Sequence[InputFile], lanes: Lanes, named: Mapping[str, NamedTrace]
) -> TracedDocument:
    with TemporaryDirectory(prefix="receipts-trace-") as folder:
        copy = Path(folder) / "receipt.json"
        copy.write_bytes(document.raw)
        files = gather([InputFile(copy, name), *traces])
        if base_of(files[:1]) is None:
            return TracedDocument(document)  # parsing says why
        assembled = assemble(files, Options(lanes=tuple(lanes.get(name) for name in lanes.names())))
    digests = {file.name: file.sha256 for file in files}
    problems = [
        Problem(
            f"evidence[{named[digests[name]].at}]",
            f"{name}, which the receipt names as its own, is of another launch: {why}",
            "name the trace that this launch took, or leave the entry out",
        )
        for name, why in assembled.strangers.items()
    ]
    if problems or assembled.problems:
        raise InputError(document.source, problems or assembled.problems)
    notes = []
    for file in files[1:]:
        leaves = [leaf for leaf in assembled.leaves if leaf.where.file == file.name and leaf.path != "evidence"]
        shown = ", ".join(f"{leaf.path.rpartition('.')[2]} {str(leaf.value)[:40]}" for leaf in leaves)
        unread = "" if file.readings else ", and nothing in it is known to any reader"
        notes.append(f"read {file.name}{f': {shown}' if shown else ''}{unread}")
    notes += (
        f"{other.path}: {other.what}; {other.stands or 'it stays unstated'}" for other in assembled.contradictions
    )
    return TracedDocument(Document(assembled.raw, document.source), tuple(notes), extracts_in(files[1:], assembled))
