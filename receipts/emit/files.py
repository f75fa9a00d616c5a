"""Where receipt, part and journal lie, who may read them, and how a document is written.

A document is written whole or not at all, and over nothing. A store, its evidence, a backup and a journal are private:
their owner's alone, or the group's for whom somebody shared the folder. A folder that its group may write, or with the
setgid bit, was shared by intent, and a new file in it follows. A sticky folder such as /tmp is everybody's.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from receipts.emit.identity import ProcessRank


_PRIVATE = 0o700


def file_mode(folder: str | os.PathLike[str]) -> int:
    """The mode of a file that is made in a folder."""
    return _shared_bits(folder) & 0o666


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder, and those above that are missing; one that exists stays as it is. Raises OSError."""
    folder = os.path.abspath(folder)
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folder(above)
    try:
        os.mkdir(folder, _PRIVATE)
    except FileExistsError:  # another process was faster, or it is a file
        if not os.path.isdir(folder):
            raise
        return
    if (mode := _shared_bits(above)) != _PRIVATE:
        os.chmod(folder, mode | stat.S_IMODE(os.stat(folder).st_mode) & stat.S_ISGID)


def _shared_bits(folder: str | os.PathLike[str]) -> int:
    """The bits of a folder that a group shares, without writing by everybody; else its owner's alone."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    sticky, shared = mode & stat.S_ISVTX, mode & (stat.S_IWGRP | stat.S_ISGID)
    return mode & 0o775 | _PRIVATE if shared and not sticky else _PRIVATE


RECEIPT = "run.json"
MAX_DIGESTED_BYTES = 1 << 28


def receipt_path(out: str, launch: str, place: ProcessRank) -> str:
    """The file of the receipt; with several ranks, of this rank's part. A folder gets a file named by the launch."""
    if out.endswith(("/", os.sep)) or os.path.isdir(out):
        out = os.path.join(out, f"run-{launch[:8]}.json")
    if place.world == 1:
        return out
    stem = out[:-5] if out.endswith(".json") else out
    return f"{stem}.rank{place.rank:05d}.part.json"


def named_after(receipt: str, launch: str, ending: str) -> list[str]:
    """Names of a file beside a receipt in the order in which they are tried: of the receipt, then of its launch."""
    stem = os.path.splitext(receipt)[0].removesuffix(".part")
    own = f"{stem}.{launch[:8]}"
    return [f"{stem}.{ending}", f"{own}.{ending}", *(f"{own}-{at}.{ending}" for at in range(2, 99))]


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


def digest_evidence(
    rows: list[dict[str, Any]], tell: Callable[[list[Any]], None], fault: Callable[[str], None]
) -> None:
    """Give rows of evidence whose file lies here its SHA-256; ``tell`` hears of each, ``fault`` of one too large."""
    for row in rows:
        uri = row.get("uri")
        if row.get("sha256") or not uri or "://" in uri or not os.path.isfile(uri):
            continue
        size = os.path.getsize(uri)
        if size > MAX_DIGESTED_BYTES:
            fault(f"{uri} has {size} bytes and was not digested; state its sha256")
            continue
        row["sha256"] = sha256(uri)
        tell(["digest", uri, row["sha256"]])


def sha256(path: str) -> str:
    """The digest of a file. Raises OSError."""
    import hashlib

    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
