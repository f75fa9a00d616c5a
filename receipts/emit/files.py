"""Where receipt, part and journal lie, and how a document is written: whole or not at all, and over nothing."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from receipts.emit.place import ProcessRank

RECEIPT = "run.json"
LARGEST_DIGESTED = 1 << 28


def receipt_path(out: str, launch: str, place: ProcessRank) -> str:
    """The file of the receipt; with several ranks, of this rank's part. A folder gets a file named by the launch."""
    if out.endswith(("/", os.sep)) or os.path.isdir(out):
        out = os.path.join(out, f"run-{launch[:8]}.json")
    if place.world == 1:
        return out
    stem = out[:-5] if out.endswith(".json") else out
    return f"{stem}.rank{place.rank:05d}.part.json"


def journal_path(receipt: str, launch: str, folder: str | None) -> str:
    """The journal beside the receipt, or in a folder of its own; the process number parts what shares a launch."""
    stem = receipt
    for ending in (".json", ".part"):
        stem = stem[: -len(ending)] if stem.endswith(ending) else stem
    name = f"{stem}.{launch[:8]}-{os.getpid()}.journal"
    return os.path.join(folder, os.path.basename(name)) if folder else name


def write(pieces: Iterable[str], path: str, launch: str) -> str:
    """Write a document, and say where: beside an older file of that name, never over it. Raises OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        for number in range(1, 1000):
            target = path if number == 1 else beside(path, launch, number)
            if claim(temporary, target):
                return target
        raise FileExistsError(f"{path} and 998 files beside it exist")
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def beside(path: str, launch: str, number: int) -> str:
    """Another name where ``path`` is taken: with the launch, then with a number too."""
    stem, ending = os.path.splitext(path)
    if stem.endswith(".part"):
        stem, ending = stem[:-5], ".part" + ending
    again = "" if number == 2 else f"-{number - 1}"
    return f"{stem}.{launch[:8]}{again}{ending}"


def claim(temporary: str, target: str) -> bool:
    """Give a finished file its name, unless the name is taken."""
    try:
        os.link(temporary, target)
        return True
    except FileExistsError:
        return False
    except OSError:
        # A file system without hard links: a short race is left, in which two launches write the same name.
        if os.path.lexists(target):
            return False
        os.rename(temporary, target)
        return True


def digest(rows: list[dict[str, Any]], tell: Callable[[list[Any]], None], fault: Callable[[str], None]) -> None:
    """Give rows of evidence whose file lies here its SHA-256; ``tell`` hears of each, ``fault`` of one too large."""
    for row in rows:
        uri = row.get("uri")
        if row.get("sha256") or not uri or "://" in uri or not os.path.isfile(uri):
            continue
        size = os.path.getsize(uri)
        if size > LARGEST_DIGESTED:
            fault(f"{uri} has {size} bytes and was not digested; state its sha256")
            continue
        row["sha256"] = sha256(uri)
        tell(["digest", uri, row["sha256"]])


def sha256(path: str) -> str:
    """The digest of a file. Raises OSError."""
    import hashlib

    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
