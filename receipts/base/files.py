"""Files that are written whole or not at all.

The content goes to a file beside the target and to the disk, and only then takes the target's name: a crash or a full
disk leaves what was there before, or nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from receipts.base.errors import DiskError, UsageError

OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# What no file can be called.
OF_A_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
# What a machine has too little of; no fault of a call or of the program.
OF_THE_MACHINE = (*OF_THE_DISK, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


SMALL = 4 * 1024 * 1024  # bytes of a file that a person writes by hand, or this program for itself


def read_small(path: Path, most: int = SMALL) -> bytes:
    """The bytes of a file of at most so many, so that no device and no slip fills the memory. Raises OSError."""
    with path.open("rb") as stream:
        return read_bounded(stream, most)


def read_bounded(stream: IO[bytes], most: int) -> bytes:
    """The rest of a stream of at most so many bytes. Raises OSError."""
    raw = stream.read(most + 1)
    if len(raw) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    if missing := getattr(stream, "length", None):  # of an HTTP answer, which raises nothing where it is cut off
        raise OSError(errno.ECONNRESET, f"it was cut off {missing} bytes before its end")
    return raw


def write(target: str | Path, content: str | bytes, *, over: bool = False) -> None:
    """Write a file in a folder that exists. Raises UsageError if it cannot be, or exists and not ``over``, and
    DiskError where the disk is full.
    """
    target = Path(target)
    with writable(target), staged(target, over=over) as beside:
        _put(beside, content)


def write_folder(folder: Path, files: Mapping[str, str | bytes], *, over: bool = False) -> None:
    """Write files into a folder, made where it is missing; all are on the disk before the first takes its name.

    Other files in the folder stay as they are. Raises UsageError as `write` does.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name a folder that can be written")
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            for name, content in files.items():
                _put(stack.enter_context(staged(folder / name, over=over)), content)


@contextmanager
def staged(target: Path, *, over: bool = False, mode: int | None = None) -> Iterator[Path]:
    """An empty file beside ``target``, which takes its name when the block ends well, and goes when it does not.

    The file gets 0666 less the umask, or just ``mode`` where one is given, or with ``over`` the mode of the file that
    it replaces. Raises OSError:
    FileExistsError where the target exists and not ``over``. A device or a pipe is written directly.
    """
    if over:
        target = Path(os.path.realpath(target))
        if target.exists() and not target.is_file():
            yield target
            return
    beside = target.with_name(f".{target.name[:60]}.{os.urandom(4).hex()}.part")
    replaced = target.stat() if over and target.exists() else None
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode & 0o600))
    try:
        if replaced is not None:
            beside.chmod(stat.S_IMODE(replaced.st_mode))
        elif mode is not None:
            beside.chmod(mode)
        yield beside
        to_disk(beside)
        if over:
            os.replace(beside, target)
        else:
            # Give a file its name, unless the name is taken: unlike a rename, a link replaces nothing.
            try:
                os.link(beside, target)
            except FileExistsError:
                raise
            except OSError:
                # A file system without hard links: a short race is left, in which another file of the name is replaced.
                if os.path.lexists(target):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
                os.rename(beside, target)
        to_disk(target.parent)
    finally:
        beside.unlink(missing_ok=True)


def to_disk(place: Path) -> None:
    """Bring a file, or the names in a folder, to the disk. Raises OSError."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot bring a folder to the disk by itself.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not place.is_dir():
            raise
    finally:
        os.close(descriptor)


def refuse_existing(*targets: str | Path) -> None:
    """Raise UsageError where a file that may not be replaced exists: before the work that would fill it."""
    if existing := [str(target) for target in targets if os.path.lexists(target)]:
        raise UsageError(f"{', '.join(existing)} exists and is kept; name another file, or remove it first")


@contextmanager
def writable(target: str | Path) -> Iterator[None]:
    """Turn an OSError of writing ``target`` into a UsageError, or a DiskError, that says what to do."""
    try:
        yield
    except FileExistsError as error:
        refuse_existing(error.filename2 or error.filename or target)
        raise
    except OSError as error:
        if error.errno in OF_THE_DISK:
            what = f"{target} cannot be written: {error.strerror}, and nothing was changed"
            raise DiskError(f"{what}; free some space, or name a place on another disk") from None
        raise UsageError(f"{target} cannot be written: {error.strerror}; name a place that can be written") from None


def _put(beside: Path, content: str | bytes) -> None:
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    if beside.is_file():
        to_disk(beside)
