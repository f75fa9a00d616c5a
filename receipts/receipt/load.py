"""Documents on their way in: from files, folders, JSON Lines or a stream to strict JSON, with limits and versions.

Every error is reported at once with its path.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from receipts.base.errors import InputError, Problem
from receipts.base.plugins import service
from receipts.receipt.problems import capped, join

POINTER: Final = ".receipt.toml"  # a file that says where a receipt is, which a plugin follows
MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 25
MAX_REFUSALS = 10_000  # collected from one document
MAX_KEYS = 4096  # of one object: twice the entries that the largest map may have
# Of a whole document. The largest receipts (100,000 steps; 16,384 chips in four phases) have about half of each.
MAX_OBJECTS, MAX_VALUES = 250_000, 2_000_000
# Possessive, and content with a string that never ends: a hostile document costs one pass and never a second look.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r",\s*[}\]]")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS = re.compile(rb"[^\[\]{}]+")
_SAME_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_BLANKS = b" \t\r\n"
TRACES: Final = ("torch-profiler", "jax-profiler", "hlo")  # of the recorder: traces, and a program
MAX_TRACES: Final = 64
_NAMES_TRACE: Final = re.compile(rb'"kind"\s*:\s*"(?:(?:torch|jax)-profiler|hlo)"')
_AS_LOGS = "a receipt is one JSON object; receipts ingest makes one from logs"
_AS_FILES = "keep long lists as files, and name them under evidence"


class Document(NamedTuple):
    """The bytes as they came, with the id that they have. ``source`` names where they came from, for messages."""

    raw: bytes
    source: str

    @property
    def id(self) -> str:
        """SHA-256 of the bytes, in hex: what ``sha256sum run.json`` prints."""
        return hashlib.sha256(self.raw).hexdigest()


class NamedTrace(NamedTuple):
    """A trace that a document names under ``evidence``, there, by where it was and its digest."""

    at: int
    uri: str
    digest: str

    @property
    def name(self) -> str:
        """Its file's name."""
        return os.path.basename(self.uri) or self.uri


def named_traces(raw: bytes) -> list[NamedTrace]:
    """The traces that a document names with their digests, and that no reader has read for it."""
    if _NAMES_TRACE.search(raw) is None:
        return []
    try:
        rows = orjson.loads(raw)["evidence"]
        entries = [(at, row) for at, row in enumerate(rows) if isinstance(row, dict) and row.get("kind") in TRACES]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []  # what is wrong with it is said where it is parsed
    bare = [(at, row) for at, row in entries if not row.keys() & {"read", "observed"}]
    return [
        NamedTrace(at, row["uri"], row["sha256"])
        for at, row in bare[:MAX_TRACES]
        if isinstance(row.get("uri"), str) and isinstance(row.get("sha256"), str) and row["uri"]
    ]


def read(path: str | Path) -> Document:
    """Read a file of at most 16 MiB, or the receipt that a pointer leads to.

    Raises InputError for what is not a readable regular file of that size.
    """
    source = str(path)
    if source.endswith(POINTER):
        return service("pointer", source).document(source)  # type: ignore[no-any-return]  # the Document of a plugin
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise refusal(source, "this is a folder", "name the receipt's file, such as run.json") from None
    except FileNotFoundError:
        raise refusal(source, "there is no such file", "check the path") from None
    except PermissionError:
        raise refusal(source, "the file may not be read", "check its permissions") from None
    except ValueError:
        raise refusal(source, "no file can have such a name", "check the path") from None
    except OSError as error:
        raise refusal(source, f"the file cannot be read: {error.strerror}", "check the path") from None
    return Document(raw, source)


def refusal(source: str, what: str, do: str, at: str = "$") -> InputError:
    """The error of a document with one problem, in the whole document or at a place in it."""
    return InputError(source, [Problem(at, what, do)])


def surely_strict(raw: bytes, keys: int) -> bool:
    """Whether `parse_json` would refuse nothing in bytes that were read as one object, with so many keys kept in it.

    A reader keeps the last of keys that stand twice, so that there are then fewer keys than key endings in the bytes.
    Where a text looks like the end of a key this cannot tell.
    """
    squeezed = raw.translate(_SAME_DIGITS, _BLANKS)
    return b"0" * MAX_DIGITS not in squeezed and squeezed.count(b'":') == keys


class _Refused:
    """Stands in the parsed tree where a value is refused, until its path is known."""

    def __init__(self, what: str, do: str) -> None:
        self.what, self.do = what, do


class _Doubled(dict[str, Any]):
    """An object of the document in which keys stand twice."""

    keys_twice: tuple[str, ...] = ()


class _ParserHooks:
    """Hooks of the JSON parser. They refuse by leaving a mark, so that every offense is reported with its path."""

    def __init__(self) -> None:
        self.refused = False

    def unique(self, pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) > MAX_KEYS:
            return self._mark(f"an object has {len(pairs):,} keys, and none may have more than {MAX_KEYS:,}", _AS_FILES)
        entries = dict(pairs)
        if len(entries) == len(pairs):
            return entries
        self.refused = True
        doubled = _Doubled(entries)
        counts = Counter(key for key, _ in pairs)
        doubled.keys_twice = tuple(key for key, count in counts.items() if count > 1)
        return doubled

    def constant(self, name: str) -> Any:
        return self._loose(f"{name} is not JSON")

    def number(self, text: str) -> Any:
        number = float(text)
        return self._loose("the number is too large for a 64-bit float") if math.isinf(number) else number

    def integer(self, text: str) -> Any:
        if len(text) > MAX_DIGITS:
            return self._loose(f"an integer has more than {MAX_DIGITS} digits")
        return int(text)

    def _loose(self, what: str) -> _Refused:
        return self._mark(f"this is not strict JSON: {what}", "leave the value out or state a number")

    def _mark(self, what: str, do: str) -> _Refused:
        self.refused = True
        return _Refused(what, do)


_MAY_HOLD = (_Refused, dict, list)


def _refusals(node: Any, path: str = "") -> Iterator[Problem]:
    if isinstance(node, _Refused):
        yield Problem(path or "$", node.what, node.do)
    elif isinstance(node, dict):
        for key in getattr(node, "keys_twice", ()):
            yield Problem(join(path, key), "the key occurs twice in one object", "keep one of them")
        for key, value in node.items():
            if isinstance(value, _MAY_HOLD):
                yield from _refusals(value, join(path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if isinstance(value, _MAY_HOLD):
                yield from _refusals(value, join(path, index))


def _surrogates(node: Any, path: str = "") -> Iterator[Problem]:
    """Half of a surrogate pair is an escape that JSON allows and no UTF-8 text can hold."""
    if isinstance(node, str):
        if not node.isascii() and any("\ud800" <= char <= "\udfff" for char in node):
            yield Problem(path or "$", "it holds half of a surrogate pair", "write the whole character")
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _surrogates(key, join(path, key))
            yield from _surrogates(value, join(path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _surrogates(value, join(path, index))


def _too_deep(raw: bytes) -> bool:
    """Whether it nests deeper than MAX_DEPTH, found without recursion so that no document exhausts the stack."""
    depth = 0
    for bracket in _NO_BRACKETS.sub(b"", _STRING.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def parse_json(document: Document) -> dict[str, Any]:
    """Strict JSON: UTF-8 without a byte-order mark, one object, no duplicate keys, no NaN, bounded size and depth."""
    source, raw = document.source, document.raw
    if len(raw) > MAX_BYTES:
        raise refusal(source, "the document is larger than 16 MiB", "attach traces by URI, do not inline them")
    if not raw.strip():
        raise refusal(source, "the document is empty", "write a skeleton with: receipts init LANE")
    if raw[:3] == b"\xef\xbb\xbf" or raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refusal(source, "the document starts with a byte-order mark", "save it as UTF-8 without one")
    if raw[:2] == b"\x1f\x8b":
        raise refusal(source, "the document is packed with gzip", "unpack it first: gunzip")
    if b"\x00" in raw[:4]:
        raise refusal(source, "the document is not text, or is UTF-16 or UTF-32", "save it as UTF-8")
    for what, count, most in (("objects", raw.count(b"{"), MAX_OBJECTS), ("values", raw.count(b","), MAX_VALUES)):
        if count > most:
            raise refusal(source, f"the document has {count:,} {what}, and none may have more than {most:,}", _AS_FILES)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(source, f"byte {error.start} is not UTF-8", "save the document as UTF-8") from None
    if _too_deep(raw):
        raise refusal(source, f"the document nests deeper than {MAX_DEPTH} levels", "flatten it")
    reader = _ParserHooks()
    try:
        value = json.loads(
            text,
            object_pairs_hook=reader.unique,
            parse_constant=reader.constant,
            parse_float=reader.number,
            parse_int=reader.integer,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        before = text[: error.pos].rstrip()  # Python 3.13 points to the comma, and those before behind it
        if _LAST_COMMA.match(text, len(before) - 1 if before.endswith(",") else error.pos):
            what, do = "a comma before a closing bracket", "take the comma out"
        else:
            what, do = error.msg, "check the file was written whole" if text.lstrip()[:1] in "{[" else _AS_LOGS
        raise refusal(source, f"this is not JSON: {what}", do, where) from None
    if reader.refused:
        raise InputError(source, capped(list(islice(_refusals(value), MAX_REFUSALS))))
    if _HALF.search(raw) and (halves := list(islice(_surrogates(value), MAX_REFUSALS))):
        raise InputError(source, capped(halves))
    if not isinstance(value, dict):
        raise refusal(source, "the document is not a JSON object", "a receipt is one object: { … }")
    return value


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
            any_read = False
            for path in document_files(word):
                any_read = True
                if path.endswith(LINES):
                    yield from _of_file(path)
                else:
                    yield path
            if not any_read:
                what = f"this is a folder without any {', '.join(SINGLE + LINES[:1])} file"
                yield refusal(word, what, "name the receipt's file, such as run.json, or a folder of them")
        else:
            yield word


def document_files(folder: str) -> Iterator[str]:
    """Paths of the files in a folder that may hold receipts, by name."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(place, name)
            if not name.endswith((*SINGLE, *LINES)) or name.startswith("."):
                continue
            # A pipe would block, so it is not a file; whoever opens a broken link reports it.
            if os.path.isfile(path) or not os.path.exists(path):
                yield path


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
