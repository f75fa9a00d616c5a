"""Archives of logs: tar, packed or not, and zip. An archive is read as the folder that was put into it.

Members are unpacked one by one under names of our own, so that none can name a place outside the folder, and within
bounds that no member can lift: what a header states is never believed.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from receipts.base.errors import UsageError
from receipts.ingest.evidence.stream import BROKEN, CHUNK, Source, Stream

MAX_UNPACKED: Final = 4 << 30
MAX_MEMBERS: Final = 2_000
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_USTAR: Final = slice(257, 262)
# Members of what is a zip, too: checkpoints of torch, arrays of numpy.
_NO_LOGS: Final = ("data.pkl", ".npy")
_ERRORS: Final = (
    *BROKEN,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
)


class Member(NamedTuple):
    """A file of an archive, unpacked to ``path``; ``name`` is its name within the archive."""

    path: Path
    name: str


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of files that may be logs, by its content."""
    head = Source(path, path.name).head
    if not head.startswith(_ZIP):
        return head[_USTAR] == b"ustar"
    try:
        with zipfile.ZipFile(path) as archive:
            return not any(name.endswith(_NO_LOGS) for name in archive.namelist())
    except _ERRORS:
        return True


def members(path: Path, word: str, folder: Path, remarks: list[str]) -> Iterator[Member]:
    """The regular files of an archive, unpacked into ``folder``; links, devices and archives within are passed over.

    Raises UsageError where it is broken, encrypted, packed in a way that the standard library cannot read, holds more
    than `MAX_MEMBERS` files, or unpacks to more than `MAX_UNPACKED` bytes.
    """
    left = MAX_UNPACKED
    try:
        for count, (name, modified, stream) in enumerate(_streams(path, folder), 1):
            if count > MAX_MEMBERS:
                raise UsageError(f"{word}: more than {MAX_MEMBERS:,} files; unpack it, and name the log")
            target = folder / str(count)
            with stream, target.open("wb") as copy:
                left = _copied(stream, copy, left, word)
            os.utime(target, (modified, modified))
            if is_archive(target):
                remarks.append(f"{name} of {word} is an archive in an archive; passed over: unpack {word} first")
                target.unlink()
            else:
                yield Member(target, name)
    except _ERRORS as error:
        raise UsageError(
            f"{word}: the archive cannot be read: {str(error) or type(error).__name__}; unpack it"
        ) from None


def _copied(stream: IO[bytes] | Stream, target: IO[bytes], left: int, word: str) -> int:
    """Copy a stream; how many bytes of the bound remain."""
    while block := stream.read(CHUNK):
        left -= len(block)
        if left < 0:
            raise UsageError(f"{word}: it unpacks to more than {MAX_UNPACKED >> 30} GiB; unpack it, and name the log")
        target.write(block)
    return left


def _streams(path: Path, folder: Path) -> Iterator[tuple[str, float, IO[bytes]]]:
    """Name, time of the last change, and content of every regular file."""
    source = Source(path, path.name)
    if source.head.startswith(_ZIP):
        with zipfile.ZipFile(path) as archive:
            for item in archive.infolist():
                if not item.is_dir():
                    yield item.filename, time.mktime((*item.date_time, 0, 0, -1)), archive.open(item)
        return
    if source.packing:
        path = folder / "tar"
        with source.open() as packed, path.open("wb") as target:
            _copied(packed, target, MAX_UNPACKED, source.name)
    with _Bounded(path) as stream, tarfile.TarFile(fileobj=stream) as archive:
        for info in archive:
            if info.isfile() and (content := archive.extractfile(info)) is not None:
                yield info.name, info.mtime, content


class _Bounded(io.FileIO):
    """A file of which no more is read at once than a header may hold: tarfile reads as much as one states."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= CHUNK:
            raise tarfile.ReadError(f"a header states {size} bytes")
        return super().read(size)
