"""From words of a command line to files: folders and archives are opened, standard input is put into a file.

What is neither a file nor a folder is refused. An archive (tar, packed or not, and zip) is read as the folder that was
put into it. Its members are unpacked one by one under names of our own, so that none can name a place outside the
folder, and within bounds that no member can lift: what a header states is never believed.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO, Final

from receipts.base.errors import InputError, Problem, UsageError
from receipts.ingest.clock import STDIN as STDIN_NAME
from receipts.ingest.draft import receipt_file
from receipts.ingest.evidence import FileEvidence, read
from receipts.ingest.source import BROKEN, CHUNK, Source, Stream
from receipts.ingest.step_map import FileMap, StepMap, map_file, mapped_file

MAX_FILES: Final = 2_000
MAX_DEPTH: Final = 8
STDIN: Final = "-"
# Weights, checkpoints and caches are no evidence of a run, and there may be terabytes of them.
_PASSED_BY: Final = (".git", "__pycache__", "node_modules", ".venv")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read, by the name that people know it by."""

    path: Path
    name: str


@contextmanager
def given(
    words: Iterable[str], stdin: BinaryIO | None = None, *, unpack: bool = True
) -> Iterator[tuple[list[InputFile], list[str]]]:
    """The files that the words name, each once, and remarks on what was passed over.

    ``-`` is standard input. It and the files of archives (``unpack``) are kept as long as the context is open. Raises
    UsageError for what is not there, may not be read, or is no file (a pipe, a device); also where a folder holds too
    many files, and for an archive that cannot be unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="receipts-ingest-") as folder:
        batch: list[InputFile] = []
        remarks: list[str] = []
        for word in words:
            if word == STDIN:
                if stdin is None:
                    raise UsageError("- is standard input, and there is none; name a file")
                batch.append(_spooled(stdin, Path(folder) / "stdin"))
            else:
                batch.extend(_named(word, remarks))
        unique: dict[tuple[int, int], InputFile] = {}
        for item in batch:
            info = item.path.stat()
            unique.setdefault((info.st_dev, info.st_ino), item)
        files = list(unique.values())
        if unpack:
            files = [file for item in files for file in _unpacked(item, Path(folder), remarks)]
        # The same files; those of one name are called by as many of their folders as tell them apart.
        names = Counter(item.name for item in files)
        yield [item if names[item.name] == 1 else InputFile(item.path, _longer(item, files)) for item in files], remarks


def _spooled(stdin: BinaryIO, path: Path) -> InputFile:
    """Standard input, kept as a file."""
    with path.open("wb") as stream:
        while block := stdin.read(CHUNK):
            stream.write(block)
    return InputFile(path, STDIN_NAME)


def _unpacked(item: InputFile, folder: Path, remarks: list[str]) -> Iterator[InputFile]:
    """The file itself, or those of an archive."""
    if not is_archive(item.path):
        yield item
        return
    place = Path(tempfile.mkdtemp(dir=folder))
    for member in sorted(members(item.path, item.name, place, remarks), key=lambda member: member.name):
        yield InputFile(member.path, f"{item.name}/{member.name.removeprefix('./')}")


def _longer(item: InputFile, files: list[InputFile]) -> str:
    own = item.path.absolute().parts
    fellows = [other.path.absolute().parts for other in files if other.name == item.name and other is not item]
    for count in range(1, len(own)):
        if all(own[-count:] != other[-count:] for other in fellows):
            return "/".join(own[-count:])
    return item.name


def gather(
    files: Iterable[InputFile], progress: Progress | None = None, step_map: StepMap | None = None
) -> list[FileEvidence]:
    """Read every file. ``progress`` gets the file, the bytes read of it (decompressed), and its size on disk.

    Files that ``step_map`` names are read by it. Raises InputError where one of its entries fits no file.
    """
    gathered = [] if step_map is None else [map_file(step_map)]
    entries: list[FileMap] = []
    for item in files:
        if step_map is not None and item.path.samefile(step_map.path):
            continue
        size = item.path.stat().st_size
        report = None if progress is None else _telling(progress, item.name, size)
        entry = step_map.of(item.name) if step_map is not None else None
        if entry is None:
            gathered.append(receipt_file(item.path, item.name) or read(item.path, item.name, report))
            continue
        entries.append(entry)
        mapped = mapped_file(item.path, item.name, entry)
        # A log of one's own holds the messages of libraries too.
        other = read(item.path, item.name, report) if entry.form == "text" else None
        gathered.append(mapped if other is None else replace(other, readings=(*mapped.readings, *other.readings)))
    if step_map is not None and (unused := [item for item in step_map.files if item not in entries]):
        problems = [Problem(f"line {item.line}", f"no file is called {item.name}", "name one") for item in unused]
        raise InputError(str(step_map.path), problems)
    return gathered


def _telling(progress: Progress, name: str, size: int) -> Callable[[int], None]:
    return lambda done: progress(name, done, size)


def _named(word: str, remarks: list[str]) -> Iterator[InputFile]:
    path = Path(word)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        why = error.strerror[:1].lower() + error.strerror[1:] if error.strerror else "it cannot be opened"
        raise UsageError(f"{word}: {why}; name a file or a folder of the run") from None
    except ValueError:
        raise UsageError(f"{word!r}: no file can have such a name") from None
    if stat.S_ISDIR(mode):
        yield from _folder(path, word, remarks)
    elif stat.S_ISREG(mode):
        if not os.access(path, os.R_OK):
            raise UsageError(f"{word}: the file may not be read; check its permissions")
        yield InputFile(path, path.name if path.is_absolute() else path.as_posix())
    else:
        raise UsageError(f"{word}: this is a pipe or a device; give it as standard input: receipts ingest - < {word}")


def _folder(root: Path, word: str, remarks: list[str]) -> Iterator[InputFile]:
    """Regular files below a folder, in the order of their names; links to folders are not followed."""
    count = 0
    for place, folders, names in os.walk(root):
        depth = len(Path(place).relative_to(root).parts)
        folders[:] = sorted(name for name in folders if name not in _PASSED_BY) if depth < MAX_DEPTH else []
        for name in sorted(names):
            path = Path(place) / name
            if not _readable(path):
                remarks.append(f"{path.relative_to(root)} of {word} cannot be read; passed over")
                continue
            count += 1
            if count > MAX_FILES:
                raise UsageError(f"{word}: more than {MAX_FILES:,} files; name the log and what belongs to it")
            yield InputFile(path, path.relative_to(root).as_posix())


def _readable(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False


MAX_UNPACKED: Final = 4 << 30
MAX_MEMBERS: Final = 2_000
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_USTAR: Final = slice(257, 262)
# Members of what is a zip, too: checkpoints of torch, arrays of numpy.
_NO_LOGS: Final = ("data.pkl", ".npy")
_ARCHIVE_ERRORS: Final = (
    *BROKEN,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of files that may be logs, by its content."""
    head = Source(path, path.name).head
    if not head.startswith(_ZIP):
        return head[_USTAR] == b"ustar"
    try:
        with zipfile.ZipFile(path) as archive:
            return not any(name.endswith(_NO_LOGS) for name in archive.namelist())
    except _ARCHIVE_ERRORS:
        return True


def members(path: Path, word: str, folder: Path, remarks: list[str]) -> Iterator[InputFile]:
    """The regular files of an archive, unpacked into ``folder``; links, devices and archives within are passed over.

    Raises UsageError where it is broken, encrypted, packed in a way that the standard library cannot read, holds more
    than `MAX_MEMBERS` files, or unpacks to more than `MAX_UNPACKED` bytes.
    """
    left = MAX_UNPACKED
    try:
        for count, (name, modified, stream) in enumerate(_member_streams(path, folder), 1):
            if count > MAX_MEMBERS:
                raise UsageError(f"{word}: more than {MAX_MEMBERS:,} files; unpack it, and name the log")
            target = folder / str(count)
            with stream, target.open("wb") as copy:
                left = _copied_member(stream, copy, left, word)
            os.utime(target, (modified, modified))
            if is_archive(target):
                remarks.append(f"{name} of {word} is an archive in an archive; passed over: unpack {word} first")
                target.unlink()
            else:
                yield InputFile(target, name)
    except _ARCHIVE_ERRORS as error:
        raise UsageError(
            f"{word}: the archive cannot be read: {str(error) or type(error).__name__}; unpack it"
        ) from None


def _copied_member(stream: IO[bytes] | Stream, target: IO[bytes], left: int, word: str) -> int:
    """Copy a stream; how many bytes of the bound remain."""
    while block := stream.read(CHUNK):
        left -= len(block)
        if left < 0:
            raise UsageError(f"{word}: it unpacks to more than {MAX_UNPACKED >> 30} GiB; unpack it, and name the log")
        target.write(block)
    return left


def _member_streams(path: Path, folder: Path) -> Iterator[tuple[str, float, IO[bytes]]]:
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
            _copied_member(packed, target, MAX_UNPACKED, source.name)
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
