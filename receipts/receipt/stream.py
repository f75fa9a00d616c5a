"""Documents wherever they lie: in files, in folders, one a line of a JSON Lines file, or on a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, Final

import orjson

from receipts.base.errors import InputError
from receipts.receipt.load import MAX_BYTES, Document, read, refusal

LINES: Final = (".jsonl", ".ndjson")
SINGLE: Final = (".json",)

Item = Document | str | InputError


def document(item: Item) -> Document:
    """The document itself, read where its path is given. Raises InputError, also the one that takes its place."""
    if isinstance(item, InputError):
        raise item
    return read(item) if isinstance(item, str) else item


def is_many(word: str) -> bool:
    """Whether a word names a place of many documents: a folder, or a JSON Lines file."""
    return word.endswith(LINES) or os.path.isdir(word)


def documents(words: Iterable[str], stdin: BinaryIO) -> Iterator[Item]:
    """Every document that some words name, in their order; `-` is standard input. A text is the path of one in a file.

    A folder is searched for ``.json``, ``.jsonl`` and ``.ndjson`` files, in those below it too, by name; what begins
    with a dot is left out. Where something cannot be had, an InputError that says why takes its place.
    """
    for word in words:
        if word == "-":
            yield from of_stream(stdin, "standard input")
        elif word.endswith(LINES) and not os.path.isdir(word):
            yield from _of_file(word)
        elif os.path.isdir(word):
            yield from _of_folder(word)
        else:
            yield word


def files(folder: str) -> Iterator[str]:
    """Paths of the files in a folder that may hold receipts, by name."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(place, name)
            # A pipe would block, so it is not a file; whoever opens a broken link reports it.
            if name.endswith((*SINGLE, *LINES)) and not name.startswith(".") and not _is_pipe(path):
                yield path


def _is_pipe(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def of_stream(stream: BinaryIO, source: str) -> Iterator[Item]:
    """The document of a stream, or one a line: the latter where the first line is an object and more follows it.

    A single document keeps its bytes as they came, the end of its last line too: they make its id.
    """
    first = stream.readline(MAX_BYTES + 2)
    if not first.endswith(b"\n") or not _is_object(first):
        yield Document(first + stream.read(max(0, MAX_BYTES + 1 - len(first))), source)
        return
    rest = _lines(stream)
    blank: list[bytes] = []
    for line in rest:
        if line.strip():
            yield from _of_lines(chain([first, *blank, line], rest), source)
            return
        blank.append(line)
    yield Document(b"".join([first, *blank])[: MAX_BYTES + 1], source)


def _of_lines(lines: Iterable[bytes], source: str) -> Iterator[Item]:
    """One document a line, without the line's end; blank lines hold none. Each is named ``FILE:LINE``."""
    for number, line in enumerate(lines, 1):
        raw = line.rstrip(b"\r\n")
        if raw.strip():
            yield Document(raw, f"{source}:{number}")


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends; of one that no document may be as long as, no more than shows that."""
    while line := stream.readline(MAX_BYTES + 2):
        yield line
        while len(line) == MAX_BYTES + 2 and not line.endswith(b"\n"):
            line = stream.readline(MAX_BYTES + 2)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _of_file(path: str) -> Iterator[Item]:
    try:
        with open(path, "rb") as stream:
            yield from _of_lines(_lines(stream), path)
    except FileNotFoundError:
        yield refusal(path, "there is no such file", "check the path")
    except OSError as error:
        yield refusal(path, f"the file cannot be read: {error.strerror}", "check the path and its permissions")


def _of_folder(folder: str) -> Iterator[Item]:
    any_read = False
    for path in files(folder):
        any_read = True
        if path.endswith(LINES):
            yield from _of_file(path)
        else:
            yield path
    if not any_read:
        what = f"this is a folder without any {', '.join(SINGLE + LINES[:1])} file"
        yield refusal(folder, what, "name the receipt's file, such as run.json, or a folder of them")
