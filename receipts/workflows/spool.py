"""The spool: documents that a store's server could not take, kept on this machine until it can.

A file a document, ``FOLDER/<store>/<id>.receipt``: one line of JSON (which store, where the document came from, when),
then the document's bytes as they came. A file is written beside its place, brought to the disk, and then named, so that
one that has its name is whole. It goes when the store says that it holds the document: what is sent twice is stored
once, because a receipt's id is the digest of its bytes.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from receipts.base import files
from receipts.base.errors import InputError, StoreError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.load import Item, document

if TYPE_CHECKING:
    from receipts.workflows.submit import Submission

VARIABLE = "RECEIPTS_SPOOL"
SUFFIX = ".receipt"
REFUSED = "refused"
_MAX_DOCUMENT = 20 * 1024 * 1024  # bytes of a document with its header
T = TypeVar("T")
Submit = Callable[[Iterable[Document]], Iterator["Submission"]]


def folder() -> Path:
    """Where the spool is: ``RECEIPTS_SPOOL``, else in the user's data folder."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("receipts", appauthor=False) / "spool"


def place(target: str) -> Path:
    """The folder of what waits for one store, by `Address.target`."""
    return folder() / sha256(target.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class SpooledDocument:
    """A document that waits. `refused` says why its store refused it, None where it was not asked yet."""

    file: Path
    id: str
    store: str
    source: str
    at: datetime
    refused: str | None = None


@dataclass(frozen=True)
class Flushed:
    """What became of a document that waited: taken by the store, or refused with every reason."""

    waiting: SpooledDocument
    outcome: Submission
    refused: str | None = None


class Pending(Generic[T]):
    """An iterator that remembers what it gave and was not told of since, for when its reader fails half-way."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._open: deque[T] = deque()

    def __repr__(self) -> str:
        return f"Pending({len(self._open)} open)"

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = next(self._items)
        self._open.append(item)
        return item

    def settle(self) -> None:
        """Say that what became of the oldest open item is known."""
        self._open.popleft()

    def rest(self) -> Iterator[T]:
        """What was given and not settled, and what was not given yet, in order."""
        return chain(self._open, self._items)


def keep(documents: Iterable[Item], target: str) -> Iterator[Parsed | InputError]:
    """Keep documents for a store until it can be reached; gives each as it is on the disk, or why it is no receipt.

    Raises StoreError where the spool cannot be written: then the document is nowhere but where it came from.
    """
    where = place(target)
    for item in documents:
        try:
            parsed = parse(document(item))
        except InputError as error:
            yield error
            continue
        _write(where, parsed.id, _header(target, parsed.source), parsed.raw)
        yield parsed


def _header(target: str, source: str, refused: str | None = None) -> dict[str, Any]:
    header = {"store": target, "source": source, "at": datetime.now(UTC).isoformat()}
    return header if refused is None else {**header, "refused": refused}


def _write(where: Path, receipt: str, header: dict[str, Any], raw: bytes) -> Path:
    """Write one file so that it is there whole or not at all, whatever fails, and on the disk when this returns."""
    file = where / f"{receipt}{SUFFIX}"
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        with files.staged(file, over=True, mode=0o600) as part:
            part.write_bytes(json.dumps(header).encode() + b"\n" + raw)
        files.to_disk(where.parent)
    except OSError as error:
        problem = f"{where}: the spool cannot be written ({error.strerror}); {receipt[:12]} is neither stored nor kept"
        raise StoreError(f"{problem}: name another folder with {VARIABLE}, and submit it again") from error
    return file


def waiting(target: str, *, refused: bool = False) -> list[SpooledDocument]:
    """What waits for a store, the oldest first; with ``refused`` what it refused."""
    where = place(target) / REFUSED if refused else place(target)
    entries = [one for file in _files(where) if (one := _read(file)) is not None]
    return sorted((item for item, _ in entries), key=lambda item: (item.at, item.id))


def damaged(target: str) -> list[Path]:
    """Files of the spool that are incomplete, which this program never leaves: they are reported, and not touched."""
    return [file for file in _files(place(target)) if file.exists() and _read(file) is None]


def count(target: str) -> int:
    """How many documents wait for a store; those that it refused are not among them."""
    return len(_files(place(target)))


def others() -> dict[str, int]:
    """How many documents wait, by store."""
    counts: dict[str, int] = {}
    try:
        places = [item for item in folder().iterdir() if item.is_dir()]
    except OSError:
        return {}
    for item in places:
        files = _files(item)
        first = next((header for file in files if (header := _read(file)) is not None), None)
        if first is not None:
            counts[first[0].store] = len(files)
    return dict(sorted(counts.items()))


def _files(where: Path) -> list[Path]:
    try:
        return sorted(item for item in where.iterdir() if item.name.endswith(SUFFIX) and item.name[0] != ".")
    except OSError:
        return []


def _read(file: Path) -> tuple[SpooledDocument, bytes] | None:
    """A file of the spool; None where it is gone, because another has flushed it, or is not whole."""
    try:
        head, _, raw = read_small(file, _MAX_DOCUMENT).partition(b"\n")
    except OSError:
        return None
    try:
        header = parse_json(head)
        at = datetime.fromisoformat(header["at"])
        one = SpooledDocument(
            file, file.name.removesuffix(SUFFIX), header["store"], header["source"], at, header.get("refused")
        )
    except (ValueError, KeyError, TypeError):
        return None
    return (one, raw) if sha256(raw).hexdigest() == one.id else None


def flush(submit: Submit, target: str, *, again: bool = False) -> Iterator[Flushed]:
    """Give a store, by what submits to it, everything that waits for it; gives what became of each.

    With ``again`` also what it refused before.

    Whatever ends it half-way, another flush goes on, and several at once do no harm. Raises Unreachable where the
    store still does not answer.
    """
    from receipts.workflows.submit import BATCH

    open_ = [*(waiting(target, refused=True) if again else ()), *waiting(target)]
    for start in range(0, len(open_), BATCH):
        batch = [entry for item in open_[start : start + BATCH] if (entry := _read(item.file)) is not None]
        documents = [Document(raw, item.source) for item, raw in batch]
        for (item, raw), outcome in zip(batch, submit(documents), strict=True):
            reason = str(outcome.error) if outcome.error is not None else None
            if reason is not None:
                header = {**_header(item.store, item.source, reason), "at": item.at.isoformat()}
                _write(place(item.store) / REFUSED, item.id, header, raw)
            if reason is None or item.refused is None:
                item.file.unlink(missing_ok=True)
            yield Flushed(item, outcome, reason)
