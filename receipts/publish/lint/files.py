"""The Markdown files that a call names: files, folders and everything below them, or standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from receipts.base.errors import NotFound, UsageError

SUFFIXES = (".md", ".markdown", ".mdx", ".mkd", ".rst")
SKIPPED = ("node_modules", "__pycache__", "site-packages")


@dataclass(frozen=True)
class SourceFile:
    """A file by its name in messages, and how its lines are read; they may be read more than once."""

    name: str
    open_lines: Callable[[], Iterable[str]]


def pages(words: Sequence[str]) -> Iterator[SourceFile]:
    """Each file once, in the order of the words and of names below a folder. Raises NotFound, UsageError."""
    seen: set[Path] = set()
    for word in words:
        if word == "-":
            text = sys.stdin.read(LONGEST_INPUT + 1)
            if len(text) > LONGEST_INPUT:
                raise UsageError(f"standard input: it has more than {LONGEST_INPUT >> 20} MiB; name a file")
            yield SourceFile("standard input", lambda text=text: io.StringIO(text))  # type: ignore[misc]
            continue
        place = Path(word)
        if not place.exists():
            raise NotFound(f"there is no file or folder {word}")
        if place.is_char_device() or place.is_block_device():
            raise UsageError(f"{word} is a device, which may have no end; name a file or a folder")
        for path in _below(place) if place.is_dir() else [place]:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield SourceFile(path.as_posix(), lambda path=path: _lines(path))  # type: ignore[misc]


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        elif path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def _lines(path: Path) -> Iterator[str]:
    """Lines as they are read. What is no UTF-8 is shown as a replacement; a file that cannot be read is an error."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path}: it has more than {LARGEST_FILE >> 20} MiB, which no page has; leave it out")
        with path.open(encoding="utf-8", errors="replace", newline=None) as stream:
            yield from _bounded(stream)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


LONGEST_LINE = 1 << 20
LARGEST_FILE = 64 << 20  # bytes; some 15 s of reading, and no page that a person wrote is near it
LONGEST_INPUT = 16 << 20  # characters of standard input, which is read more than once


def _bounded(stream: TextIO) -> Iterator[str]:
    """Lines, of which one that never ends is given in pieces: memory must not grow with the file."""
    while line := stream.readline(LONGEST_LINE):
        yield line
